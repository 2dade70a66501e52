package health

import (
	"os"
	"testing"

	"k8slab/lab/labtest"
	"k8slab/lab/state"
)

// Every lab is listed, whatever can be known of it, and by looking none comes to be.
func TestListLabs(t *testing.T) {
	l := labtest.Closed(t, labtest.Small)
	if all, err := List(t.Context()); err != nil || all == nil || len(all) > 0 {
		t.Errorf("without a lab: %+v, %v", all, err)
	}
	if _, err := l.ID(); err != nil {
		t.Fatal(err)
	}
	if all, err := List(t.Context()); err != nil || len(all) != 1 || all[0].Name != "small" || all[0].Kubernetes != "" || all[0].Made.IsZero() || all[0].Problem != "" {
		t.Errorf("of which nothing was made: %+v, %v", all, err)
	}
	if err := l.Settle(l.Cluster.Members()...); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(l.Path("libvirt"), 0o700); err != nil { // its daemon's, which has ended
		t.Fatal(err)
	}
	broken, err := state.Open("broken")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := broken.ID(); err != nil {
		t.Fatal(err)
	}
	if err := broken.Write(state.MadeFile, []byte("nodes: [")); err != nil {
		t.Fatal(err)
	}
	all, err := List(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	if b := all[0]; b.Name != "broken" || b.Problem == "" || b.Machines != 0 {
		t.Errorf("one that cannot be read: %+v", b)
	}
	want := Entry{Name: "small", Kubernetes: l.Cluster.Kubernetes.Version, URI: l.URI, Network: "10.31.0.0/24", Machines: 2, Made: all[1].Made, Problem: state.ErrNotUp.Error()}
	if all[1] != want {
		t.Errorf("one whose daemon has ended: %+v, want %+v", all[1], want)
	}
}
