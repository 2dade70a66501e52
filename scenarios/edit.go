package scenarios

import (
	"context"
	"errors"
)

// edit is a change of one file on a node, by which a fault breaks it.
type edit struct {
	path string
	how  string // script that changes the file, its $1; its $2 is for a value
	then string // script by which the node takes notice of the change, and of its end
}

// keptFiles is where files are kept as they were, under their own paths: kubelet would run a second manifest that lies beside the first.
const keptFiles = "/var/lib/k8slab.fault"

// tidy removes the directories of keptFiles that hold nothing any more.
const tidy = `
	! test -d ` + keptFiles + ` || find ` + keptFiles + ` -depth -type d -empty -delete
`

// damage changes the file, and keeps it as it was and as it is now.
const damage = `
	kept=` + keptFiles + `$1
	if test -e "$kept"; then
		echo "$1 is broken already"
		exit 1
	fi
	umask 077
	mkdir -p "${kept%/*}"
	cp --preserve "$1" "$kept.whole"
	mv "$kept.whole" "$kept"
`

// damaged keeps the file as the fault left it, empty for one that is gone.
const damaged = `
	if ! test -e "$1"; then
		: >"$kept.broken"
	elif cmp --quiet "$1" "$kept"; then
		echo "the fault does not change $1"
		exit 1
	else
		cp "$1" "$kept.broken"
	fi
`

// mend puts the file back, unless the recovery has made it anew, and goes on only if it did. A repair leaves a copy of what it replaced
// beside the file, and of a manifest in the directory above.
const mend = `
	kept=` + keptFiles + `$1
	rm -f "$kept.whole"
` + tidy + `
	test -e "$kept" || exit 0
	back=
	if ! test -e "$1" || ! test -e "$kept.broken" || cmp --quiet "$1" "$kept.broken"; then
		cp --preserve "$kept" "$(readlink --canonicalize "$1")"
		back=yes
	fi
	rm -f "$kept" "$kept.broken" "$1".k8slab-saved* "${1%/manifests/*}/${1##*/}".k8slab-saved*
` + tidy + `
	test -n "$back" || exit 0
`

// make changes the file on the node.
func (e edit) make(ctx context.Context, t Target) error { return e.on(ctx, t, t.Node, "") }

// on changes the file on a node, with a value for the script.
func (e edit) on(ctx context.Context, t Target, node, value string) error {
	return t.shell(ctx, node, damage+e.how+damaged+e.then, e.path, value)
}

// undo puts the file back on the node, if the fault is still in it.
func (e edit) undo(ctx context.Context, t Target) error { return e.undoOn(ctx, t, t.Node) }

func (e edit) undoOn(ctx context.Context, t Target, node string) error {
	return t.shell(ctx, node, mend+e.then, e.path)
}

// everywhere changes the file on all control planes.
func (e edit) everywhere(ctx context.Context, t Target) error {
	for _, m := range t.controlPlanes() {
		if err := e.on(ctx, t, m.Name, ""); err != nil {
			return err
		}
	}
	return nil
}

// undoEverywhere puts the file back on all control planes.
func (e edit) undoEverywhere(ctx context.Context, t Target) error {
	var errs []error
	for _, m := range t.controlPlanes() {
		errs = append(errs, e.undoOn(ctx, t, m.Name))
	}
	return errors.Join(errs...)
}

// What edits end with, and files that several of them change.
const (
	restartKubelet    = "\nsystemctl restart kubelet"
	restartContainerd = "\nsystemctl --no-block restart containerd" // one that cannot start would be an error
	kubeletFlags      = "/var/lib/kubelet/kubeadm-flags.env"
	manifests         = "/etc/kubernetes/manifests/"
)

// addFlag is the script that adds a flag to the program of a static pod's manifest.
func addFlag(program, flag string) string {
	return `sed --in-place 's/^\( *\)- ` + program + `$/&\n\1- ` + flag + `/' "$1"`
}

// removeFile is the script of an edit that removes the file.
const removeFile = `rm "$1"`

// unmounts ends what a fault has mounted on the directory.
func unmounts(directory string) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		return t.shell(ctx, t.Node, `while grep -q "^fault $1 " /proc/mounts; do umount --lazy "$1"; done`, directory)
	}
}
