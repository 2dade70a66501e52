package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Damage of nodes: files, units, images and disks.

// fileGroups are the directories whose files are damaged.
var fileGroups = func() (all []group) {
	ways := []string{"delete", "empty", "halve", "corrupt", "chmod", "replace-text", "replace-directory"}
	for _, dir := range []string{"/etc/kubernetes", "/etc/containerd", "/etc/cni", "/opt/cni", kubeletDirectory, "/etc/systemd", "/usr/bin"} {
		all = append(all, group{dir, ways})
	}
	return all
}()

const kubeletDirectory = "/var/lib/kubelet"

// listFiles lists regular files. Pods' volumes in memory are file systems of their own, and left out.
func listFiles(ctx context.Context, t Target, dir, _ string) ([]string, error) {
	out, err := t.Run(ctx, t.Node, "sh", "-c", `! test -d "$1" || find "$1" -xdev -type f -print0`, "sh", dir)
	return strings.FieldsFunc(out, func(r rune) bool { return r == 0 }), err
}

// damageStore is where a node keeps what it needs to undo its damage: nothing secret leaves the node.
const damageStore = "/var/lib/k8slab/damage"

// fileTools has the scripts use the copies of the programs that they need, because any program may be the damaged one, and defines state:
// it prints what tells two states of a file apart.
const fileTools = `
PATH=$1/bin:$PATH
state() {
	if test -d "$1"; then echo directory; elif test -e "$1"; then stat -c '%a %U %s' -- "$1"; sha256sum <"$1"; else echo absent; fi
}
`

func keepFile(ctx context.Context, t Target, d *Damage) error {
	return t.shell(ctx, t.Node, `
		rm -rf "$1"
		mkdir -p -m 700 "$1" "$1/bin"
		cp -a -- "$2" "$1/before"
		for program in cat cp dd mkdir mv rm sha256sum stat systemctl truncate; do
			cp "$(command -v "$program")" "$1/bin"
		done
		sync -f "$1"`, damageStore, d.What)
}

// makeFile changes a copy and moves it into the place of the file: a program that runs cannot be written.
func makeFile(ctx context.Context, t Target, d Damage) error {
	return t.shell(ctx, t.Node, fileTools+`
		store=$1 how=$2 file=$3
		cp -a -- "$file" "$store/new"
		case $how in
		delete) rm -f -- "$file" ;;
		empty) truncate -s 0 "$store/new" ;;
		halve) truncate -s "$(($(stat -c %s "$store/new") / 2))" "$store/new" ;;
		corrupt) dd if=/dev/urandom of="$store/new" bs=64 count=16 conv=notrunc status=none ;;
		chmod) chmod 000 "$store/new" ;;
		replace-text) echo 'this is not what was here before' >"$store/new" ;;
		replace-directory) rm -f -- "$file" "$store/new"; mkdir "$store/new" ;;
		*) exit 2 ;;
		esac
		test "$how" = delete || mv -fT -- "$store/new" "$file"
		state "$file" >"$store/after"
		case $file in /etc/systemd/*) systemctl daemon-reload ;; esac`, damageStore, d.How, d.What)
}

func undoFile(ctx context.Context, t Target, d Damage, force bool) error {
	return t.shell(ctx, t.Node, fileTools+`
		store=$1 file=$2 force=$3
		if test -e "$store/before" && { test "$force" = true || test "$(state "$file")" = "$(cat "$store/after")"; }; then
			rm -rf -- "$file"
			mkdir -p -- "${file%/*}"
			cp -a -- "$store/before" "$file"
		fi
		rm -rf "$store"
		case $file in /etc/systemd/*) systemctl daemon-reload ;; esac`, damageStore, d.What, fmt.Sprint(force))
}

var unitGroups = []group{{"needed", []string{"stop", "mask"}}, {"running", []string{"stop", "mask"}}}

// neededUnits are those that a node of a cluster lives by.
var neededUnits = []string{"containerd.service", "kubelet.service"}

// listUnits lists the needed units or those that run. One that carries SSH can only be stopped: then a restart of the machine brings it
// back.
func listUnits(ctx context.Context, t Target, group, how string) ([]string, error) {
	if group == "needed" {
		return neededUnits, nil
	}
	out, err := t.Run(ctx, t.Node, "systemctl", "list-units", "--type=service,socket", "--state=running,listening", "--plain", "--no-legend")
	var units []string
	for _, line := range nonEmptyLines(out) {
		unit := strings.Fields(line)[0]
		instance := strings.Contains(unit, "@") // of a login, a terminal
		if !instance && (how == "stop" || !strings.HasPrefix(unit, "ssh")) {
			units = append(units, unit)
		}
	}
	return units, err
}

func makeUnit(ctx context.Context, t Target, d Damage) error {
	if d.How == "mask" {
		return t.run(ctx, "systemctl", "mask", "--now", "--", d.What)
	}
	return t.run(ctx, "systemctl", "stop", "--", d.What)
}

func undoUnit(ctx context.Context, t Target, d Damage, _ bool) error {
	return t.shell(ctx, t.Node, `systemctl unmask -- "$1"; systemctl start -- "$1"`, d.What)
}

// listImages lists the names of the node's images.
func listImages(ctx context.Context, t Target, _, _ string) ([]string, error) {
	out, err := t.Run(ctx, t.Node, "crictl", "--timeout", "10s", "images", "--output", "json")
	var list struct{ Images []struct{ RepoTags []string } }
	if err == nil {
		err = json.Unmarshal([]byte(out), &list)
	}
	names := map[string]bool{}
	for _, i := range list.Images {
		for _, name := range i.RepoTags {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), err
}

func keepImage(ctx context.Context, t Target, d *Damage) error {
	return t.shell(ctx, t.Node, `rm -rf "$1" && mkdir -p -m 700 "$1" && ctr --namespace k8s.io images export "$1/image" "$2"`,
		damageStore, d.What)
}

func makeImage(ctx context.Context, t Target, d Damage) error {
	return t.run(ctx, "crictl", "--timeout", "30s", "rmi", d.What)
}

func undoImage(ctx context.Context, t Target, d Damage, _ bool) error {
	return t.shell(ctx, t.Node, `
		if test -e "$1/image" && ! crictl --timeout 10s inspecti -q "$2" >/dev/null 2>&1; then
			ctr --namespace k8s.io images import "$1/image"
		fi
		rm -rf "$1"`, damageStore, d.What)
}

func listDisks(_ context.Context, _ Target, dir, _ string) ([]string, error) {
	return []string{dir}, nil
}

// makeDisk puts a small full file system with the directory's files over it, because a container uses the disk of its host.
func makeDisk(ctx context.Context, t Target, d Damage) error {
	return t.shell(ctx, t.Node, `
		how=$1 dir=$2 stage=/run/k8slab.fault
		size=$(($(du -sxk "$dir" | cut -f 1) + 32768))k
		inodes=0
		test "$how" = fill || { size=1g; inodes=$(($(find "$dir" -xdev | wc -l) + 64)); }
		systemctl stop kubelet
		mkdir -p "$stage"
		mount -t tmpfs -o "mode=755,size=$size,nr_inodes=$inodes" fault "$stage"
		cp -ax "$dir/." "$stage"
		if test "$how" = fill; then
			head --bytes 33000K /dev/zero >"$stage/ballast.fault" || true
		else
			i=0
			while touch "$stage/$i.fault" 2>/dev/null; do i=$((i + 1)); done
		fi
		mount --bind "$stage" "$dir"
		umount "$stage"
		rmdir "$stage"
		systemctl start kubelet`, d.How, d.What)
}

func undoDisk(ctx context.Context, t Target, d Damage, _ bool) error {
	return t.shell(ctx, t.Node, `
		dir=$1
		if grep -q '^fault /run/k8slab.fault ' /proc/mounts; then umount --lazy /run/k8slab.fault; fi
		if grep -q "^fault $dir " /proc/mounts; then
			systemctl stop kubelet || true
			while grep -q "^fault $dir " /proc/mounts; do umount --lazy "$dir"; done
		fi
		systemctl start kubelet`, d.What)
}
