package lab

import (
	"context"
	"slices"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/bringup"
	"k8slab/lab/labtest"
	"k8slab/lab/machine"
	"k8slab/lab/metrics"
)

// later has a control plane and a worker be onboarded, not made by up.
func later(c *config.Cluster) {
	for i, n := range c.Nodes {
		c.Nodes[i].Onboard = n.Name == "cp3" || n.Name == "w2"
	}
}

// onboard gets a node in, as `labctl onboard` does.
func onboard(ctx context.Context, l *Lab, name string) error {
	if err := l.MakeMachine(ctx, name); err != nil {
		return err
	}
	return l.Join(ctx, name)
}

// offboard takes it out.
func offboard(ctx context.Context, l *Lab, name string) error {
	if err := l.Reset(ctx, name); err != nil {
		return err
	}
	return l.RemoveMachine(ctx, name)
}

func TestOnboardingInMemory(t *testing.T) {
	for _, name := range []string{"cp3", "w2"} {
		inWorld(t, labtest.Three, later, func(t *testing.T, w *world) {
			w.up()
			w.wantHealthy()
			is := func(state machine.State, admitted bool) {
				t.Helper()
				if does, is, err := w.lab.Machine(t.Context(), name); err != nil || does != state || is != admitted {
					t.Errorf("%s: %s, admitted %v, %v", name, does, is, err)
				}
			}
			is(machine.Absent, false)
			if err := w.lab.Join(t.Context(), name); err == nil || !strings.Contains(err.Error(), "labctl onboard "+name) {
				t.Errorf("%s joins before it is admitted: %v", name, err)
			}
			if err := onboard(t.Context(), w.lab, name); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			is(machine.Running, true)
			if w.memberOf(name) == nil && strings.HasPrefix(name, "cp") || w.objects["/api/v1/nodes/"+name] == nil {
				t.Errorf("%s is not in the cluster: %+v", name, w.members)
			}
			w.wantHealthy()
			w.clean()
			w.up() // which counts with it from now on
			if len(w.lab.Changes()) > 0 {
				t.Errorf("up changed %q", w.lab.Changes())
			}
			if err := offboard(t.Context(), w.lab, name); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			is(machine.Absent, false)
			if w.memberOf(name) != nil || w.objects["/api/v1/nodes/"+name] != nil {
				t.Errorf("%s is left in the cluster: %+v", name, w.members)
			}
			w.wantHealthy()
		})
	}
}

// Killed before any change, an onboarding and the way back are run again, and end as if nothing had happened.
func TestOnboardingKilledAtEveryChange(t *testing.T) {
	ways := []struct {
		name   string
		before func(context.Context, *Lab, string) error
		do     func(context.Context, *Lab, string) error
		stride int
	}{
		{"onboard", nil, onboard, 4}, // its joins are those of `up`
		{"offboard", onboard, offboard, 1},
	}
	for _, way := range ways {
		for _, name := range []string{"cp3", "w2"} {
			prepared := func(t *testing.T, w *world) {
				w.up()
				if way.before != nil {
					if err := way.before(t.Context(), w.lab, name); err != nil {
						t.Fatal(err)
					}
				}
				w.clean()
			}
			changes := 0
			inWorld(t, labtest.Three, later, func(t *testing.T, w *world) {
				prepared(t, w)
				if err := way.do(t.Context(), w.lab, name); err != nil {
					t.Fatal(err)
				}
				changes = w.changes
			})
			for at := 1; at <= changes; at += way.stride * pace {
				inWorld(t, labtest.Three, later, func(t *testing.T, w *world) {
					prepared(t, w)
					w.dieAt = at
					_ = way.do(t.Context(), w.lab, name)
					last := w.calls[len(w.calls)-1]
					if err := way.do(t.Context(), w.reborn(), name); err != nil {
						t.Errorf("%s %s, killed before change %d (%s): %v", way.name, name, at, last, err)
						return
					}
					w.wantHealthy()
					if in := w.objects["/api/v1/nodes/"+name] != nil; in != (way.name == "onboard") {
						t.Errorf("%s %s, killed before change %d (%s): in the cluster %v", way.name, name, at, last, in)
					}
				})
			}
		}
	}
}

// A machine of an onboarding needs a lab that was described as it is, and a node that waits.
func TestOnboardingRefusals(t *testing.T) {
	inWorld(t, labtest.Three, later, func(t *testing.T, w *world) {
		w.up()
		for _, err := range []error{w.lab.MakeMachine(t.Context(), "w1"), w.lab.RemoveMachine(t.Context(), "w1"), w.lab.Admit("w1"), w.lab.Dismiss("w7")} {
			if err == nil || !strings.Contains(err.Error(), "onboard: true") {
				t.Errorf("got %v", err)
			}
		}
		if _, _, err := w.lab.Machine(t.Context(), "w1"); err == nil || !strings.Contains(err.Error(), "onboard: true") {
			t.Errorf("got %v", err)
		}
		changed := *w.lab.described
		changed.Kubernetes.Version = "v1.36.2"
		l, err := New(&changed, Options{})
		if err != nil {
			t.Fatal(err)
		}
		w.attach(l)
		if err := l.MakeMachine(t.Context(), "w2"); err == nil || !strings.Contains(err.Error(), "kubernetes.version") || len(l.Changes()) > 0 {
			t.Errorf("with another cluster.yaml: %v, changed %q", err, l.Changes())
		}
		w.change(func() { w.box("w2").maker, w.box("w2").state = machine.Vagrant, machine.Running })
		if err := w.lab.RemoveMachine(t.Context(), "w2"); err == nil || !strings.Contains(err.Error(), "vagrant destroy w2") || w.box("w2").state != machine.Running {
			t.Errorf("a machine of vagrant's: %v", err)
		}
	})
}

// Control planes that come later are not counted before: the proof wants as many members as there are members of the lab.
func TestControlPlanesThatComeLater(t *testing.T) {
	inWorld(t, labtest.Three, later, func(t *testing.T, w *world) {
		w.up()
		if got := slices.Sorted(slices.Values(w.joins)); !slices.Equal(got, []string{"cp2", "w1"}) || len(w.members) != 2 {
			t.Errorf("joined %q, %d members", got, len(w.members))
		}
		st, err := w.lab.Status(t.Context())
		if err != nil || len(st.Nodes) != 5 {
			t.Fatalf("%+v, %v", st, err)
		}
		for _, n := range st.Nodes {
			if waits := n.Name == "cp3" || n.Name == "w2"; waits != (n.Note == "to be onboarded later") || waits != (n.Machine == machine.Absent) {
				t.Errorf("%+v", n)
			}
		}
		for _, name := range []string{"w2", "cp3"} { // admitted, then made by up
			if err := w.lab.Admit(name); err != nil {
				t.Fatal(err)
			}
		}
		w.reborn()
		w.up()
		w.wantHealthy()
		if len(w.members) != 3 || w.box("w2").state != machine.Running {
			t.Errorf("members %+v, w2 is %s", w.members, w.box("w2").state)
		}
	})
}

// The metrics of an onboarding are for a node that answers.
func TestOnboardingMetricsOfAStranger(t *testing.T) {
	inWorld(t, labtest.Three, later, func(t *testing.T, w *world) {
		if err := w.lab.Up(t.Context(), bringup.StageMachines); err != nil {
			t.Fatal(err)
		}
		if err := w.lab.WriteOnboardingMetrics(t.Context(), "w2", &metrics.Set{}); err == nil {
			t.Error("metrics of a node without a machine")
		}
		if id, err := w.lab.MachineID(t.Context(), "w1"); err != nil || id != w.box("w1").facts.MachineID {
			t.Errorf("machine-id %q, %v", id, err)
		}
	})
}
