package cluster

import (
	"context"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/labtest"
)

func TestIsMember(t *testing.T) {
	s := labtest.Session(t, labtest.Three)
	reference := join.Facts{Joined: true, CA: "ca", MachineID: "m1"}
	known := []kube.Node{{Name: "cp1", MachineID: "m1"}, {Name: "w1", MachineID: "m4"}}
	tests := []struct {
		name  string
		fact  join.Facts
		nodes []kube.Node
		want  bool
	}{
		{"member", join.Facts{Joined: true, CA: "ca", MachineID: "m4"}, known, true},
		{"new machine", join.Facts{MachineID: "m4"}, known, false},
		{"interrupted join", join.Facts{Dirty: true, CA: "ca", MachineID: "m4"}, known, false},
		{"of another cluster", join.Facts{Joined: true, CA: "other", MachineID: "m4"}, known, false},
		{"the Node is another machine's", join.Facts{Joined: true, CA: "ca", MachineID: "m5"}, known, false},
		{"its Node was deleted", join.Facts{Joined: true, CA: "ca", MachineID: "m4"}, known[:1], false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := New(s, map[string]join.Facts{"cp1": reference, "w1": tt.fact}, nil)
			if got := c.IsMember(labtest.Node(t, s.Lab, "w1"), tt.nodes); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestJoinedControlPlanes(t *testing.T) {
	s := labtest.Session(t, labtest.Three)
	c := New(s, map[string]join.Facts{"cp3": {Joined: true}, "w1": {Joined: true}, "cp1": {Dirty: true}}, nil)
	if got := c.JoinedControlPlanes(); len(got) != 1 || got[0].Name != "cp3" {
		t.Errorf("got %v", got)
	}
	// Asking must not change what the cluster has.
	if got := len(s.Cluster.ControlPlanes()); got != 3 {
		t.Errorf("then the cluster has %d control planes", got)
	}
}

// Without facts a node that did not answer is left alone, unless machines are made one after another.
func TestSilentNodesAreNotJoined(t *testing.T) {
	c := New(nil, map[string]join.Facts{"cp1": {}}, nil)
	if cp1, cp2 := (config.Node{Name: "cp1"}), (config.Node{Name: "cp2"}); c.silent(cp1) || !c.silent(cp2) {
		t.Error("a repair would join a node that it cannot ask")
	}
	c.Boot = func(context.Context, config.Node) error { return nil }
	if c.silent(config.Node{Name: "cp2"}) {
		t.Error("a machine that waits for its turn would never be made")
	}
}

// What a join at work has made so far looks like what an earlier life left. Without an administrator the run cannot touch etcd.
func TestJoinAtWorkIsNotCleared(t *testing.T) {
	s := labtest.Session(t, labtest.Three)
	c := New(s, map[string]join.Facts{"cp1": {Joined: true}, "cp2": {Dirty: true, JoinUnit: "active"}}, nil)
	j := &nodeJoin{Run: c, node: labtest.Node(t, s.Lab, "cp2"), number: 1, step: s.Events.Start("cp2", "join", 0)}
	if _, err := j.clear(t.Context()); err == nil || !strings.Contains(err.Error(), "kubeadm is at work") {
		t.Errorf("got %v", err)
	}
}
