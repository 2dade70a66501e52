package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

// LockedError says that another labctl works on the lab.
type LockedError struct{ Lab, Holder string }

func (e *LockedError) Error() string {
	return fmt.Sprintf("lab %s is in use by %s; wait for it, or end it and run this again", e.Lab, e.Holder)
}

// Lock takes the lab's lock for this process. The kernel frees it when the process ends, however it ends.
func Lock(name, purpose string) (release func(), err error) {
	path, err := lockPath(name)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	// On a read-only disk an existing file can be locked, but changes of the lab could not be written to its state.
	if err := unix.Access(filepath.Dir(path), unix.W_OK); errors.Is(err, unix.EROFS) {
		return nil, fmt.Errorf("lock lab %s: %s: %w; nothing was changed; next: see in `dmesg` whether the disk has failed, and mount it again", name, filepath.Dir(path), err)
	}
	l := flock.New(path, flock.SetPermissions(0o600))
	ok, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock lab %s: %w", name, err)
	}
	if !ok {
		holder, _ := os.ReadFile(path)
		return nil, &LockedError{Lab: name, Holder: strings.TrimSpace(string(holder))}
	}
	// The text is only for people, so it may fail: `down`, which frees a full disk, takes the lock too.
	_ = os.WriteFile(path, fmt.Appendf(nil, "%s (process %d, since %s)\n", purpose, os.Getpid(), time.Now().Format(time.TimeOnly)), 0o600)
	return func() { _ = l.Close() }, nil
}

// LockFaults takes the lock for faults, so that two processes do not undo each other's faults. It is a lock of its own, because such a
// process runs labctl, which takes the lab's.
func LockFaults(name, purpose string) (release func(), err error) {
	release, err = Lock(name+".faults", purpose)
	if held, is := errors.AsType[*LockedError](err); is {
		held.Lab = name
	}
	return release, err
}

func lockPath(name string) (string, error) {
	root, err := Root()
	return filepath.Join(root, name+".lock"), err
}

// Locked tells whether a process holds the lab's lock, without taking it.
func Locked(name string) (bool, error) {
	path, err := lockPath(name)
	if err != nil {
		return false, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	l := flock.New(path, flock.SetPermissions(0o600))
	defer func() { _ = l.Close() }()
	ok, err := l.TryRLock()
	if err != nil {
		return false, fmt.Errorf("look at the lock of lab %s: %w", name, err)
	}
	return !ok, nil
}
