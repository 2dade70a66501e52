package cluster

import (
	"testing"

	"k8slab/config"
	"k8slab/lab/etcd"
	"k8slab/lab/join"
	"k8slab/lab/labtest"
	"k8slab/lab/session"
)

// The restored control plane speaks for the cluster, but only if it has joined.
func TestJoinedControlPlanesAfterARestore(t *testing.T) {
	s := labtest.Session(t, labtest.Three)
	if err := s.Restored(labtest.Node(t, s.Lab, "cp3")); err != nil {
		t.Fatal(err)
	}
	joined := join.Facts{Joined: true}
	for want, all := range map[string]map[string]join.Facts{
		"cp3, cp1": {"cp1": joined, "cp3": joined}, "cp1, cp2": {"cp1": joined, "cp2": joined, "cp3": {Dirty: true}},
	} {
		if got := session.NamesOf(New(s, all, nil).JoinedControlPlanes()); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestDropStaleWithoutARestore(t *testing.T) {
	s := labtest.Session(t, labtest.Three)
	c := New(s, map[string]join.Facts{"cp1": {Joined: true}, "cp2": {Joined: true}}, nil)
	if err := c.dropStale(t.Context()); err != nil { // it has no administrator to ask, so it must not
		t.Error(err)
	}
	// The restored machine was lost: what is left is all there is.
	if err := s.Restored(labtest.Node(t, s.Lab, "cp3")); err != nil {
		t.Fatal(err)
	}
	if err := c.dropStale(t.Context()); err != nil {
		t.Error(err)
	}
	if s.IsRestored(labtest.Node(t, s.Lab, "cp3")) {
		t.Error("the restore is not forgotten")
	}
}

func TestOutdated(t *testing.T) {
	s := labtest.Session(t, labtest.Three)
	cps := s.Cluster.ControlPlanes()
	member := func(names ...string) (members []etcd.Member) {
		for _, name := range names {
			members = append(members, etcd.Member{PeerURLs: []string{session.PeerURL(labtest.Node(t, s.Lab, name))}})
		}
		return members
	}
	tests := []struct {
		name    string
		joined  []config.Node
		members []etcd.Member
		want    string
	}{
		{"all others", cps[1:], member("cp1"), "cp2, cp3"},
		{"one has joined again", cps[1:], member("cp1", "cp2"), "cp3"},
		{"none", cps[1:], member("cp1", "cp2", "cp3"), ""},
		{"one was reset by hand", cps[2:], member("cp1"), "cp3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := session.NamesOf(outdated(tt.joined, tt.members)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
