package lab

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"k8slab/lab/atomicfile"
	"k8slab/lab/node"
)

// StateDir is where labs are kept: $XDG_STATE_HOME/k8slab, by default ~/.local/state/k8slab.
func StateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "k8slab"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no place for the lab's state: %w; set HOME or XDG_STATE_HOME", err)
	}
	return filepath.Join(home, ".local", "state", "k8slab"), nil
}

// state is a lab's directory: its identity, its keys and what belongs to its machines. Everything in it is the user's alone.
type state struct{ dir string }

// openState refuses a directory in which another user can change files: what is in it names processes that are ended and files that are removed.
func openState(name string) (state, error) {
	root, err := StateDir()
	if err != nil {
		return state{}, err
	}
	s := state{dir: filepath.Join(root, name)}
	for _, dir := range []string{root, s.dir} {
		if _, err := os.Lstat(dir); err != nil {
			break // there is none, or whoever reads it says why not
		}
		if err := atomicfile.CheckDir(dir); err != nil {
			return s, fmt.Errorf("state of lab %s: %w", name, err)
		}
	}
	return s, nil
}

func (s state) path(elem ...string) string { return filepath.Join(append([]string{s.dir}, elem...)...) }

func (s state) exists() bool {
	_, err := os.Stat(s.path("id"))
	return err == nil
}

// id is the lab's UUID, by which its libvirt objects are known; made when first asked for. It is a part of paths and names.
func (s state) id() (string, error) {
	data, err := s.once("id", func() ([]byte, error) { return []byte(uuid.NewString()), nil })
	if err != nil {
		return "", err
	}
	id, err := uuid.Parse(string(data))
	if err != nil || id.String() != string(data) {
		return "", fmt.Errorf("%s has no UUID in it; next: write the one that libvirt knows the lab's machines by (virsh dumpxml: attribute id of the element machine)", s.path("id"))
	}
	return id.String(), nil
}

// machineID is the systemd machine-id of a node: it stays when the machine is built anew, because kubelet reports it and containers share
// the computer's own DMI identity.
func machineID(labID, node string) string {
	h := sha256.Sum256([]byte("machine-id " + labID + "/" + node))
	return hex.EncodeToString(h[:16])
}

// once returns the content of a file of the state, after making it if it is not there.
func (s state) once(name string, make func() ([]byte, error)) ([]byte, error) {
	path := s.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return atomicfile.Once(path, make)
}

// write replaces a file of the state as a whole, readable by the user alone.
func (s state) write(name string, data []byte) error {
	path := s.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, atomicfile.Private, data)
}

// keyPair returns a key of the state: the private part, which alone is kept, and the public one.
func (s state) keyPair(name string) (private, public []byte, err error) {
	if private, err = s.once(name, node.GenerateKey); err != nil {
		return nil, nil, err
	}
	if public, err = node.PublicKey(private); err != nil {
		return nil, nil, fmt.Errorf("%s: %w; next: labctl down, then up", s.path(name), err)
	}
	return private, bytes.TrimSpace(public), nil
}

// LockedError is another labctl at work on the lab.
type LockedError struct{ Lab, Holder string }

func (e *LockedError) Error() string {
	return fmt.Sprintf("lab %s is in use by %s; wait for it, or end it and run this again", e.Lab, e.Holder)
}

// lock takes the lab for this process, which frees it by ending, however it ends.
func lock(name, purpose string) (release func(), err error) {
	path, err := lockPath(name)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	// A file that is there could be locked all the same, and the lab be changed or removed without the state knowing.
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
	// For people alone, so that it may fail: what frees a full disk takes the lock first.
	_ = os.WriteFile(path, fmt.Appendf(nil, "%s (process %d, since %s)\n", purpose, os.Getpid(), time.Now().Format(time.TimeOnly)), 0o600)
	return func() { _ = l.Close() }, nil
}

// LockFaults takes the faults of the lab for this process, which calls other labctls: two such at once would undo each other's.
func (l *Lab) LockFaults(purpose string) (release func(), err error) {
	release, err = lock(l.cluster.Name+".faults", purpose)
	if held, is := errors.AsType[*LockedError](err); is {
		held.Lab = l.cluster.Name
	}
	return release, err
}

func lockPath(name string) (string, error) {
	root, err := StateDir()
	return filepath.Join(root, name+".lock"), err
}

// locked tells whether a process has the lab, for a look that neither takes it nor waits.
func locked(name string) (bool, error) {
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

// usesImage notes the newest image directory of a kind: image, disk or bundle.
func (s state) usesImage(kind, dir string) error {
	return errors.Join(s.keepImage(dir), s.write(kind, []byte(dir)))
}

// keepImage keeps an image directory from being pruned until the lab is gone: a machine needs the one that it was made from, which need not
// be the newest.
func (s state) keepImage(dir string) error {
	used, err := os.ReadFile(s.path(imagesFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if slices.Contains(strings.Split(string(used), "\n"), dir) {
		return nil
	}
	return s.write(imagesFile, append(used, dir+"\n"...))
}

// imagesFile has the image directories that something of the lab is made from, one a line.
const imagesFile = "images"

// ImagesInUse lists the image directories that labs of this user are made from.
func ImagesInUse() ([]string, error) {
	root, err := StateDir()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(root, "[^.]*", imagesFile))
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, f := range files {
		used, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, strings.Split(strings.TrimSpace(string(used)), "\n")...)
	}
	return dirs, nil
}
