package provision

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8slab/lab/labtest"
	"k8slab/lab/machine"
	"k8slab/lab/session"
)

// What libvirt's machines can do, the lab's snapshots need.
var _ snapshotter = (*machine.Lab)(nil)

// justMachines are some that nobody can save.
type justMachines struct{ session.Machines }

func TestSnapshotsOfOtherMachines(t *testing.T) {
	s := labtest.Session(t, labtest.Small)
	s.Machines = justMachines{}
	_, listed := Snapshots(t.Context(), s)
	_, restored := RestoreSnapshot(t.Context(), s, "healthy")
	for _, err := range []error{listed, restored, SaveSnapshot(t.Context(), s, "healthy"), DeleteSnapshot(t.Context(), s, "healthy")} {
		if err == nil || !strings.Contains(err.Error(), "lab small: its machines cannot be saved and restored") {
			t.Errorf("got %v", err)
		}
	}
}

func TestGatherSnapshots(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 3, 1, 12, minute, 0, 0, time.UTC) }
	saved := func(name string, minute int) machine.Snapshot { return machine.Snapshot{Name: name, Time: at(minute)} }
	got := gather([]string{"cp1", "w1"}, map[string][]machine.Snapshot{
		"cp1": {saved("late", 9), saved("half", 5), saved("early", 2)},
		"w1":  {saved("early", 1), saved("late", 9)},
	})
	want := "[{early 2026-03-01 12:01:00 +0000 UTC [cp1 w1] []} {half 2026-03-01 12:05:00 +0000 UTC [cp1] [w1]} {late 2026-03-01 12:09:00 +0000 UTC [cp1 w1] []}]"
	if text := fmt.Sprint(got); text != want {
		t.Errorf("got %s", text)
	}
	for name, part := range map[string]string{"early": "", "half": "nothing of w1", "none": `no snapshot "none"; there are: early, half, late`} {
		err := restorable(name, got)
		if (err == nil) != (part == "") || err != nil && !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := restorable("x", gather([]string{"cp1"}, nil)); err == nil || !strings.Contains(err.Error(), "none (labctl snapshot save NAME)") {
		t.Errorf("without any: %v", err)
	}
}

func TestSnapshotNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "before-upgrade": true, "v1.36": true, strings.Repeat("x", 40): true,
		"": false, "-a": false, "a-": false, "A": false, "a b": false, "a/b": false, strings.Repeat("x", 41): false,
	} {
		if snapshotName.MatchString(name) != ok {
			t.Errorf("%q: want %v", name, ok)
		}
	}
	if err := CheckSnapshotName("no name"); err == nil || !strings.Contains(err.Error(), "a-z, 0-9") {
		t.Errorf("got %v", err)
	}
}

func TestInterruptedRestore(t *testing.T) {
	l := labtest.Closed(t, labtest.Small)
	if err := CheckWhole(l); err != nil {
		t.Errorf("without one: %v", err)
	}
	if err := l.Write(restoringFile, []byte("healthy")); err != nil {
		t.Fatal(err)
	}
	if err := CheckWhole(l); err == nil || !strings.Contains(err.Error(), "next: labctl snapshot restore healthy") {
		t.Error(err)
	}
}
