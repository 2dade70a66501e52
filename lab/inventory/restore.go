package inventory

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8slab/lab/atomicfile"
)

// saved is the ending of what stood in the place of a file that was put back. No program reads a file with this ending.
const saved = ".k8slab-saved"

// Restore makes the tree at root what the list says, and returns what it put back. The contents of files that differ are read from a tar
// archive, whose entries have the files' paths; what the archive does not have stays as it is. Modes, owners and times come from the list.
// A content that is not the list's is refused. What stood in a file's place is kept beside it. Masks are removed; other extra files stay.
// Each file is replaced as a whole, and one that failed does not stop the others.
func (l List) Restore(ctx context.Context, root string, contents io.Reader) ([]Difference, error) {
	found, err := l.Compare(ctx, root)
	if err != nil {
		return nil, err
	}
	var done []Difference
	var errs []error
	tell := func(d Difference, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("put %s back: %w", d.Path, err))
			return
		}
		done = append(done, d)
	}
	waiting := map[string]Difference{} // for their contents
	for _, d := range found {
		switch f, listed := l.find(d.Path); {
		case d.Kind == Masks:
			tell(d, os.Remove(filepath.Join(root, d.Path)))
		case !listed: // another extra file
		case d.Needs != "":
			waiting[d.Path] = d
		default:
			tell(d, f.restore(root))
		}
	}
	err = fromTar(contents, func(at string, content io.Reader) error {
		d, waits := waiting[at]
		if f, _ := l.find(at); waits && ctx.Err() == nil {
			tell(d, f.replace(root, content))
		}
		return context.Cause(ctx)
	})
	return done, errors.Join(append(errs, err, l.setTimes(root))...)
}

// fromTar calls each with the entries of an archive, which may be empty.
func fromTar(archive io.Reader, each func(path string, content io.Reader) error) error {
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = each(h.Name, r)
		}
		if err != nil {
			return err
		}
	}
}

// restore puts back what takes no content: a directory, a link, a mode, an owner.
func (f File) restore(root string) error {
	at := filepath.Join(root, f.Path)
	is, known, err := fileAt(root, f.Path)
	there := err == nil && known && is.Type == f.Type
	if there && f.Type != Link {
		return errors.Join(os.Lchown(at, f.UID, f.GID), os.Chmod(at, f.fileMode())) // chown(2) clears set-ID bits
	}
	if err == nil {
		if err := errors.Join(aside(at), removed(at)); err != nil {
			return err
		}
	}
	if f.Type == Directory {
		return errors.Join(os.MkdirAll(at, 0o755), os.Lchown(at, f.UID, f.GID), os.Chmod(at, f.fileMode()))
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	return errors.Join(os.Symlink(f.Target, at), os.Lchown(at, f.UID, f.GID))
}

// replace writes the file with the content, if it is the list's.
func (f File) replace(root string, content io.Reader) error {
	at := filepath.Join(root, f.Path)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	// atomicfile would rename the new one before its owner and time are right, and what looks then sees a difference.
	whole, err := os.CreateTemp(filepath.Dir(at), ".new-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(whole.Name()) }()
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(whole, sum), content)
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		err = errors.New("the content that was given is another")
	}
	when := time.Unix(f.Time, 0)
	err = errors.Join(err, whole.Chown(f.UID, f.GID), whole.Chmod(f.fileMode()), os.Chtimes(whole.Name(), when, when), whole.Sync(),
		whole.Close())
	if err == nil {
		err = aside(at)
	}
	if err != nil {
		return err
	}
	return errors.Join(os.Rename(whole.Name(), at), atomicfile.SyncDir(filepath.Dir(at)))
}

// removed takes away what aside has left in its place.
func removed(at string) error {
	if err := os.Remove(at); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// aside keeps what is at the path under a name that nothing reads. It leaves plain files in their place, for a rename over them. Empty
// files and directories hold nothing to keep.
func aside(at string) error {
	info, err := os.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().IsRegular() && info.Size() == 0 {
		return nil
	}
	if info.IsDir() && os.Remove(at) == nil {
		return nil
	}
	to := at + saved
	for i := 1; ; i++ {
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			break
		}
		to = fmt.Sprintf("%s%s-%d", at, saved, i)
	}
	if info.Mode().IsRegular() && os.Link(at, to) == nil {
		return nil
	}
	return os.Rename(at, to)
}

// setTimes gives files with the right content the list's time, so that the next comparison need not read them.
func (l List) setTimes(root string) error {
	var errs []error
	for _, f := range l.Files {
		if f.Type != Plain {
			continue
		}
		is, known, err := fileAt(root, f.Path)
		if err != nil || !known || is.Type != Plain || is.Time == f.Time || f.content(root, is) != "" {
			continue
		}
		when := time.Unix(f.Time, 0)
		errs = append(errs, os.Chtimes(filepath.Join(root, f.Path), when, when))
	}
	return errors.Join(errs...)
}
