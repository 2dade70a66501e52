package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"

	"k8slab/lab/command"
	"k8slab/lab/event"
)

// cache keeps built things under the hash of everything that went into them. A thing is built in a directory beside its place and
// renamed when whole, so what is there is complete, and a lock per thing lets a second builder wait for the first.
type cache struct {
	dir    string
	events *event.Stream
	only   bool // what is there is to be had, and nothing is built
}

// ErrNotBuilt is the error for an image, or a part of it, that was to be found in the cache and is not there.
var ErrNotBuilt = errors.New("the node image of cluster.yaml is not built; next: labctl image build")

// CacheDir is where images are kept: $XDG_CACHE_HOME/k8slab, by default ~/.cache/k8slab.
func CacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory: %w; set HOME or XDG_CACHE_HOME", err)
	}
	return filepath.Join(dir, "k8slab"), nil
}

func hash(inputs ...string) string {
	h := sha256.New()
	for _, in := range inputs {
		_, _ = fmt.Fprintf(h, "%d %s\n", len(in), in) // lengths keep ("ab","c") and ("a","bc") apart
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// path is where the thing <kind>-<hash of inputs> is when it is built.
func (c cache) path(kind string, inputs []string) string {
	return filepath.Join(c.dir, kind+"-"+hash(inputs...))
}

// get returns the directory of the thing, after build has filled it if it was not there.
func (c cache) get(ctx context.Context, kind string, inputs []string, build func(dir string, step *event.Step) error) (string, error) {
	path := c.path(kind, inputs)
	if exists(path) {
		return path, touch(path)
	}
	if c.only {
		return "", ErrNotBuilt
	}
	step := c.events.Start("", "image: "+kind, 0)
	return path, step.End(c.locked(ctx, path, step, func() error {
		if exists(path) { // built by another process meanwhile
			return nil
		}
		if err := needRoot(ctx, c.dir); err != nil {
			return err
		}
		if err := c.sweep(filepath.Base(path)); err != nil {
			return err
		}
		if err := room(c.dir, need); err != nil {
			return err
		}
		tmp, err := os.MkdirTemp(c.dir, filepath.Base(path)+partial)
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(tmp) }()
		if err := os.Chmod(tmp, 0o755); err != nil {
			return err
		}
		if err := build(tmp, step); err != nil {
			return fmt.Errorf("build %s: %w", kind, err)
		}
		return os.Rename(tmp, path)
	}))
}

const (
	partial    = ".partial-"
	downloads  = partial + "download" // what has arrived of a thing; the next build goes on from there
	lockSuffix = ".lock"
)

// need is the disk space for building the largest thing, a virtual machine's disk, both raw and converted.
const need = 5 << 30 // bytes

// room fails if the filesystem of dir has fewer bytes free: otherwise a build would fail half an hour later, with a message of some
// program.
func room(dir string, bytes uint64) error {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if free := s.Bavail * uint64(s.Bsize); free < bytes {
		return fmt.Errorf("%s has %d MiB free, and a build takes up to %d; free some, for example old images: labctl image prune --unused-for 1h", dir, free>>20, bytes>>20)
	}
	return nil
}

// make makes the cache's directory. With sudo it gets the owner of the home that it is in, who must be able to use it later.
func (c cache) make() error {
	if exists(c.dir) {
		return nil
	}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	uid, uidErr := strconv.Atoi(os.Getenv("SUDO_UID"))
	gid, gidErr := strconv.Atoi(os.Getenv("SUDO_GID"))
	var home syscall.Stat_t
	if err := syscall.Stat(filepath.Dir(c.dir), &home); err != nil || uidErr != nil || gidErr != nil || int(home.Uid) != uid {
		return err
	}
	return os.Chown(c.dir, uid, gid)
}

// locked runs do while it holds the thing's lock. The kernel frees the lock when the process ends.
func (c cache) locked(ctx context.Context, path string, step *event.Step, do func() error) error {
	if err := c.make(); err != nil {
		return err
	}
	lock := flock.New(path + lockSuffix)
	defer func() { _ = lock.Close() }()
	if ok, err := lock.TryLock(); err != nil {
		return err
	} else if !ok {
		step.Progress("another process is building it")
		if _, err := lock.TryLockContext(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	return do()
}

// sweep removes what an interrupted build of the thing left, except downloads. The caller holds its lock.
func (c cache) sweep(name string) error {
	left, err := filepath.Glob(filepath.Join(c.dir, name+partial+"*"))
	if err != nil {
		return err
	}
	for _, dir := range left {
		if strings.HasSuffix(dir, downloads) {
			continue
		}
		if err := removeTree(dir); err != nil {
			return err
		}
	}
	return nil
}

// sweepAll removes what interrupted builds left, including downloads, except for things that are being built now.
func sweepAll() error {
	dir, err := CacheDir()
	if err != nil {
		return err
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"+partial+"*"))
	if err != nil {
		return err
	}
	c := cache{dir: dir}
	for _, path := range left {
		name, _, _ := strings.Cut(filepath.Base(path), partial)
		lock := flock.New(filepath.Join(dir, name) + lockSuffix)
		if ok, err := lock.TryLock(); err != nil {
			return err
		} else if ok {
			err = errors.Join(c.sweep(name), removeTree(filepath.Join(dir, name)+downloads))
			_ = lock.Close()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// removeTree removes a directory after unmounting whatever an interrupted build left mounted in it.
func removeTree(dir string) error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	lines := strings.Split(string(mounts), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if f := strings.Fields(lines[i]); len(f) > 1 && strings.HasPrefix(f[1], dir+"/") {
			if err := syscall.Unmount(f[1], syscall.MNT_DETACH); err != nil {
				return fmt.Errorf("unmount %s: %w", f[1], err)
			}
		}
	}
	err = os.RemoveAll(dir)
	if os.Geteuid() == 0 || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	// Files of the user's sub-IDs, or root's.
	if _, err := command.Run(context.Background(), append(asRoot[:len(asRoot):len(asRoot)], "rm", "-rf", "--", dir)...); err != nil {
		return fmt.Errorf("%s has files of another user; next: sudo rm -rf %[1]s", dir)
	}
	return nil
}

// touch records the last use, by which Prune decides, unless the thing belongs to another user.
func touch(path string) error {
	now := time.Now()
	if err := os.Chtimes(path, now, now); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// size is the disk space that a tree takes, in bytes.
func size(dir string) (int64, error) {
	var total int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrPermission) { // a directory of the user's sub-IDs, which hold next to nothing
			return fs.SkipDir
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			total += st.Blocks * 512
		}
		return nil
	})
	return total, err
}

func fileHash(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}
