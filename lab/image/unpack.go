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

	"k8slab/lab/atomicfile"
)

// Unpack writes the program, from packed in gzip's format, into the cache, unless it is there with the same bytes, and returns its path.
// The cache's directory must belong to the caller: the program runs as root on every node.
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
	if err := atomicfile.CheckDir(dir); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	if has, err := fileHash(path); err == nil && has == want {
		return path, touch(dir)
	}
	return path, atomicfile.Write(path, 0o755, program)
}
