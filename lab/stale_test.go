package lab

import (
	"testing"

	"k8slab/config"
	"k8slab/lab/etcd"
	"k8slab/lab/join"
)

func TestRestoredFirst(t *testing.T) {
	l := newLab(t, three)
	for file, want := range map[string]string{"": "cp1, cp2, cp3", "cp1": "cp1, cp2, cp3", "cp2": "cp2, cp1, cp3", "cp3\n": "cp3, cp1, cp2", "gone": "cp1, cp2, cp3"} {
		if file != "" {
			if err := l.state.write(restoredFile, []byte(file)); err != nil {
				t.Fatal(err)
			}
		}
		if got := namesOf(l.restoredFirst(l.cluster.ControlPlanes())); got != want {
			t.Errorf("%q: got %s, want %s", file, got, want)
		}
		if err := l.forgetRestore(); err != nil {
			t.Fatal(err)
		}
	}
}

// The restored control plane speaks for the cluster, but only if it has joined.
func TestJoinedControlPlanesAfterARestore(t *testing.T) {
	l := newLab(t, three)
	if err := l.state.write(restoredFile, []byte("cp3")); err != nil {
		t.Fatal(err)
	}
	joined := join.Facts{Joined: true}
	for want, all := range map[string]map[string]join.Facts{
		"cp3, cp1": {"cp1": joined, "cp3": joined}, "cp1, cp2": {"cp1": joined, "cp2": joined, "cp3": {Dirty: true}},
	} {
		if got := namesOf((&forming{lab: l, facts: all}).joinedControlPlanes()); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestDropStaleWithoutARestore(t *testing.T) {
	l := newLab(t, three)
	c := &forming{lab: l, facts: map[string]join.Facts{"cp1": {Joined: true}, "cp2": {Joined: true}}}
	if err := c.dropStale(t.Context()); err != nil { // it has no view to ask, so it must not
		t.Error(err)
	}
	// The restored machine was lost: what is left is all there is.
	if err := l.state.write(restoredFile, []byte("cp3")); err != nil {
		t.Fatal(err)
	}
	if err := c.dropStale(t.Context()); err != nil {
		t.Error(err)
	}
	if l.isRestored(nodeOf(t, l, "cp3")) {
		t.Error("the restore is not forgotten")
	}
}

func TestOutdated(t *testing.T) {
	l := newLab(t, three)
	cps := l.cluster.ControlPlanes()
	member := func(names ...string) (members []etcd.Member) {
		for _, name := range names {
			members = append(members, etcd.Member{PeerURLs: []string{peerURL(nodeOf(t, l, name))}})
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
			if got := namesOf(outdated(tt.joined, tt.members)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
