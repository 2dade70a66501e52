package join

import (
	"fmt"
	"sync"
	"testing"

	"k8slab/lab/symptom"
)

// fleet is 20 machines before one cluster, every fourth of them healthy and the others with one of five defects.
type fleet struct {
	scenes []*scene
	want   []symptom.ID // of each machine; "" is healthy
}

func newFleet(t testing.TB) *fleet {
	t.Helper()
	defects := []struct {
		breaks  func(*scene)
		symptom symptom.ID
	}{
		{func(*scene) {}, ""},
		{func(s *scene) { s.remove("/usr/bin/kubeadm") }, symptom.KubeBinariesMissing},
		{func(s *scene) { s.write("/proc/swaps", swapsOn) }, symptom.SwapEnabled},
		{func(s *scene) { deadContainerd(s, "failed") }, symptom.RuntimeSocketMissing},
		{func(s *scene) { s.listen(10250, 99, "nginx") }, symptom.PortInUse},
		{func(s *scene) { s.target.CACertHashes = []string{"sha256:" + fmt.Sprintf("%064d", 0)} }, symptom.CACertHashMismatch},
	}
	cluster := newFakeCluster(t, clusterShape{})
	f := &fleet{}
	for i := range 20 {
		defect := defects[i%len(defects)]
		s := &scene{fakeMachine: newFakeMachine(t), cluster: cluster}
		s.cri = serveCRI(s.fakeMachine, "")
		s.target = cluster.join(s.fakeMachine, false)
		s.target.Name = fmt.Sprintf("w%02d", i)
		s.write("/etc/machine-id", fmt.Sprintf("%032x\n", i+1))
		defect.breaks(s)
		f.scenes, f.want = append(f.scenes, s), append(f.want, defect.symptom)
	}
	return f
}

// preflight checks all machines at once and returns the nearest cause of each.
func (f *fleet) preflight(t testing.TB) []Check {
	first := make([]Check, len(f.scenes))
	var wg sync.WaitGroup
	for i, s := range f.scenes {
		wg.Go(func() { first[i] = Preflight(t.Context(), s.Machine, s.target, nil)[0] })
	}
	wg.Wait()
	return first
}

func TestFleet(t *testing.T) {
	f := newFleet(t)
	var before []string
	for _, s := range f.scenes {
		before = append(before, s.digest())
	}
	first := f.preflight(t)
	for i, s := range f.scenes {
		if first[i].Symptom != f.want[i] {
			t.Errorf("%s: %s %s %q, want %s", s.target.Name, first[i].ID, first[i].Symptom, first[i].Evidence, f.want[i])
		}
		if s.digest() != before[i] {
			t.Errorf("%s was changed", s.target.Name)
		}
		if ran := s.changed(); len(ran) > 0 {
			t.Errorf("%s: it ran %q", s.target.Name, ran)
		}
	}
}

func BenchmarkFleet(b *testing.B) {
	f := newFleet(b)
	for b.Loop() {
		f.preflight(b)
	}
}
