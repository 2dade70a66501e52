package phase

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8slab/lab/event"
	"k8slab/lab/machine"
	"k8slab/lab/onboard"
	"k8slab/lab/validate"
)

func (b *bench) arrival(w *world, inLab bool) *arrival {
	a := &arrival{node: target.Node, role: target.Role, nodes: w, seen: b.seen,
		snapshot: func(context.Context) (validate.Snapshot, error) { return validate.Snapshot{}, nil }}
	if inLab {
		a.lab, a.machineID = w, ourMachine
	}
	b.Runners[onboard.NodeJoinMonitoring] = a
	leave := &leaving{nodes: w, lab: a.lab, events: event.NewStream()}
	b.Undoers[joinKind], b.Undoers[machineKind] = leave, machineGone{w}
	return a
}

func TestArrivalInTheLab(t *testing.T) {
	b, w := newBench(t), &world{state: machine.Absent}
	b.arrival(w, true)
	must(t, b.Run(t.Context(), onboard.Options{}))
	if w.done() != "make:w3 join:w3" || b.changes(t) != "test-objects:made machine:made join:made" {
		t.Errorf("did %q, the journal has %q", w.done(), b.changes(t))
	}
	if !b.events.has("w3 is Ready: worker, kubelet v1.36.3, 10.30.0.23") {
		t.Errorf("the node's details were not told: %v", b.events.text)
	}
	r, err := b.seen.Read()
	if err != nil || r.Before == nil {
		t.Errorf("without a pre-validation there is no snapshot from before: %v, %v", r, err)
	}
	must(t, b.Rollback(t.Context()))
	if got, want := w.done(), "make:w3 join:w3 drain:w3 reset:w3 remove:w3"; got != want {
		t.Errorf("did %q, want %q", got, want)
	}
	if w.state != machine.Absent || w.admitted || w.node != nil {
		t.Errorf("left: %+v", w)
	}
}

func TestArrivalIsResumed(t *testing.T) {
	b, w := newBench(t), &world{state: machine.Absent, joinErr: errBroken}
	b.arrival(w, true)
	contains(t, b.Run(t.Context(), onboard.Options{}), "join w3 as worker: "+errBroken.Error())
	w.joinErr = nil
	must(t, b.Run(t.Context(), onboard.Options{Resume: true}))
	if got, want := w.done(), "make:w3 join:w3 join:w3"; got != want {
		t.Errorf("did %q, want %q: the machine is made once", got, want)
	}
	// Its machine is switched off: the phase no longer holds, and is done again.
	w.node.Ready, w.state = false, machine.Off
	must(t, b.Run(t.Context(), onboard.Options{Resume: true}))
	if got, want := w.done(), "make:w3 join:w3 join:w3 make:w3 join:w3"; got != want {
		t.Errorf("did %q, want %q", got, want)
	}
}

func TestStrangeMachineStays(t *testing.T) {
	b, w := newBench(t), &world{state: machine.Running}
	a := b.arrival(w, true)
	contains(t, b.Run(t.Context(), onboard.Options{}), "a machine of w3 exists, is running, and no onboarding made it; next: ")
	_, err := a.Plan(t.Context())
	contains(t, err, "no onboarding made it")
	must(t, b.Rollback(t.Context()))
	if w.done() != "" || w.state != machine.Running {
		t.Errorf("did %q to a machine that is not the onboarding's", w.done())
	}
}

// A machine that is off cannot be reset: it is started for that.
func TestLeavingStartsTheMachine(t *testing.T) {
	w := &world{state: machine.Off, admitted: true, node: readyNode("w3")}
	c := (&arrival{node: "w3", lab: w}).joinChange()
	l := &leaving{nodes: w, lab: w, events: event.NewStream()}
	contains(t, l.Verify(t.Context(), c), "the Node")
	must(t, l.Undo(t.Context(), c))
	must(t, l.Verify(t.Context(), c))
	if got, want := w.done(), "drain:w3 make:w3 reset:w3"; got != want {
		t.Errorf("did %q, want %q", got, want)
	}
}

func TestLeavingStopsAtTheDrain(t *testing.T) {
	w := &world{state: machine.Running, admitted: true, node: readyNode("w3"), drainErr: errBroken}
	l := &leaving{nodes: w, lab: w, events: event.NewStream()}
	contains(t, l.Undo(t.Context(), (&arrival{node: "w3", lab: w}).joinChange()), errBroken.Error())
	if w.done() != "drain:w3" {
		t.Errorf("did %q after a drain that failed", w.done())
	}
}

func TestReady(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*world)
		want   string
	}{
		"ready":   {func(*world) {}, ""},
		"none":    {func(w *world) { w.node = nil }, errNoNode.Error()},
		"another": {func(w *world) { w.node.MachineID = "x" }, "another machine's"},
		"not":     {func(w *world) { w.node.Ready, w.node.Reason = false, "no network" }, "not Ready: no network"},
		"role":    {func(w *world) { w.node.Role = "control-plane" }, "control-plane and not a worker"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{node: readyNode("w3")}
			tt.change(w)
			err := newBench(t).arrival(w, true).Verify(t.Context())
			if tt.want == "" {
				must(t, err)
			} else {
				contains(t, err, tt.want)
			}
		})
	}
}

// elsewhere the node joins by its own means, before or while it is awaited.
func TestArrivalElsewhere(t *testing.T) {
	for name, tt := range map[string]struct {
		created time.Duration // from the beginning
		changes string
	}{
		"after":  {time.Second, "test-objects:made join:made"},
		"before": {-time.Hour, "test-objects:made"},
	} {
		t.Run(name, func(t *testing.T) {
			b, w := newBench(t), &world{node: readyNode("w3")}
			w.node.Created = time.Now().Add(tt.created)
			b.arrival(w, false)
			must(t, b.Run(t.Context(), onboard.Options{}))
			if got := b.changes(t); got != tt.changes {
				t.Errorf("the journal has %q, want %q", got, tt.changes)
			}
			must(t, b.Rollback(t.Context()))
			if stays := w.node != nil; stays != (tt.created < 0) {
				t.Errorf("after the rollback: the Node stays: %v; did %q", stays, w.done())
			}
		})
	}
}

func TestArrivalElsewhereSaysHow(t *testing.T) {
	b, w := newBench(t), &world{}
	b.arrival(w, false)
	b.Timeouts = map[onboard.PhaseID]time.Duration{onboard.NodeJoinMonitoring: 50 * time.Millisecond}
	contains(t, b.Run(t.Context(), onboard.Options{}), "no such Node", "kubeadm token create --print-join-command")
}

func TestMachineGone(t *testing.T) {
	c := (&arrival{node: "w3"}).machineChange()
	for _, w := range []*world{{state: machine.Running, admitted: true}, {state: machine.Absent, admitted: true}} {
		if err := (machineGone{w}).Verify(t.Context(), c); err == nil {
			t.Errorf("%+v passes for gone", w)
		}
		must(t, machineGone{w}.Undo(t.Context(), c))
		must(t, machineGone{w}.Verify(t.Context(), c))
	}
}

// A dry run looks, and neither changes the world nor writes a file.
func TestDryRun(t *testing.T) {
	b, w := newBench(t), &world{state: machine.Absent}
	b.arrival(w, true)
	b.looking(onboard.PreValidation, validate.Check{Area: validate.AreaCluster, Name: "a", Look: func(context.Context) (validate.Finding, error) {
		t.Error("a check was made")
		return validate.Finding{}, errors.New("no")
	}})
	before := files(t, b.dir)
	plan, err := b.Plan(t.Context(), onboard.Options{})
	must(t, err)
	steps := append(plan[0].Steps, plan[2].Steps...)
	want := []string{"check cluster: a", "make the machine of w3, which is absent", "join w3 as worker", "wait until the Node w3 is Ready, as worker"}
	for i := range want {
		if len(steps) != len(want) || steps[i] != want[i] {
			t.Fatalf("the steps are %q, want %q", steps, want)
		}
	}
	if w.done() != "" || files(t, b.dir) != before {
		t.Errorf("a dry run did %q, and left %s", w.done(), files(t, b.dir))
	}
}
