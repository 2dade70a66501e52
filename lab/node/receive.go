package node

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// packScript writes a tar archive of the file or directory $1, in which it has the name ./it, without those that standard input lists by their
// names in the archive. A file that changes meanwhile is no failure.
const packScript = `set -u
src=$(readlink -e -- "$1") || { echo "there is no $1" >&2; exit 3; }
[ -d "$src" ] || [ -f "$src" ] || { echo "$1 is neither a file nor a directory" >&2; exit 3; }
cd -- "$(dirname -- "$src")" || exit 3
tar --create --file=- --hard-dereference --warning=no-file-changed --anchored --no-wildcards --exclude-from=- -- "./$(basename -- "$src")"
status=$?
[ "$status" = 1 ] && exit 0
exit "$status"
`

// catScript writes the file $1.
const catScript = `set -eu
src=$(readlink -e -- "$1") || { echo "there is no $1" >&2; exit 1; }
[ -f "$src" ] || { echo "$1 is not a file" >&2; exit 1; }
exec cat -- "$src"
`

// Receive copies a file or a directory of the node to this computer, as cp -r would: into dst if that is a directory, else to that name.
// Modes and links are kept. The node is not trusted: whatever it sends, nothing is written outside of the destination, and no link out of
// it is followed.
func (n *Node) Receive(ctx context.Context, src, dst string) error {
	return n.ReceiveNew(ctx, src, dst, nil)
}

// ReceiveNew is Receive without the named files of the directory src, which it leaves as dst has them.
func (n *Node) ReceiveNew(ctx context.Context, src, dst string, without []string) error {
	target, err := localTarget(src, dst)
	if err != nil {
		return err
	}
	parent, err := os.OpenRoot(filepath.Dir(target))
	if err != nil {
		return err
	}
	defer func() { _ = parent.Close() }()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	archive, into := io.Pipe()
	unpacked := make(chan error, 1)
	go func() {
		err := unpack(archive, parent, filepath.Base(target))
		archive.CloseWithError(err)
		if err != nil {
			stop(err)
		}
		unpacked <- err
	}()
	var list strings.Builder
	for _, name := range without {
		_, _ = fmt.Fprintf(&list, "./%s/%s\n", path.Base(src), name)
	}
	err = n.Run(ctx, Command{Argv: []string{"sh", "-c", packScript, "sh", here(src)}, Stdin: strings.NewReader(list.String()), Stdout: into, ReadOnly: true})
	into.CloseWithError(err)
	bad := <-unpacked
	if err != nil && !errors.Is(err, bad) { // the archive is cut off because the node failed, not the other way round
		return n.said(err)
	}
	if bad != nil {
		return fmt.Errorf("%s: %w", n.name, bad)
	}
	return nil
}

// ReceiveTo writes the content of a file on the node.
func (n *Node) ReceiveTo(ctx context.Context, src string, w io.Writer) error {
	return n.said(n.Run(ctx, Command{Argv: []string{"sh", "-c", catScript, "sh", here(src)}, Stdout: w, ReadOnly: true}))
}

// localTarget is the path that cp would write to.
func localTarget(src, dst string) (string, error) {
	target := filepath.Clean(dst)
	switch info, err := os.Stat(dst); {
	case err == nil && info.IsDir():
		base := path.Base(path.Clean("/" + src))
		if base == "/" {
			return "", fmt.Errorf("SRC %q has no name of its own: name a DST that does not exist yet", src)
		}
		target = filepath.Join(dst, base)
	case err != nil && strings.HasSuffix(dst, "/"):
		return "", fmt.Errorf("there is no directory %s", dst)
	}
	if info, err := os.Stat(filepath.Dir(target)); err != nil || !info.IsDir() {
		return "", fmt.Errorf("there is no directory %s", filepath.Dir(target))
	}
	return target, nil
}

// unpack writes the content of packScript's archive: one file, or a directory and everything below it. It gets the name base in the root.
func unpack(r io.Reader, parent *os.Root, base string) error {
	u := unpacking{parent: parent, base: base, modes: map[string]fs.FileMode{}}
	archive := tar.NewReader(r)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			if !u.began {
				return errors.New("nothing arrived")
			}
			_, err = io.Copy(io.Discard, r) // the padding
			return errors.Join(err, u.end())
		}
		if err != nil {
			return errors.Join(err, u.end())
		}
		if err := u.entry(h, archive); err != nil {
			return errors.Join(err, u.end())
		}
	}
}

// unpacking is an archive that is being unpacked.
type unpacking struct {
	parent  *os.Root
	base    string
	began   bool
	tree    *os.Root // the copied directory; nil before its entry
	modes   map[string]fs.FileMode
	refused []string
}

// entry writes one entry. The first is the copied file or directory; all others are below it, and os.Root refuses paths out of it.
func (u *unpacking) entry(h *tar.Header, content io.Reader) error {
	_, rel, below := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(h.Name, "/"), "./"), "/")
	mode := fs.FileMode(h.Mode) & fs.ModePerm
	first := !u.began
	u.began = true
	switch {
	case !below && h.Typeflag == tar.TypeDir && first:
		return u.open(mode)
	case !below && h.Typeflag == tar.TypeReg && first:
		return writeIn(u.parent, u.base, mode, content)
	case !below || u.tree == nil:
		return fmt.Errorf("the archive has an unexpected entry %q", h.Name)
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return u.mkdir(rel, mode)
	case tar.TypeReg:
		return writeIn(u.tree, rel, mode, content)
	case tar.TypeSymlink:
		if err := u.tree.Remove(rel); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return u.tree.Symlink(h.Linkname, rel)
	}
	u.refused = append(u.refused, rel)
	return nil
}

// open makes the copied directory, unless it exists.
func (u *unpacking) open(mode fs.FileMode) (err error) {
	switch err := u.parent.Mkdir(u.base, 0o700); {
	case err == nil:
		u.modes[""] = mode
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	u.tree, err = u.parent.OpenRoot(u.base)
	return err
}

// mkdir makes a directory that the user can write to until the end. An existing one keeps its mode.
func (u *unpacking) mkdir(rel string, mode fs.FileMode) error {
	err := u.tree.Mkdir(rel, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		u.modes[rel] = mode
	}
	return err
}

// end sets the modes of the directories, the deepest first, because a mode may forbid writing.
func (u *unpacking) end() error {
	if u.tree == nil {
		return nil
	}
	defer func() { _ = u.tree.Close() }()
	var errs []error
	for _, dir := range deepestFirst(u.modes) {
		errs = append(errs, u.tree.Chmod(cmp.Or(dir, "."), u.modes[dir]))
	}
	if len(u.refused) > 0 {
		errs = append(errs, fmt.Errorf("not copied, as they are neither files, directories nor links: %s", strings.Join(u.refused, ", ")))
	}
	return errors.Join(errs...)
}

func deepestFirst(modes map[string]fs.FileMode) []string {
	return slices.SortedFunc(maps.Keys(modes), func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // a path is longer than its parent's
}

// writeIn replaces a file atomically. Until it has its mode, only the user can read it.
func writeIn(root *os.Root, name string, mode fs.FileMode, content io.Reader) error {
	temporary := path.Join(path.Dir(name), ".copy."+rand.Text())
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = io.Copy(f, content)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		_ = root.Remove(temporary)
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
