package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// newFile refuses to write a file that exists, unless it may be replaced.
func newFile(path string, force bool) error {
	if path == "" || force {
		return nil
	}
	_, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%s exists: name another file, or replace it with --force", path)
}
