package diagnose

import (
	"fmt"
	"testing"

	"k8slab/lab/diagnose/fact"
)

func TestPeersOf(t *testing.T) {
	for _, c := range []struct{ controlPlanes, workers, ofControlPlane, ofWorker int }{
		{3, 2, 4, 4},
		{3, 30, 32, 32},
		{3, 31, 33, 19},
		{3, 497, 499, 19},
	} {
		var s Sources
		for i := range c.controlPlanes {
			s.Peers = append(s.Peers, fact.Peer{Name: fmt.Sprint("cp", i), Role: roleControlPlane})
		}
		for i := range c.workers {
			s.Peers = append(s.Peers, fact.Peer{Name: fmt.Sprint("w", i), Role: "worker"})
		}
		dialled := map[string]int{} // by workers
		for _, p := range s.Peers {
			peers, want := s.peersOf(Machine{Name: p.Name, Role: p.Role}), c.ofWorker
			if p.Role == roleControlPlane {
				want = c.ofControlPlane
			}
			seen := map[string]bool{p.Name: true}
			for _, to := range peers {
				if seen[to.Name] {
					t.Fatalf("%+v: %s dials %s twice, or itself", c, p.Name, to.Name)
				}
				seen[to.Name] = true
				if p.Role != roleControlPlane {
					dialled[to.Name]++
				}
			}
			if len(peers) != want {
				t.Errorf("%+v: %s dials %d peers, want %d", c, p.Name, len(peers), want)
			}
		}
		for i := range c.workers {
			if name := fmt.Sprint("w", i); dialled[name] != c.ofWorker-c.controlPlanes {
				t.Errorf("%+v: %s is dialled by %d workers", c, name, dialled[name])
			}
		}
	}
}
