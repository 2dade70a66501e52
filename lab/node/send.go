package node

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// copyScript takes directory, file, mode, end mark and its length. Only content followed by the mark is complete: a broken connection ends
// stdin just like the end of the content. The temporary's name is known before it exists, so that an interruption at any moment removes it;
// noclobber makes sure it is a new file.
const copyScript = `set -eu
umask 022
mkdir -p -- "$1"
umask 077
temp=$1/.copy.$4
trap 'rm -f -- "$temp"' EXIT
trap 'exit 1' HUP INT TERM
set -C
cat >"$temp"
if [ "$(tail -c "$5" -- "$temp" | tr -d '\000')" != "$4" ]; then
	echo "content did not arrive completely" >&2
	exit 1
fi
truncate -s "-$5" -- "$temp"
chmod "$3" -- "$temp"
mv -fT -- "$temp" "$2"
trap - EXIT
`

// Copy writes a file on the node atomically: whoever looks sees the old file or the new one, and before it has its final mode only its
// owner can read it. Missing parent directories are made with mode 0755. A symlink at file is replaced, not followed.
func (n *Node) Copy(ctx context.Context, file string, mode fs.FileMode, content io.Reader) error {
	argv := []string{"copy", file}
	if !path.IsAbs(file) || path.Clean(file) != file || file == "/" {
		return n.commandError(argv, fmt.Errorf("not a clean absolute path"))
	}
	if mode&^fs.ModePerm != 0 {
		return n.commandError(argv, fmt.Errorf("mode %v is more than permissions", mode))
	}
	mark := rand.Text()
	line, err := commandLine([]string{
		"sh", "-c", copyScript, "sh", path.Dir(file), file,
		fmt.Sprintf("%04o", mode), mark, strconv.Itoa(len(mark)),
	})
	if err != nil {
		return n.commandError(argv, err)
	}
	return n.run(ctx, job{
		argv: argv, line: line, mutates: true,
		stdin: io.MultiReader(content, strings.NewReader(mark)),
	})
}

// targetScript takes a destination and the base name of the copy, "" for a file that must not go into a directory. It prints the absolute
// path to which cp would write.
const targetScript = `set -eu
target=$1
if [ -d "$target" ]; then
	[ -n "$2" ] || { echo "$target is a directory: name a file in it" >&2; exit 1; }
	target=${target%/}/$2
fi
if [ -L "$target" ]; then target=$(readlink -f -- "$target"); fi
dir=$(dirname -- "$target")
case $target in */) dir=$target;; esac
[ -d "$dir" ] || { echo "there is no directory $dir" >&2; exit 1; }
cd -- "$dir"
printf %s "$(pwd -P)/$(basename -- "$target")"
`

// target is the path on the node to which a copy to dst writes.
func (n *Node) target(ctx context.Context, dst, base string) (string, error) {
	out, err := n.Read(ctx, "sh", "-c", targetScript, "sh", here(dst), base)
	if err != nil {
		return "", n.said(err)
	}
	return path.Clean(out), nil
}

// here makes a path that no command mistakes for a flag; "" is the home directory, where commands start.
func here(p string) string {
	if path.IsAbs(p) {
		return p
	}
	return "./" + p
}

// said is the error of one of our scripts, in the script's words.
func (n *Node) said(err error) error {
	if exit, is := errors.AsType[*ExitError](err); is && exit.Stderr != "" {
		return fmt.Errorf("%s: %s", n.name, lastLines(exit.Stderr))
	}
	return err
}

// Send copies a file or a directory of this computer to the node, as cp -r would: into dst if that is a directory, else to that name. Modes
// and links are kept; the owner is root. A file is replaced as a whole.
func (n *Node) Send(ctx context.Context, src, dst string) error {
	info, err := os.Stat(src)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no %s on this computer", src)
	}
	if err != nil {
		return err
	}
	full, err := filepath.Abs(src)
	if err != nil {
		return err
	}
	target, err := n.target(ctx, dst, filepath.Base(full))
	if err != nil {
		return err
	}
	if info.IsDir() {
		return n.sendTree(ctx, full, target)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is neither a file nor a directory", src)
	}
	f, err := os.Open(src)
	if err != nil {
		return err
	}
	defer f.Close()
	return n.Copy(ctx, target, info.Mode().Perm(), f)
}

// SendFrom writes the content of a stream to a file on the node.
func (n *Node) SendFrom(ctx context.Context, content io.Reader, dst string) error {
	target, err := n.target(ctx, dst, "")
	if err != nil {
		return err
	}
	return n.Copy(ctx, target, 0o644, content)
}

func (n *Node) sendTree(ctx context.Context, src, target string) error {
	archive, into := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := pack(into, src, path.Base(target))
		into.CloseWithError(err)
		packed <- err
	}()
	err := n.Run(ctx, Command{Stdin: archive, Argv: []string{
		"tar", "--extract", "--file=-", "--directory=" + path.Dir(target), "--no-same-owner", "--same-permissions", "--no-overwrite-dir",
	}})
	archive.CloseWithError(io.ErrClosedPipe) // it may have ended early
	if bad := <-packed; bad != nil && !errors.Is(bad, io.ErrClosedPipe) {
		return bad
	}
	return n.said(err)
}

// pack writes a directory as a tar archive, in which its name is base.
func pack(w io.Writer, dir, base string) error {
	t := tar.NewWriter(w)
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		return packOne(t, p, path.Join(base, rel), d)
	})
	return errors.Join(err, t.Close())
}

func packOne(t *tar.Writer, file, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	link := ""
	switch {
	case info.Mode().IsRegular() || info.IsDir():
	case info.Mode()&fs.ModeSymlink != 0:
		if link, err = os.Readlink(file); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%s is neither a file, a directory nor a link", file)
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	h.Name, h.Format = name, tar.FormatPAX
	if info.IsDir() {
		h.Name += "/"
	}
	h.AccessTime, h.ChangeTime = time.Time{}, time.Time{}
	h.Uid, h.Gid, h.Uname, h.Gname = 0, 0, "root", "root"
	h.Mode &= int64(fs.ModePerm)
	if err := t.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(t, f)
	return err
}
