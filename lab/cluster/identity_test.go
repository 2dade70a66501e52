package cluster

import (
	"testing"
	"time"

	"k8slab/lab/host"
	"k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/labtest"
	"k8slab/lab/machine"
	"k8slab/lab/state"
)

func TestClaimOf(t *testing.T) {
	s := labtest.Session(t, labtest.Three)
	recorded, renewed := kube.Node{Name: "w1"}, time.Now().Add(-time.Minute)
	machines := []machine.Machine{{Node: "w1", State: machine.Running, ID: "u1"}, {Node: "w2", State: machine.Paused, ID: "u2"}, {Node: "w3", State: machine.Off}}
	got := claimOf(s, machines, "m", recorded, renewed, (&Run{Session: s}).machineID)
	if got.UUIDs || got.Joiner != (join.Identity{Machine: "m", UUID: "u1"}) || got.Node != recorded || !got.Renewed.Equal(renewed) ||
		time.Since(got.Now) > time.Minute || len(got.Domains) != 2 {
		t.Errorf("got %+v", got)
	}
	// The joiner's own machine holds nothing against it. A paused machine goes on, and is as little gone as one that runs.
	for i, want := range []bool{true, false} {
		if d := got.Domains[i]; d.Running != want || d.Identity.Machine != state.MachineID(s.ID, d.Node) {
			t.Errorf("got %+v", d)
		}
	}
	s.URI = host.VirtualMachines
	if got := claimOf(s, machines, "m", recorded, renewed, (&Run{Session: s}).machineID); !got.UUIDs {
		t.Errorf("got %+v", got)
	}
}
