package machine_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8slab/lab/command"
	"k8slab/lab/machine"
)

// The storage pools of these tests are real: libvirt's storage driver makes files.

func needPool(t *testing.T, l *machine.Lab) {
	t.Helper()
	if _, err := exec.LookPath("qemu-img"); err != nil {
		t.Skip("needs qemu-img")
	}
	if err := l.EnsurePool(limited(t)); err != nil {
		t.Fatal(err)
	}
}

func published(t *testing.T, l *machine.Lab, id string) machine.Boot {
	t.Helper()
	dir := t.TempDir()
	b := machine.Boot{Base: filepath.Join(dir, "root.qcow2"), Kernel: filepath.Join(dir, "vmlinuz"), Initrd: filepath.Join(dir, "initrd.img"), ID: id}
	if _, err := command.Run(limited(t), "qemu-img", "create", "-q", "-f", "qcow2", b.Base, "64M"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{b.Kernel, b.Initrd} {
		if err := os.WriteFile(path, []byte(path), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var told int64
	got, err := l.Publish(limited(t), b, func(done, _ int64) { told = done })
	if err != nil {
		t.Fatal(err)
	}
	if told == 0 {
		t.Error("no progress was told")
	}
	return got
}

func poolFiles(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestVolumesOfAMachine(t *testing.T) {
	l, changes := lab(t)
	if err := l.DeleteAllDisks(limited(t)); err != nil || len(*changes) > 0 {
		t.Errorf("without a pool: %v, changes %q", err, *changes)
	}
	needPool(t, l)
	dir, err := l.PoolPath(limited(t))
	if err != nil {
		t.Fatal(err)
	}
	boot := published(t, l, "0123")
	bases := []string{"k8slab-base-0123.initrd", "k8slab-base-0123.initrd.complete", "k8slab-base-0123.qcow2", "k8slab-base-0123.qcow2.complete",
		"k8slab-base-0123.vmlinuz", "k8slab-base-0123.vmlinuz.complete"}
	if got := poolFiles(t, dir); !slices.Equal(got, bases) {
		t.Errorf("published: %q", got)
	}
	if boot.Kernel != filepath.Join(dir, "k8slab-base-0123.vmlinuz") {
		t.Errorf("the kernel is at %s", boot.Kernel)
	}

	spec := machine.Spec{Node: "cp1", CPUs: 1, Memory: 1024, Disk: 1, Disks: []int{2}, Seed: t.TempDir(), Boot: boot}
	if err := l.Ensure(limited(t), spec); err != nil {
		t.Fatal(err)
	}
	own := []string{"k8slab-6f1d0f5c-cp1.console", "k8slab-6f1d0f5c-cp1.disk0.qcow2", "k8slab-6f1d0f5c-cp1.qcow2", "k8slab-6f1d0f5c-cp1.seed"}
	if got := poolFiles(t, dir); !slices.Equal(got, append(slices.Clone(own), bases...)) {
		t.Errorf("with a machine: %q", got)
	}
	info, err := command.Run(limited(t), "qemu-img", "info", filepath.Join(dir, own[2]))
	if err != nil || !strings.Contains(info, "backing file: "+boot.Base) {
		t.Errorf("%s, %v", info, err)
	}
	info, err = command.Run(limited(t), "qemu-img", "info", filepath.Join(dir, own[1]))
	if err != nil || strings.Contains(info, "backing file") || !strings.Contains(info, "virtual size: 2 GiB") {
		t.Errorf("the empty disk: %s, %v", info, err)
	}
	if err := os.WriteFile(filepath.Join(dir, own[0]), []byte("kernel panic"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := l.Console(limited(t), "cp1", 5); err != nil || text != "panic" {
		t.Errorf("console: %q, %v", text, err)
	}
	if text, err := l.Console(limited(t), "cp2", 5); err != nil || text != "" {
		t.Errorf("console of no machine: %q, %v", text, err)
	}

	// What machines are made from stays until none is, and what is older than asked for.
	later := time.Now().Add(time.Hour)
	prune := func(before time.Time, want ...string) {
		t.Helper()
		removed, err := machine.PruneBases(limited(t), l.StorageSocket(), before)
		var names []string
		for _, b := range removed {
			if b.Pool == l.PoolName() {
				names = append(names, b.Name)
			}
		}
		if err != nil || !slices.Equal(names, want) {
			t.Errorf("pruned %q, want %q; %v", names, want, err)
		}
	}
	prune(later)
	const box = "k8slab-VAGRANTSLASH-01_vagrant_box_image_1.36.3_box.img"
	if err := os.WriteFile(filepath.Join(dir, box), []byte("vagrant's"), 0o600); err != nil {
		t.Fatal(err)
	}
	bases = slices.Insert(bases, 0, box)
	if err := l.DeleteAllDisks(limited(t)); err != nil {
		t.Error(err)
	}
	if got := poolFiles(t, dir); !slices.Equal(got, bases) {
		t.Errorf("the lab's disks deleted: %q", got)
	}
	prune(time.Now().Add(-time.Hour))
	listed, err := machine.Bases(limited(t), l.StorageSocket())
	if i := slices.IndexFunc(listed, func(b machine.Base) bool { return b.Pool == l.PoolName() }); err != nil || i < 0 || listed[i].Size == 0 || listed[i].InUse {
		t.Errorf("listed %+v, %v", listed, err)
	}
	prune(later, box, "k8slab-base-0123")
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the pool's directory is left: %v, %q", err, poolFiles(t, dir))
	}
	if _, err := l.PoolPath(limited(t)); err == nil {
		t.Error("the pool is left")
	}
}

// A disk that is there stays: a machine can look absent because its domain was undefined.
func TestVolumeThatIsThereStays(t *testing.T) {
	l, _ := lab(t)
	needPool(t, l)
	t.Cleanup(func() { _ = l.DeleteAllDisks(limited(t)) })
	dir, err := l.PoolPath(limited(t))
	if err != nil {
		t.Fatal(err)
	}
	spec := machine.Spec{Node: "cp1", CPUs: 1, Memory: 1024, Disk: 1, Seed: t.TempDir(), Boot: published(t, l, "1")}
	disk := filepath.Join(dir, "k8slab-6f1d0f5c-cp1.qcow2")
	if err := l.Ensure(limited(t), spec); err != nil {
		t.Fatal(err)
	}
	again, _ := lab(t) // the test driver forgets machines with the connection
	before, err := os.Stat(disk)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.InPoolOf(l).Ensure(limited(t), spec); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(disk); err != nil || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("%+v, then %+v, %v", before, after, err)
	}
}

// An upload that was interrupted is made again; one that is complete is not.
func TestInterruptedUpload(t *testing.T) {
	l, changes := lab(t)
	needPool(t, l)
	dir, err := l.PoolPath(limited(t))
	if err != nil {
		t.Fatal(err)
	}
	boot := published(t, l, "2")
	if err := os.Remove(filepath.Join(dir, filepath.Base(boot.Kernel)+".complete")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(boot.Kernel, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.RefreshPool(limited(t)); err != nil {
		t.Fatal(err)
	}
	*changes = nil
	boot = published(t, l, "2")
	if text, err := os.ReadFile(boot.Kernel); err != nil || !strings.HasSuffix(string(text), "vmlinuz") {
		t.Errorf("the kernel is %q, %v", text, err)
	}
	for _, c := range *changes {
		if strings.Contains(c, "qcow2") || strings.Contains(c, "initrd") {
			t.Errorf("done again: %s", c)
		}
	}
}

func TestVagrantsSeed(t *testing.T) {
	l, _ := lab(t)
	needPool(t, l)
	dir, err := l.PoolPath(limited(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it is there
		if err := l.MakeVagrantSeed(limited(t), "cp1", t.TempDir()); err != nil {
			t.Fatal(err)
		}
	}
	info, err := command.Run(limited(t), "qemu-img", "info", filepath.Join(dir, "k8slab-6f1d0f5c-cp1.seed.qcow2"))
	if err != nil || !strings.Contains(info, "file format: qcow2") || !strings.Contains(info, "virtual size: 1 MiB") {
		t.Errorf("%s, %v", info, err)
	}
	// A machine that is gone from libvirt can have left its volumes.
	if err := l.Delete(limited(t), "cp1"); err != nil {
		t.Error(err)
	}
	if got := poolFiles(t, dir); len(got) > 0 {
		t.Errorf("left: %q", got)
	}
	if err := l.DeleteAllDisks(limited(t)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", dir, err)
	}
}

// A pool that somebody else made stays, with what is in it, and is not started.
func TestForeignPool(t *testing.T) {
	l, changes := lab(t)
	dir := filepath.Join(t.TempDir(), "images")
	name := machine.DefinePool(t, l, dir)
	t.Cleanup(func() { machine.UndefinePool(t, l) })
	err := l.EnsurePool(limited(t))
	if err == nil || !strings.Contains(err.Error(), "pool-start "+name) {
		t.Errorf("one that is not active: %v", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	machine.StartPool(t, l)
	if err := l.EnsurePool(limited(t)); err != nil {
		t.Error(err)
	}
	if err := l.DeleteAllDisks(limited(t)); err != nil || len(*changes) > 0 {
		t.Errorf("%v, changes %q", err, *changes)
	}
	if path, err := l.PoolPath(limited(t)); err != nil || path != dir {
		t.Errorf("it is at %q, %v", path, err)
	}
}
