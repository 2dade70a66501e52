package lab

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8slab/lab/bringup"
	"k8slab/lab/labtest"
	"k8slab/lab/machine"
)

// done are the plan's stages of which all steps are done, and the nodes of those of which some are.
func (w *world) done() (string, error) {
	steps, err := w.lab.Plan(w.t.Context())
	var all []string
	for _, stage := range bringup.Stages() {
		var nodes []string
		open := false
		for _, s := range steps {
			if s.Stage != stage {
				continue
			}
			open = open || !s.Done
			if s.Done {
				nodes = append(nodes, s.Node)
			}
		}
		switch {
		case !open:
			all = append(all, string(stage))
		case len(nodes) > 0:
			all = append(all, fmt.Sprintf("%s(%s)", stage, strings.Join(nodes, " ")))
		}
	}
	return strings.Join(all, " "), err
}

// At the end of each stage the plan says that this one and those before are done, and no more. Looking changes nothing.
func TestPlanAtEveryStage(t *testing.T) {
	// The network of the world is nobody's to make, and this lab has no add-ons.
	want := map[bringup.Stage]string{
		bringup.StageImage: "network reconfigure resize addons", bringup.StageNetwork: "network reconfigure resize addons",
		bringup.StageMachines:      "image network machines reconfigure resize addons",
		bringup.StageInit:          "image network machines init reconfigure resize addons",
		bringup.StageNetworkPlugin: "image network machines init network-plugin reconfigure resize addons",
		bringup.StageJoin:          "image network machines init network-plugin join reconfigure resize addons proof",
		bringup.StageReconfigure:   "image network machines init network-plugin join reconfigure resize addons proof",
		bringup.StageResize:        "image network machines init network-plugin join reconfigure resize addons proof",
		bringup.StageAddons:        "image network machines init network-plugin join reconfigure resize addons proof",
		bringup.StageProof:         "image network machines init network-plugin join reconfigure resize addons proof",
	}
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		if got, err := w.done(); err != nil || got != "network reconfigure resize addons" {
			t.Errorf("before: %q, %v", got, err)
		}
		for _, stage := range bringup.Stages() {
			w.reborn()
			if err := w.lab.Up(t.Context(), stage); err != nil {
				t.Fatalf("%s: %v", stage, err)
			}
			before := len(w.lab.Changes())
			if got, err := w.done(); err != nil || got != want[stage] || len(w.lab.Changes()) > before {
				t.Errorf("after %s: %q, %v, want %q; changed %q", stage, got, err, want[stage], w.lab.Changes()[before:])
			}
		}
	})
}

// Of a lab that is broken the plan says what up would do again.
func TestPlanOfABrokenLab(t *testing.T) {
	tests := []struct {
		name, want string
		damage     func(*world)
	}{
		{"a machine is off", "image network machines(cp1 cp2 cp3 w2) init network-plugin join(cp2 cp3 w2) reconfigure resize addons", func(w *world) { w.box("w1").state = machine.Off }},
		{"a machine is gone", "network machines(cp1 cp2 w1 w2) init network-plugin join(cp2 w1 w2) reconfigure resize addons", func(w *world) { w.box("cp3").state = machine.Absent }},
		{"a node was reset", "image network machines init network-plugin join(cp2 cp3 w2) reconfigure resize addons", func(w *world) {
			w.box("w1").facts.Joined = false
			delete(w.objects, "/api/v1/nodes/w1")
		}},
		{"flannel was changed", "image network machines init join reconfigure resize addons", func(w *world) { delete(w.objects, flannelSet) }},
	}
	for _, tt := range tests {
		inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
			w.up()
			w.change(func() { tt.damage(w) })
			if got, err := w.done(); err != nil || got != tt.want {
				t.Errorf("%s: %q, %v, want %q", tt.name, got, err, tt.want)
			}
		})
	}
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) { // what cannot be asked is no reason to have no plan
		w.up()
		w.change(func() { w.box("cp1").silent = true })
		steps, err := w.lab.Plan(t.Context())
		if err == nil || !strings.Contains(err.Error(), "cp1") || len(steps) == 0 {
			t.Errorf("%d steps, %v", len(steps), err)
		}
	})
}

// A plan of an interrupted up never says that something is done which up then does.
func TestPlanOfAnInterruptedUp(t *testing.T) {
	changes := 0
	inWorld(t, labtest.Small, nil, func(t *testing.T, w *world) {
		w.up()
		changes = w.changes
	})
	for at := 1; at <= changes; at += 5 * pace {
		inWorld(t, labtest.Small, nil, func(t *testing.T, w *world) {
			w.dieAt = at
			_ = w.lab.Up(t.Context(), bringup.StageProof)
			last := w.calls[len(w.calls)-1]
			l := w.reborn()
			steps, err := l.Plan(t.Context())
			if err != nil {
				t.Errorf("killed before change %d (%s): %v", at, last, err)
			}
			w.up()
			did := l.Changes()
			for _, s := range steps {
				call := map[bringup.Stage]string{bringup.StageMachines: "libvirt: start " + s.Node, bringup.StageInit: s.Node + ": systemd-run",
					bringup.StageNetworkPlugin: "kube PATCH", bringup.StageJoin: s.Node + ": /usr/bin/labnode join"}[s.Stage]
				made := call != "" && slices.ContainsFunc(did, func(c string) bool { return strings.HasPrefix(c, call) })
				if s.Done && made {
					t.Errorf("killed before change %d (%s): %s %q is done, and up did %q", at, last, s.Stage, s.Action, did)
				}
			}
		})
	}
}
