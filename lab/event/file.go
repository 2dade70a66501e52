package event

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

type file struct {
	*jsonLines
	f *os.File
}

// File appends JSON lines to a file that only its owner can read, and creates the file and its directories when they are missing. It
// refuses a symbolic link in the file's place, and anything else that is not a regular file.
func File(path string) (Sink, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, unwritable(path, err)
	}
	// Without O_NONBLOCK, opening a planted fifo would wait for its reader.
	const flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND | syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, unwritable(path, err)
	}
	if err := makePrivate(f); err != nil {
		return nil, errors.Join(fmt.Errorf("run log %s: %w", path, err), f.Close())
	}
	return &file{jsonLines: &jsonLines{out: newOutput(f)}, f: f}, nil
}

// unwritable says where the log was to be. The usual reason is that the user is not the one whose labs these are.
func unwritable(path string, err error) error {
	if cause, ok := errors.AsType[*os.PathError](err); ok {
		err = cause.Err
	}
	err = fmt.Errorf("cannot write the log of this run into %s: %w", filepath.Dir(path), err)
	if errors.Is(err, os.ErrPermission) {
		err = fmt.Errorf("%w; run as root, or set XDG_STATE_HOME to a directory of your own", err)
	}
	return err
}

func makePrivate(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	return f.Chmod(0o600)
}

func (f *file) Close() error {
	return errors.Join(f.jsonLines.Close(), f.f.Close())
}
