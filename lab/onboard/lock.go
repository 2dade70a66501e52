package onboard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"k8slab/lab/atomicfile"
	"k8slab/lab/wait"
)

// LockedError says that another process works on the node.
type LockedError struct{ Node, Holder string }

func (e *LockedError) Error() string {
	return fmt.Sprintf("the onboarding of %s is in use by %s; wait for it, or end it and run this again", e.Node, e.Holder)
}

var errHeld = errors.New("the lock is held")

// lookTime is how long processes that only check the lock may hold it.
const lookTime = time.Second

// lock takes the target's lock for this process. The kernel frees it when the process ends, however it ends.
func (s *Store) lock(ctx context.Context, purpose string) (release func(), err error) {
	if err := s.makeDirs(); err != nil {
		return nil, fmt.Errorf("onboard %s: %w", s.target.Node, err)
	}
	l := flock.New(s.path(lockFile), flock.SetPermissions(0o600))
	err = wait.For(ctx, "the lock of "+s.target.Node, lookTime, 20*time.Millisecond, func(context.Context) error {
		ok, err := l.TryLock()
		if err == nil && !ok {
			err = errHeld
		}
		return err
	})
	if timeout, ok := errors.AsType[*wait.TimeoutError](err); ok && errors.Is(timeout.Last, errHeld) {
		return nil, &LockedError{Node: s.target.Node, Holder: s.holder()}
	}
	if err == nil {
		text := fmt.Sprintf("%s (process %d, since %s)\n", purpose, os.Getpid(), time.Now().Format(time.TimeOnly))
		err = errors.Join(os.WriteFile(s.path(lockFile), []byte(text), 0o600), atomicfile.Sweep(s.dir))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("onboard %s: %w", s.target.Node, err), l.Close())
	}
	return func() { _ = l.Close() }, nil
}

// makeDirs makes the directories, the user's alone, and refuses those of others.
func (s *Store) makeDirs() error {
	if _, err := os.Lstat(s.path(archiveDir)); errors.Is(err, fs.ErrNotExist) {
		err := os.MkdirAll(s.path(archiveDir), 0o700)
		if err := errors.Join(err, atomicfile.SyncDir(s.dir), atomicfile.SyncDir(filepath.Dir(s.dir))); err != nil {
			return err
		}
	}
	for _, dir := range []string{s.dir, s.path(archiveDir)} {
		info, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		if !info.IsDir() || !ours(info) {
			return fmt.Errorf("%s is not a directory of this user: remove it", dir)
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// holder is what the lock's holder wrote about itself.
func (s *Store) holder() string {
	text, _ := os.ReadFile(s.path(lockFile))
	return strings.TrimSpace(string(text))
}

// locked tells whether a process works on the target. It neither takes the lock, nor waits for it, nor makes its file.
func (s *Store) locked() (bool, error) {
	l := flock.New(s.path(lockFile), flock.SetFlag(os.O_RDONLY))
	defer func() { _ = l.Close() }()
	ok, err := l.TryRLock()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && !ok, err
}
