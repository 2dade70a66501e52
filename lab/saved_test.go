package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8slab/config"
	"k8slab/lab/bringup"
	"k8slab/lab/host"
	"k8slab/lab/labtest"
	"k8slab/lab/machine"
)

// ofVMs has the lab be of virtual machines, small enough for any computer.
func ofVMs(c *config.Cluster) {
	c.Libvirt.URI = host.VirtualMachines
	c.Resources.ControlPlane = config.Resource{CPUs: 1, Memory: 1700, Disk: 10}
	c.Resources.Worker = config.Resource{CPUs: 1, Memory: 1024, Disk: 10}
}

const noteObject = "/api/v1/namespaces/default/configmaps/note"

// note leaves a mark in the cluster and on each machine.
func (w *world) note(text string) {
	w.change(func() {
		w.objects[noteObject] = object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "note"}, "data": object{"text": text}}
		for _, b := range w.machines {
			b.files["/root/note"] = text
		}
	})
}

// notes are the marks that are there, each once.
func (w *world) notes() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text, _ := w.objects[noteObject]["data"].(object)["text"].(string)
	for _, name := range []string{"cp1", "w1"} {
		if on := w.box(name).files["/root/note"]; !strings.Contains(text, on) || on == "" {
			text += "," + on
		}
	}
	return text
}

// wantRuns wants every machine to run.
func (w *world) wantRuns() {
	w.t.Helper()
	for name, b := range w.machines {
		if b.state != machine.Running {
			w.t.Errorf("%s is %s", name, b.state)
		}
	}
}

// What happened after the snapshot is gone when it is restored, from the machines and from the cluster, and the clocks are of now.
func TestSnapshotOfTheLab(t *testing.T) {
	inWorld(t, labtest.Small, ofVMs, func(t *testing.T, w *world) {
		w.up()
		w.note("before")
		if err := w.lab.LabSnapshotSave(t.Context(), "healthy"); err != nil {
			t.Fatal(err)
		}
		w.wantRuns()
		saved, err := w.lab.LabSnapshots(t.Context())
		if err != nil || len(saved) != 1 || saved[0].Name != "healthy" || len(saved[0].Nodes) != 2 || len(saved[0].Missing) > 0 {
			t.Errorf("%+v, %v", saved, err)
		}
		w.note("after")
		time.Sleep(time.Hour)
		now := fmt.Sprintf("@%d", time.Now().Unix())
		w.change(func() { w.box("cp1").clock, w.box("w1").clock = "", "" })
		if err := w.lab.LabSnapshotRestore(t.Context(), "healthy"); err != nil {
			t.Fatal(err)
		}
		if got := w.notes(); got != "before" {
			t.Errorf("there is %q", got)
		}
		for _, name := range []string{"cp1", "w1"} {
			if clock := w.box(name).clock; clock < now { // as many digits
				t.Errorf("%s: clock %q, and it was %s", name, clock, now)
			}
		}
		w.wantRuns()
		w.wantHealthy()
		if err := w.lab.LabSnapshotDelete(t.Context(), "healthy"); err != nil {
			t.Error(err)
		}
		if saved, err := w.lab.LabSnapshots(t.Context()); err != nil || len(saved) > 0 {
			t.Errorf("%+v, %v", saved, err)
		}
	})
}

func TestSnapshotRefusals(t *testing.T) {
	tests := []struct {
		name, want string
		arrange    func(*world)
		do         func(context.Context, *Lab) error
	}{
		{"a name that is taken", "there is a snapshot healthy of ", nil, func(ctx context.Context, l *Lab) error { return l.LabSnapshotSave(ctx, "healthy") }},
		{"a name that none has", `no snapshot "ill"; there are: healthy`, nil, func(ctx context.Context, l *Lab) error { return l.LabSnapshotRestore(ctx, "ill") }},
		{"the deletion of none", `no snapshot "ill"; there are: healthy`, nil, func(ctx context.Context, l *Lab) error { return l.LabSnapshotDelete(ctx, "ill") }},
		{"a machine that is off", "w1 is off; run labctl up first", func(w *world) { w.box("w1").state = machine.Off },
			func(ctx context.Context, l *Lab) error { return l.LabSnapshotSave(ctx, "other") }},
		{"a machine that was made since", "has nothing of w1", func(w *world) { w.box("w1").saved = nil },
			func(ctx context.Context, l *Lab) error { return l.LabSnapshotRestore(ctx, "healthy") }},
		{"a node that it would bring back", "snapshot healthy of the lab contains w1", nil, func(ctx context.Context, l *Lab) error { return l.Remove(ctx, "w1") }},
	}
	inWorld(t, labtest.Small, ofVMs, func(t *testing.T, w *world) {
		w.up()
		if err := w.lab.LabSnapshotSave(t.Context(), "healthy"); err != nil {
			t.Fatal(err)
		}
		for _, tt := range tests {
			w.clean()
			if tt.arrange != nil {
				w.change(func() { tt.arrange(w) })
			}
			if err := tt.do(t.Context(), w.lab); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
			}
			if len(w.lab.Changes()) > 0 {
				t.Errorf("%s: changed %q", tt.name, w.lab.Changes())
			}
			w.change(func() { w.box("w1").state = machine.Running })
		}
	})
	inWorld(t, labtest.Small, nil, func(t *testing.T, w *world) { // of containers
		if err := w.lab.LabSnapshotSave(t.Context(), "healthy"); !errors.Is(err, machine.ErrNoSnapshots) {
			t.Errorf("of containers: %v", err)
		}
	})
}

// A save that fails, or that the user interrupts, leaves no part of a snapshot, and machines that run.
func TestSaveThatFails(t *testing.T) {
	for _, at := range []string{"save memory of w1", "save snapshot healthy of w1", "interrupt"} {
		inWorld(t, labtest.Small, ofVMs, func(t *testing.T, w *world) {
			w.up()
			w.clean()
			ctx, interrupt := context.WithCancelCause(t.Context())
			w.fails = func(call string) error {
				if at == "interrupt" && strings.Contains(call, "suspend") {
					interrupt(errors.New("the user has enough"))
				}
				if strings.Contains(call, at) {
					return errors.New("the disk is full")
				}
				return nil
			}
			err := w.lab.LabSnapshotSave(ctx, "healthy")
			if err == nil || !strings.Contains(err.Error(), "the disk is full") && !strings.Contains(err.Error(), "the user has enough") {
				t.Errorf("%s: %v", at, err)
			}
			w.reborn()
			if saved, err := w.lab.LabSnapshots(t.Context()); err != nil || len(saved) > 0 {
				t.Errorf("%s: left %+v, %v", at, saved, err)
			}
			if at != "save snapshot healthy of w1" { // whose memory is lost then, as libvirt's call was
				w.wantRuns()
			}
			w.up()
			w.wantHealthy()
		})
	}
}

// changesOf counts the changes that something makes in a lab that is up and has a snapshot.
func changesOf(t *testing.T, do func(context.Context, *Lab) error) (changes int) {
	inWorld(t, labtest.Small, ofVMs, func(t *testing.T, w *world) {
		w.saved()
		if err := do(t.Context(), w.lab); err != nil {
			t.Fatal(err)
		}
		changes = w.changes
	})
	return changes
}

// saved is a lab with a snapshot of the time before.
func (w *world) saved() {
	w.t.Helper()
	w.up()
	w.note("before")
	if err := w.lab.LabSnapshotSave(w.t.Context(), "healthy"); err != nil {
		w.t.Fatal(err)
	}
	w.note("after")
	w.clean()
}

// Killed before any change, a save leaves a lab that up brings back, and a name that can be used again.
func TestSaveKilledAtEveryChange(t *testing.T) {
	again := func(ctx context.Context, l *Lab) error { return l.LabSnapshotSave(ctx, "again") }
	changes := changesOf(t, again)
	if changes < 10 {
		t.Fatalf("a save has %d changes", changes)
	}
	for at := 1; at <= changes; at += pace {
		inWorld(t, labtest.Small, ofVMs, func(t *testing.T, w *world) {
			w.saved()
			w.dieAt = at
			_ = again(t.Context(), w.lab)
			last := w.calls[len(w.calls)-1]
			w.reborn()
			if err := w.lab.Up(t.Context(), bringup.StageProof); err != nil {
				t.Errorf("killed before change %d (%s): up: %v", at, last, err)
				return
			}
			w.wantHealthy()
			w.note("later")
			err := w.lab.LabSnapshotSave(t.Context(), "again")
			whole := err != nil && strings.Contains(err.Error(), "there is a snapshot again")
			if err != nil && !whole {
				t.Errorf("killed before change %d (%s): save: %v", at, last, err)
				return
			}
			w.note("much later")
			if err := w.lab.LabSnapshotRestore(t.Context(), "again"); err != nil {
				t.Errorf("killed before change %d (%s): restore: %v", at, last, err)
			}
			if got, want := w.notes(), map[bool]string{true: "after", false: "later"}[whole]; got != want {
				t.Errorf("killed before change %d (%s): there is %q, want %q", at, last, got, want)
			}
		})
	}
}

// Killed before any change of a restore, the machines are of one moment, or up refuses to take them for a lab until the restore is repeated.
func TestRestoreKilledAtEveryChange(t *testing.T) {
	restore := func(ctx context.Context, l *Lab) error { return l.LabSnapshotRestore(ctx, "healthy") }
	changes := changesOf(t, restore)
	if changes < 8 {
		t.Fatalf("a restore has %d changes", changes)
	}
	refused := 0
	for at := 1; at <= changes; at += pace {
		inWorld(t, labtest.Small, ofVMs, func(t *testing.T, w *world) {
			w.saved()
			w.dieAt = at
			if err := restore(t.Context(), w.lab); err == nil {
				t.Errorf("change %d of %d was refused, and restore did not notice", at, changes)
			}
			last := w.calls[len(w.calls)-1]
			w.reborn()
			_, err := os.Stat(w.lab.found.Path("restoring"))
			interrupted := err == nil
			if up := w.lab.Up(t.Context(), bringup.StageProof); interrupted {
				refused++
				if up == nil || !strings.Contains(up.Error(), "two moments") || len(w.lab.Changes()) > 0 {
					t.Errorf("killed before change %d (%s): up of machines of two moments: %v, changed %q", at, last, up, w.lab.Changes())
				}
			} else if got := w.notes(); got != "before" && got != "after" {
				t.Errorf("killed before change %d (%s): up took machines of %q for a lab: %v", at, last, got, up)
			}
			if err := restore(t.Context(), w.lab); err != nil {
				t.Errorf("killed before change %d (%s): again: %v", at, last, err)
				return
			}
			if got := w.notes(); got != "before" {
				t.Errorf("killed before change %d (%s): after all there is %q", at, last, got)
			}
			w.wantHealthy()
			w.up()
		})
	}
	if refused == 0 {
		t.Error("no restore was interrupted")
	}
}
