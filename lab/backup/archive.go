package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8slab/lab/node"
	"k8slab/lab/session"
)

// covered are the files and directories of a node that are saved, without the first slash: what labctl, kubeadm and kubelet change. Not
// /etc/kubernetes as a whole: kubeadm keeps old etcd data in it.
var covered = []string{
	"etc/kubernetes/*.conf", "etc/kubernetes/manifests", "etc/kubernetes/pki",
	"var/lib/kubelet/config.yaml", "var/lib/kubelet/kubeadm-flags.env", "var/lib/kubelet/instance-config.yaml", "var/lib/kubelet/pki",
	"etc/systemd/system/kubelet.service.d", "usr/lib/systemd/system/kubelet.service.d",
	"etc/default/kubelet", "etc/sysconfig/kubelet",
	"etc/cni/net.d", "etc/containerd/config.toml", "etc/crio", "etc/fstab", "etc/modules-load.d/k8slab.conf", "etc/sysctl.d/99-k8slab.conf",
}

func isCovered(name string) bool {
	return slices.ContainsFunc(covered, func(pattern string) bool {
		match, _ := path.Match(pattern, name)
		return match || strings.HasPrefix(name, pattern+"/")
	})
}

// A node's archive is limited: a node is not trusted.
const (
	mostBytes   = 256 << 20 // before compression
	mostFiles   = 20_000
	mostSkipped = 100
)

// endMark follows a node's archive that is complete.
const endMark = "k8slab: complete\n"

// packScript writes a tar archive of what exists of the patterns $2, below the directory $1, and then the mark $3. A pattern's directory may
// be a link, as /etc/kubernetes/pki on another disk is. A file that changes meanwhile is no failure.
const packScript = `set -eu
cd -- "$1"
patterns=$2
mark=$3
set --
for p in $patterns; do
	if [ -d "$p" ]; then set -- "$@" "$p/"
	elif [ -e "$p" ] || [ -L "$p" ]; then set -- "$@" "$p"
	fi
done
[ $# -gt 0 ] || set -- --files-from=/dev/null
status=0
tar --create --file=- --hard-dereference --numeric-owner --warning=no-file-changed "$@" || status=$?
[ "$status" -le 1 ] || exit "$status"
printf %s "$mark"
`

// collect calls each for every file of the node that is saved. It changes nothing. skipped are those that cannot be.
func collect(ctx context.Context, n session.Node, each func(*tar.Header, io.Reader) error) (skipped []string, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	archive, into := io.Pipe()
	read := make(chan error, 1)
	go func() {
		var bad error
		if skipped, bad = sift(archive, true, each); bad != nil {
			stop(bad)
		}
		_ = archive.CloseWithError(bad)
		read <- bad
	}()
	argv := []string{"sh", "-c", packScript, "sh", "/", strings.Join(covered, " "), endMark}
	err = n.Run(ctx, node.Command{Argv: argv, Stdout: into, ReadOnly: true})
	_ = into.CloseWithError(err)
	bad := <-read
	if err != nil && (errors.Is(bad, err) || !errors.Is(err, bad)) { // the archive is cut off because the node failed, not the other way round
		return nil, err
	}
	if bad != nil {
		return nil, fmt.Errorf("%s: read the archive of its files: %w", n.Name(), bad)
	}
	return skipped, nil
}

// sift reads an archive and calls each for its files, directories and links, with what matters of their headers. Whatever else is in it is
// skipped. An archive with a name that no such archive has is refused as a whole.
func sift(r io.Reader, marked bool, each func(*tar.Header, io.Reader) error) (skipped []string, err error) {
	limited := &io.LimitedReader{R: r, N: mostBytes}
	types := map[string]byte{}
	for archive := tar.NewReader(limited); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) && limited.N > 0 {
			break
		}
		var name string
		if err == nil {
			name, err = nameOf(h, types)
		}
		if err == nil && name == "" {
			if skipped = append(skipped, h.Name); len(skipped) > mostSkipped {
				return nil, fmt.Errorf("it has more than %d entries that are no files, directories or links", mostSkipped)
			}
			continue
		}
		if err == nil {
			err = each(plain(h, name), archive)
		}
		if limited.N <= 0 {
			return nil, fmt.Errorf("it is larger than %d MiB", mostBytes>>20)
		}
		if err != nil {
			return nil, err
		}
	}
	rest, err := io.ReadAll(io.LimitReader(limited, 64<<10)) // the padding
	if err == nil && marked && !bytes.HasSuffix(rest, []byte(endMark)) {
		err = io.ErrUnexpectedEOF
	}
	return skipped, err
}

// nameOf is the name of an entry, "" for one that is skipped. types has the entries before it.
func nameOf(h *tar.Header, types map[string]byte) (string, error) {
	name := strings.TrimSuffix(h.Name, "/")
	odd := strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
	if odd || !utf8.ValidString(name) || !slices.Contains([]byte{tar.TypeReg, tar.TypeDir, tar.TypeSymlink}, h.Typeflag) {
		return "", nil
	}
	if !fs.ValidPath(name) || !isCovered(name) {
		return "", fmt.Errorf("it has %q, which is not among the files that are saved", h.Name)
	}
	if _, twice := types[name]; twice {
		return "", fmt.Errorf("it has %q twice", h.Name)
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if t, ok := types[dir]; ok && t != tar.TypeDir {
			return "", fmt.Errorf("it has %q below what is no directory", h.Name)
		}
	}
	types[name] = h.Typeflag
	if len(types) > mostFiles {
		return "", fmt.Errorf("it has more than %d files", mostFiles)
	}
	return name, nil
}

// plain is a header with nothing but what is saved.
func plain(h *tar.Header, name string) *tar.Header {
	p := &tar.Header{
		Typeflag: h.Typeflag, Name: name, Mode: h.Mode & 0o7777, Uid: h.Uid, Gid: h.Gid, ModTime: h.ModTime, Format: tar.FormatPAX,
	}
	switch h.Typeflag {
	case tar.TypeReg:
		p.Size = h.Size
	case tar.TypeSymlink:
		p.Linkname = h.Linkname
	}
	return p
}
