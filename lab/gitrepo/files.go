package gitrepo

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"k8slab/lab/atomicfile"
)

// readPrivate reads a file that only its owner can read or write.
func readPrivate(path string) ([]byte, error) {
	// Without O_NONBLOCK, opening a fifo would wait for its writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("others can read or write %s, its mode is %#o: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// keep writes the kustomization as it is before the activation into the backup, as a whole.
func (r *Repository) keep(content []byte) error {
	if r.Backup == "" {
		return nil
	}
	if err := atomicfile.Write(r.Backup, atomicfile.Private, content); err != nil {
		return fmt.Errorf("keep a backup: %w", err)
	}
	return nil
}

// before is the content that the backup kept; nil if it did not, or was lost.
func (r *Repository) before() []byte {
	data, err := os.ReadFile(r.Backup)
	if err != nil {
		return nil
	}
	return data
}
