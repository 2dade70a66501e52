// Package atomicfile writes the files that a later run reads, and says which of those that are there can be believed. A file is replaced as a whole,
// and is on the disk when a function returns: whoever looks, even after a crash of the computer, finds the old content or the new one.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Private is the mode of files that only their owner reads.
const Private fs.FileMode = 0o600

// temporary begins the names of files that are not whole yet. Those of a process that was killed stay until Sweep.
const temporary = ".new-"

// Rename is os.Rename: the moment at which a write counts, for tests to have it fail.
var Rename = os.Rename

// Write replaces the file's content.
func Write(path string, mode fs.FileMode, content []byte) error {
	return Replace(path, mode, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// Replace replaces the file by what fill writes. If anything fails, the old one stays.
func Replace(path string, mode fs.FileMode, fill func(io.Writer) error) error {
	return place(path, mode, fill, func(whole string) error { return Rename(whole, path) })
}

// place fills a file beside the path, has put give it the path's name when it is on the disk, and leaves nothing else.
func place(path string, mode fs.FileMode, fill func(io.Writer) error, put func(whole string) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, temporary)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	err = fill(f)
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := put(f.Name()); err != nil {
		return err
	}
	return SyncDir(dir)
}

// Once returns the content of the file, after making it, readable by its owner alone, if it is not there. Of several who make it at once one wins, and
// all get what that one made.
func Once(path string, make func() ([]byte, error)) ([]byte, error) {
	content, err := os.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return content, err
	}
	if content, err = make(); err != nil {
		return nil, err
	}
	fill := func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	}
	err = place(path, Private, fill, func(whole string) error { return os.Link(whole, path) })
	if errors.Is(err, fs.ErrExist) {
		return os.ReadFile(path)
	}
	return content, err
}

// SyncDir puts the names in a directory onto the disk.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Export fills a file that a user named, readable by its owner alone. A file that is there is replaced; into a device or a pipe, as /dev/stdout may
// be one, the content is written. A link to another file is refused: replacing it would cut the link.
func Export(path string, fill func(io.Writer) error) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular() {
		if link, err := os.Lstat(path); err == nil && link.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%s is a link; next: name the file that it leads to", path)
		}
		return Replace(path, Private, fill)
	}
	if err != nil {
		return err
	}
	if info.Mode()&(fs.ModeCharDevice|fs.ModeNamedPipe) == 0 {
		return fmt.Errorf("%s is neither a file, nor a pipe, nor a character device", path)
	}
	w, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(fill(w), w.Close())
}

// Sweep removes what killed processes left in a directory. Its caller holds the lock of whatever writes there.
func Sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), temporary) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// CheckDir refuses a directory in which a user other than this one and root can change files, and what is no directory.
func CheckDir(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", path)
	case !known || int(owner.Uid) != os.Geteuid() && owner.Uid != 0:
		return fmt.Errorf("%s belongs to another user, who can change what is in it; next: look at it, and remove it", path)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s: other users can change what is in it, its mode is %#o; next: look at it, and remove it or run chmod go-w", path, info.Mode().Perm())
	}
	return nil
}

// ReadPrivate reads at most limit bytes of a file that only its owner can read or write.
func ReadPrivate(path string, limit int64) ([]byte, error) {
	// Without O_NONBLOCK, opening a fifo would wait for its writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("others can read or write %s, its mode is %#o: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	return io.ReadAll(io.LimitReader(f, limit))
}
