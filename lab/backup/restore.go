package backup

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"k8slab/lab/node"
	"k8slab/lab/session"
)

// Restored is what was put back on a node.
type Restored struct {
	Node    string   `json:"node"`
	Files   []string `json:"files"`             // put back
	Removed []string `json:"removed,omitempty"` // new ones
	Left    []string `json:"left,omitempty"`    // new ones that stay
	Did     []string `json:"did,omitempty"`     // commands that ran then
	Next    []string `json:"next,omitempty"`    // what is left to a person
}

// restoreScript reads a tar archive of files for the directory $1, with the lists .restore and .remove of their names, and then the empty
// .complete. It refuses to go through a link before it changes anything. Each file is replaced as a whole, and its name printed. A temporary
// begins with a dot and has no extension: kubelet, systemd and the CNI pass it over.
const restoreScript = `set -eu
umask 077
root=$(cd -- "$1" && pwd -P)
root=${root%/}
temp=
stage=$(mktemp -d)
trap 'rm -rf -- "$stage" ${temp:+"$temp"}' EXIT
trap 'exit 1' HUP INT TERM
tar --extract --file=- --directory="$stage" --same-permissions --same-owner --numeric-owner
[ -f "$stage/.complete" ] || { echo "the files did not arrive completely; nothing was changed" >&2; exit 1; }
cat -- "$stage/.restore" "$stage/.remove" >"$stage/.all"
while IFS= read -r p; do
	dir=$root/$(dirname -- "$p")
	real=$(readlink -m -- "$dir")
	[ "$real" = "$dir" ] || { echo "$dir leads through a link to $real; nothing was changed" >&2; exit 1; }
done <"$stage/.all"
while IFS= read -r p; do
	from=$stage/$p
	to=$root/$p
	if [ -d "$from" ] && [ ! -L "$from" ]; then
		[ ! -L "$to" ] || { echo "$to is a link, and was a directory" >&2; exit 1; }
		mkdir -p -- "$to"
		chown --reference="$from" -- "$to"
		chmod --reference="$from" -- "$to"
	else
		temp=$(dirname -- "$to")/.undo-$$
		cp -a -- "$from" "$temp"
		mv -fT -- "$temp" "$to"
		temp=
	fi
	! command -v restorecon >/dev/null 2>&1 || restorecon -F -- "$to" || :
	printf '%s\n' "$p"
done <"$stage/.restore"
while IFS= read -r p; do
	to=$root/$p
	if [ -d "$to" ] && [ ! -L "$to" ]; then rmdir -- "$to"; else rm -f -- "$to"; fi
	printf '%s\n' "$p"
done <"$stage/.remove"
`

// Restore puts files of the node back, with owner and mode: those of the paths that are in the backup. A path that is new since is removed.
// A path that does not differ is left alone; one outside of what is saved is refused. kubelet is restarted if one of its files changed.
func Restore(ctx context.Context, s *session.Session, b Backup, name string, paths []string) (Restored, error) {
	done := Restored{Node: name}
	changes, err := Diff(ctx, s, b, name)
	if err != nil {
		return done, err
	}
	for _, p := range paths {
		if !path.IsAbs(p) || path.Clean(p) != p || !isCovered(p[1:]) {
			return done, fmt.Errorf("%s: %s is not among the files that are saved; nothing was changed; next: see labctl undo show %s", name, p, b.ID)
		}
	}
	back, remove := choose(changes, paths)
	for _, c := range changes {
		if c.Kind == New && !slices.Contains(remove, c.Path[1:]) {
			done.Left = append(done.Left, c.Path)
		}
	}
	if len(back)+len(remove) == 0 {
		return done, nil
	}
	limited, cancel := s.Within(ctx, nodeBudget)
	defer cancel()
	wrote, err := b.send(limited, s.Nodes[name], name, back, remove)
	for _, p := range wrote {
		if slices.Contains(remove, p) {
			done.Removed = append(done.Removed, "/"+p)
		} else {
			done.Files = append(done.Files, "/"+p)
		}
	}
	if err != nil {
		return done, fmt.Errorf("%s: put back files of backup %s, %d of %d are done: %w; next: the archive is %s, see labctl undo show %[2]s",
			name, b.ID, len(wrote), len(back)+len(remove), err, b.Archive(name))
	}
	return done, done.reload(limited, s.Nodes[name])
}

// choose are the names to put back, with the directories above them that are gone, and the new ones to remove, the deepest first.
func choose(changes []Change, paths []string) (back, remove []string) {
	for _, c := range changes {
		wanted := slices.Contains(paths, c.Path)
		above := c.Kind == Missing && slices.ContainsFunc(paths, func(p string) bool { return strings.HasPrefix(p, c.Path+"/") })
		switch {
		case wanted && c.Kind == New:
			remove = append(remove, c.Path[1:])
		case wanted || above:
			back = append(back, c.Path[1:])
		}
	}
	slices.Reverse(remove) // by path: what is in a directory came behind it
	return back, remove
}

// send has the node replace the files, and returns the names of those that are done.
func (b Backup) send(ctx context.Context, on session.Node, name string, back, remove []string) (wrote []string, err error) {
	saved, err := b.node(name)
	if err != nil {
		return nil, err
	}
	archive, into := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := b.pack(into, saved, back, remove)
		_ = into.CloseWithError(err)
		packed <- err
	}()
	var said node.Answer
	err = on.Run(ctx, node.Command{Argv: []string{"sh", "-c", restoreScript, "sh", "/"}, Stdin: archive, Stdout: &said})
	_ = archive.CloseWithError(io.ErrClosedPipe) // it may have ended early
	if bad := <-packed; bad != nil && !errors.Is(bad, io.ErrClosedPipe) {
		err = bad
	}
	for line := range strings.Lines(said.String()) {
		wrote = append(wrote, strings.TrimSuffix(line, "\n"))
	}
	return wrote, err
}

// pack writes what restoreScript reads.
func (b Backup) pack(w io.Writer, saved Node, back, remove []string) error {
	archive := tar.NewWriter(w)
	var order []string
	err := b.open(saved, func(h *tar.Header, content io.Reader) error {
		if !slices.Contains(back, h.Name) {
			return nil
		}
		order = append(order, h.Name)
		return add(archive, h, content)
	})
	if err != nil {
		return err
	}
	for _, list := range []struct {
		name  string
		lines []string
	}{{".restore", order}, {".remove", remove}, {".complete", nil}} {
		text := strings.Join(append(list.lines, ""), "\n")
		h := &tar.Header{Typeflag: tar.TypeReg, Name: list.name, Mode: 0o600, Size: int64(len(text)), Format: tar.FormatPAX}
		if err := add(archive, h, strings.NewReader(text)); err != nil {
			return err
		}
	}
	return archive.Close()
}

// Reload are the commands that have services read files again. kubelet may be restarted at any time; other services are a person's to restart.
func Reload(paths []string) (run, next [][]string) {
	any := func(such ...string) bool {
		return slices.ContainsFunc(paths, func(p string) bool {
			return slices.ContainsFunc(such, func(s string) bool { return p == s || strings.HasPrefix(p, s+"/") })
		})
	}
	units := any("/etc/systemd/system/kubelet.service.d", "/usr/lib/systemd/system/kubelet.service.d")
	if units {
		run = append(run, []string{"systemctl", "daemon-reload"})
	}
	if units || any("/var/lib/kubelet", "/etc/default/kubelet", "/etc/sysconfig/kubelet", "/etc/kubernetes/kubelet.conf",
		"/etc/kubernetes/bootstrap-kubelet.conf") {
		run = append(run, []string{"systemctl", "restart", "kubelet"})
	}
	if any("/etc/containerd/config.toml") {
		next = append(next, []string{"systemctl", "restart", "containerd"})
	}
	if any("/etc/crio") {
		next = append(next, []string{"systemctl", "restart", "crio"})
	}
	return run, next
}

func (r *Restored) reload(ctx context.Context, on session.Node) error {
	run, next := Reload(append(slices.Clone(r.Files), r.Removed...))
	for _, argv := range next {
		r.Next = append(r.Next, strings.Join(argv, " "))
	}
	for _, argv := range run {
		if err := session.Do(ctx, on, argv...); err != nil {
			return fmt.Errorf("the files are back, and then: %w", err)
		}
		r.Did = append(r.Did, strings.Join(argv, " "))
	}
	return nil
}
