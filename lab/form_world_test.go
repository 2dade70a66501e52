package lab

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/bringup"
	"k8slab/lab/guard"
	"k8slab/lab/join"
	"k8slab/lab/labtest"
	"k8slab/lab/machine"
)

// onMachines is the test in a world of machines that exist and are in no cluster, whose owner agrees to everything.
func onMachines(t *testing.T, test func(*testing.T, *world, *[]guard.Change)) {
	t.Helper()
	existing := func(c *config.Cluster) {
		e := config.Existing()
		e.Name, e.Nodes, e.Tuning, e.Kubernetes.Version = c.Name, c.Nodes, c.Tuning, c.Kubernetes.Version
		e.Network.PodSubnet, e.Network.ServiceSubnet, e.Network.VirtualIP = c.Network.PodSubnet, c.Network.ServiceSubnet, c.Network.VirtualIP
		e.Network.Endpoint = c.Network.VirtualIP.String() + ":6443"
		*c = *e
	}
	inWorld(t, labtest.Three, existing, func(t *testing.T, w *world) {
		var shown []guard.Change
		for _, b := range w.machines {
			b.state = machine.Running
		}
		w.agrees = func(_ context.Context, c guard.Change) error { shown = append(shown, c); return nil }
		w.reborn()
		test(t, w, &shown)
	})
}

// What is formed is whole, has nothing left of its making, and can be taken apart and formed again.
func TestFormAndDismantle(t *testing.T) {
	onMachines(t, func(t *testing.T, w *world, shown *[]guard.Change) {
		for range 2 {
			w.up()
			w.wantHealthy()
			if plan := strings.Join((*shown)[0].Steps, "\n"); !strings.Contains(plan, "initialise the cluster on cp1") || !strings.Contains(plan, "join w2 as worker") {
				t.Errorf("shown: %s", plan)
			}
			w.clean()
			w.up()
			if len(*shown) != 1 || len(w.lab.Changes()) > 0 {
				t.Errorf("verifying asked %d times, and changed %q", len(*shown), w.lab.Changes())
			}
			if err := w.lab.Dismantle(t.Context()); err != nil {
				t.Fatal(err)
			}
			if last := (*shown)[1]; !last.Named || !strings.Contains(strings.Join(last.Steps, "\n"), "lost: every object") {
				t.Errorf("shown: %+v", last)
			}
			var resets []string
			for _, call := range w.calls {
				if name, is := strings.CutSuffix(call, ": "+labnodePath+" reset --member-removed"); is {
					resets = append(resets, name)
				}
			}
			if n := len(resets); n < 5 || !slices.Equal(resets[n-3:], []string{"cp3", "cp2", "cp1"}) {
				t.Errorf("reset %q", resets)
			}
			w.gone()
			*shown = nil
		}
	})
}

// Killed before any change, up goes on to a whole cluster.
func TestFormKilledAtEveryChange(t *testing.T) {
	changes := 0
	onMachines(t, func(t *testing.T, w *world, _ *[]guard.Change) {
		w.up()
		changes = w.changes
	})
	for at := 1; at <= changes; at += pace {
		onMachines(t, func(t *testing.T, w *world, _ *[]guard.Change) {
			w.killAt(at)
			_ = w.lab.Up(w.ctx, bringup.StageProof)
			last := w.calls[len(w.calls)-1]
			w.reborn()
			if err := w.lab.Up(t.Context(), bringup.StageProof); err != nil {
				t.Errorf("killed before change %d (%s): %v", at, last, err)
				return
			}
			// The tokens of a run that was killed after the last join end by themselves.
			if st, err := w.lab.Status(t.Context()); err != nil || !st.Healthy {
				t.Errorf("killed before change %d (%s): %v, %q", at, last, err, st.Problems)
			}
		})
	}
}

// What only a person can judge is refused before anything is changed.
func TestFormRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		arrange func(*world)
		want    string
	}{
		"a machine that is silent":    {func(w *world) { w.box("w1").silent = true }, "not every machine answers"},
		"somebody's files":            {func(w *world) { w.box("cp2").facts.Dirty = true }, "a kubeadm that labctl did not run"},
		"a worker of another cluster": {func(w *world) { w.box("w1").facts.Joined = true }, "it is in a cluster already"},
		"nobody who agrees":           {func(w *world) { w.lab.guard.Confirm = nil }, "only reads"},
		"somebody who does not": {func(w *world) {
			w.lab.guard.Confirm = func(context.Context, guard.Change) error { return errors.New("no") }
		}, "no"},
		"another Kubernetes":           {func(w *world) { w.box("w2").facts.KubeadmVersion = "v1.20.0" }, "labctl installs nothing"},
		"a virtual IP":                 {func(w *world) { w.lab.described.Network.Endpoint = "" }, "labctl sets up no virtual IP"},
		"a check that fails for good":  {func(w *world) { w.box("w2").blocks = "no runtime" }, "no runtime"},
		"an endpoint without an entry": {func(w *world) { w.lab.described.Network.Endpoint = "k8s.home.lan:6443" }, "does not know the name"},
	} {
		onMachines(t, func(t *testing.T, w *world, _ *[]guard.Change) {
			w.change(func() { tt.arrange(w) })
			if err := w.lab.Up(t.Context(), bringup.StageProof); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v", name, err)
			}
			if len(w.lab.Changes()) > 0 {
				t.Errorf("%s: changed %q", name, w.lab.Changes())
			}
		})
	}
}

// Machines of two clusters are not taken apart together, and neither is a cluster of which a machine is silent.
func TestDismantleRefuses(t *testing.T) {
	for want, arrange := range map[string]func(*world){
		"different clusters":        func(w *world) { w.box("w1").facts.CA = "another" },
		"not every machine answers": func(w *world) { w.box("w1").silent = true },
	} {
		onMachines(t, func(t *testing.T, w *world, _ *[]guard.Change) {
			w.up()
			w.clean()
			w.change(func() { arrange(w) })
			if err := w.lab.Dismantle(t.Context()); err == nil || !strings.Contains(err.Error(), want) || len(w.lab.Changes()) > 0 {
				t.Errorf("%v, changed %q", err, w.lab.Changes())
			}
		})
	}
	inWorld(t, labtest.Small, nil, func(t *testing.T, w *world) {
		w.up()
		if err := w.lab.Dismantle(t.Context()); err == nil || !strings.Contains(err.Error(), "labctl down") {
			t.Error(err)
		}
	})
}

// gone is the world after its last control plane was reset.
func (w *world) gone() {
	w.change(func() {
		for name, b := range w.machines {
			if b.facts.Joined || b.facts.Dirty {
				w.t.Errorf("%s: %+v", name, b.facts)
			}
			b.facts, b.files = join.Facts{MachineID: b.facts.MachineID}, map[string]string{}
		}
		w.members, w.objects, w.uploaded, w.joins = nil, map[string]object{}, "", nil
	})
	w.clean()
}
