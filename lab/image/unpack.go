package image

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Unpack returns the path of the program in the cache, after writing it there unless it is there with the same bytes. packed is in gzip's
// format. The directory is the caller's own: what is in it runs as root on every node.
func Unpack(name string, packed []byte) (string, error) {
	cacheDir, err := CacheDir()
	if err != nil {
		return "", err
	}
	zipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", fmt.Errorf("unpack %s: %w", name, err)
	}
	program, err := io.ReadAll(zipped)
	if err != nil {
		return "", fmt.Errorf("unpack %s: %w", name, err)
	}
	sum := sha256.Sum256(program)
	want := hex.EncodeToString(sum[:])
	dir := filepath.Join(cacheDir, name+"-"+want[:16])
	if err := (cache{dir: cacheDir}).make(); err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if err := ownDirectory(dir); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	if has, err := fileHash(path); err == nil && has == want {
		return path, touch(dir)
	}
	return path, writeProgram(path, program)
}

// ownDirectory refuses a directory in which another user can change files, but for root, who can anyway.
func ownDirectory(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(owner.Uid) != os.Geteuid() && owner.Uid != 0 || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s (%s): other users can change what is in it; next: remove it", dir, info.Mode())
	}
	return nil
}

// writeProgram replaces the file as a whole: whoever looks sees no half of it.
func writeProgram(path string, program []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	_, err = tmp.Write(program)
	if err := errors.Join(err, tmp.Chmod(0o755), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
