package bringup

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/golden"
	"k8slab/lab/join"
	"k8slab/lab/labtest"
	"k8slab/lab/machine"
	"k8slab/lab/state"
)

// labOf is a lab that is what the cluster describes.
func labOf(c *config.Cluster) state.Lab {
	return state.Lab{Cluster: c, After: c, URI: "qemu:///system"}
}

func TestPlan(t *testing.T) {
	tests := []struct{ name, file, golden string }{
		{"three control planes", labtest.Three, "plan-three.json"},
		{"one control plane", labtest.Small, "plan-small.json"},
		{"staggered machines", "../../lab/bringup/testdata/staggered.yaml", "plan-staggered.json"},
		{"nodes that join later", labtest.Onboard, "plan-onboard.json"},
		{"options", labtest.WithOptions, "plan-options.json"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			steps := NewPlan(labOf(labtest.Cluster(t, tt.file)))
			text, err := json.MarshalIndent(steps, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, tt.golden, string(text)+"\n")
			// In the order of the stages, so that --until cuts off an end of it.
			last := 0
			for _, s := range steps {
				i := slices.Index(Stages(), s.Stage)
				if i < 0 && s.Stage == "onboard" {
					continue
				}
				if i < last {
					t.Errorf("%s comes after %s", s.Stage, Stages()[last])
				}
				last = i
			}
			if last != len(stages)-1 {
				t.Errorf("the last stage is %s", Stages()[last])
			}
		})
	}
}

// Users edit the checkout's cluster.yaml: it may have any nodes, and has to be valid.
func TestClusterYAMLOfTheCheckout(t *testing.T) {
	c, _, err := config.Load("../../cluster.yaml")
	if err != nil {
		t.Fatalf("cluster.yaml in this checkout is not valid; correct it, or take it back with `git checkout cluster.yaml`:\n%v", err)
	}
	machines := 0
	for _, s := range NewPlan(labOf(c)) {
		if strings.HasPrefix(s.Action, "machine with ") {
			machines++
		}
	}
	if want := len(c.Members()); machines != want {
		t.Errorf("the plan makes %d machines, want %d", machines, want)
	}
}

func TestParseStage(t *testing.T) {
	for _, s := range Stages() {
		if got, err := ParseStage(string(s)); err != nil || got != s {
			t.Errorf("%s: got %s, %v", s, got, err)
		}
	}
	if got, err := ParseStage(""); err != nil || got != StageProof {
		t.Errorf("none: got %s, %v", got, err)
	}
	for _, s := range []string{"onboard", "Image", " image", "joined"} {
		if got, err := ParseStage(s); err == nil || !strings.Contains(err.Error(), "image, network, machines, init, network-plugin, join, reconfigure, resize, addons, proof") {
			t.Errorf("%q: got %q, %v, want an error that lists the steps", s, got, err)
		}
	}
}

// The plan says what of it a lab has.
func TestPlanOfALabThatExists(t *testing.T) {
	steps := NewPlan(labOf(labtest.Cluster(t, labtest.Three)))
	running := map[string]machine.State{"cp1": machine.Running, "cp2": machine.Running, "cp3": machine.Off, "w1": machine.Running, "w2": machine.Running}
	tests := []struct {
		name string
		lab  present
		done string // stages and nodes
	}{
		{"none", present{}, ""},
		{"a network", present{network: true}, "network"},
		{"machines, one of them off", present{network: true, machines: running}, "image network machines/cp1 machines/cp2 machines/w1 machines/w2"},
		{"a machine is gone", present{machines: map[string]machine.State{"cp1": machine.Running, "cp2": machine.Absent}}, "machines/cp1"},
		{"a cluster of two, its first node out", present{facts: map[string]join.Facts{"cp2": {Joined: true}, "w1": {Joined: true}, "cp1": {}}, plugin: true}, "init/cp1 network-plugin join/cp2 join/w1"},
		{"all is well", present{healthy: true}, "proof"},
	}
	for _, tt := range tests {
		var done []string
		for _, s := range steps {
			if s.done(tt.lab) {
				done = append(done, strings.TrimSuffix(string(s.Stage)+"/"+s.Node, "/"))
			}
		}
		if got := strings.Join(done, " "); got != tt.done {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.done)
		}
	}
}

// A plan for a lab whose cluster.yaml was edited begins with what leaves, and is of what stays.
func TestPlanOfAChange(t *testing.T) {
	l := labOf(labtest.Cluster(t, labtest.Three))
	after := *l.Cluster
	after.Nodes = slices.DeleteFunc(slices.Clone(after.Nodes), func(n config.Node) bool { return n.Name == "cp1" || n.Name == "w2" })
	l.After, l.Described = &after, &after
	l.Differences = []state.Difference{
		{Key: "nodes[cp1]", Node: "cp1", Way: state.Removes}, {Key: "nodes[w2]", Node: "w2", Way: state.Removes},
		{Key: "resources.control_plane.memory", Way: state.Resizes}, {Key: "nodes[w1].labels", Node: "w1", Way: state.Reconfigures},
	}
	var got []string
	for _, s := range NewPlan(l) {
		got = append(got, strings.TrimSuffix(string(s.Stage)+"/"+s.Node, "/"))
	}
	want := "remove/w2 remove/cp1 image network machines/cp2 machines/cp3 machines/w1 init/cp2 network-plugin join/cp3 join/w1 " +
		"reconfigure reconfigure/cp2 reconfigure/cp3 reconfigure/w1 resize/cp2 resize/cp3 proof"
	if text := strings.Join(got, " "); text != want {
		t.Errorf("got %s, want %s", text, want)
	}
}
