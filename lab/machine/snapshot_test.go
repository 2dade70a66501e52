package machine_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"k8slab/lab/machine"
)

func TestSnapshots(t *testing.T) {
	l, changes := lab(t, domain("lab-cp1", labID, "cp1", running))
	ctx := limited(t)
	needPool(t, l)
	*changes = nil
	none, err := l.Snapshots(ctx, "cp1")
	if err != nil || len(none) > 0 {
		t.Fatalf("at first %v, %v", none, err)
	}
	if err := l.Suspend(ctx, "cp1"); err != nil {
		t.Fatal(err)
	}
	if err := l.SaveSnapshot(ctx, "cp1", "before"); err != nil {
		t.Fatal(err)
	}
	saved, err := l.Snapshots(ctx, "cp1")
	if err != nil || len(saved) != 1 || saved[0].Name != "before" || time.Since(saved[0].Time) > time.Minute {
		t.Errorf("saved %+v, %v", saved, err)
	}
	if err := l.SaveSnapshot(ctx, "cp1", "before"); err == nil {
		t.Error("saved twice under one name")
	}
	if err := l.RevertSnapshot(ctx, "cp1", "before"); err != nil {
		t.Fatal(err)
	}
	if state, err := l.State(ctx, "cp1"); err != nil || state == machine.Off { // libvirt's test driver forgets that it was paused
		t.Errorf("reverted, it is %q, %v", state, err)
	}
	for range 2 {
		if err := l.DeleteSnapshot(ctx, "cp1", "before"); err != nil {
			t.Error(err)
		}
	}
	if err := l.RevertSnapshot(ctx, "cp1", "before"); err == nil {
		t.Error("reverted to what is gone")
	}
	const memory = "volume k8slab-6f1d0f5c-cp1.memory-before"
	want := []string{"libvirt suspend lab-cp1", "libvirt make " + memory, "libvirt save memory of lab-cp1", "libvirt save snapshot before of lab-cp1", "libvirt restore memory of lab-cp1",
		"libvirt power off lab-cp1", "libvirt revert lab-cp1 to snapshot before", "libvirt restore memory of lab-cp1",
		"libvirt delete snapshot before of lab-cp1", "libvirt delete " + memory}
	if !slices.Equal(*changes, want) {
		t.Errorf("changes %q", *changes)
	}
}

func TestSnapshotsOfNoMachine(t *testing.T) {
	l, _ := lab(t)
	if found, err := l.Snapshots(limited(t), "cp1"); err != nil || len(found) > 0 {
		t.Errorf("listed %v, %v", found, err)
	}
	if err := l.SaveSnapshot(limited(t), "cp1", "x"); err == nil {
		t.Error("saved an absent machine")
	}
	if err := l.DeleteSnapshot(limited(t), "cp1", "x"); err != nil {
		t.Error(err)
	}
	containers := machine.Open(machine.Config{URI: "lxc:///system", Lab: "lab", ID: labID})
	if _, err := containers.Snapshots(limited(t), "cp1"); !errors.Is(err, machine.ErrNoSnapshots) {
		t.Errorf("of a container: %v", err)
	}
	if err := containers.SaveSnapshot(limited(t), "cp1", "x"); !errors.Is(err, machine.ErrNoSnapshots) {
		t.Errorf("of a container: %v", err)
	}
}
