package join

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// scene is a healthy machine before a healthy cluster.
type scene struct {
	*fakeMachine
	cri     *fakeCRI
	cluster *fakeCluster
	target  Target
}

func newScene(t testing.TB, controlPlane bool) *scene {
	t.Helper()
	s := &scene{fakeMachine: newFakeMachine(t), cluster: newFakeCluster(t, clusterShape{})}
	s.cri = serveCRI(s.fakeMachine, "")
	s.target = s.cluster.join(s.fakeMachine, controlPlane)
	return s
}

// steadyDisk says whether a check is the one that measures this computer's own disk.
func steadyDisk(c Check) bool { return c.ID != "etcd-disk" || c.Result == Blocked }

func TestHealthyMachineIsReady(t *testing.T) {
	for _, role := range []string{"worker", "control plane"} {
		t.Run(role, func(t *testing.T) {
			s := newScene(t, role == "control plane")
			before := s.digest()
			begin := time.Now()
			for _, c := range Preflight(t.Context(), s.Machine, s.target, nil) {
				if c.Result != OK && steadyDisk(c) {
					t.Errorf("%s: %s %s: %s", c.ID, c.Result, c.Symptom, c.Evidence)
				}
			}
			if took := time.Since(begin); took > 1500*time.Millisecond {
				t.Errorf("took %s", took)
			}
			if s.digest() != before {
				t.Error("it changed the machine")
			}
			if ran := s.changed(); len(ran) > 0 {
				t.Errorf("it ran %q", ran)
			}
		})
	}
}

func TestPreflightNamesTheDefect(t *testing.T) {
	for _, tt := range slices.Concat(hostDefects, nodeDefects, clusterDefects) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &scene{fakeMachine: newFakeMachine(t), cluster: newFakeCluster(t, tt.shape)}
			s.cri = serveCRI(s.fakeMachine, "")
			s.target = s.cluster.join(s.fakeMachine, tt.controlPlane)
			if tt.breaks != nil {
				tt.breaks(s)
			}
			before := s.digest()
			checks := Preflight(t.Context(), s.Machine, s.target, nil)
			got := find(checks, tt.id)
			if got.Result != tt.result || got.Symptom != tt.symptom || !strings.Contains(got.Evidence, tt.evidence) {
				t.Errorf("%s: got %s %s %q, want %s %s %q", tt.id, got.Result, got.Symptom, got.Evidence, tt.result, tt.symptom, tt.evidence)
			}
			if got.Result != OK && got.Hint == "" {
				t.Error("it says nothing to do")
			}
			// The defect is what is named first, and nothing else is called certain.
			if first := checks[0]; got.Result != OK && got.Result != Warn && (first.ID != tt.id && first.Symptom != tt.symptom) {
				t.Errorf("first is %s: %s %s: %s", first.ID, first.Result, first.Symptom, first.Evidence)
			}
			if s.digest() != before {
				t.Error("it changed the machine")
			}
			if ran := s.changed(); len(ran) > 0 {
				t.Errorf("it ran %q", ran)
			}
		})
	}
}

// The token is for the cluster that the hash stands for, and for nobody else.
func TestTokenIsNotSentToStrangers(t *testing.T) {
	tests := []struct {
		name   string
		shape  clusterShape
		breaks func(*scene)
		sent   bool
	}{
		{"the pinned cluster", clusterShape{}, func(*scene) {}, true},
		{"another CA than the pinned one", clusterShape{}, func(s *scene) { s.target.CACertHashes = []string{"sha256:" + strings.Repeat("0", 64)} }, false},
		{"a certificate of another CA", clusterShape{otherCA: true}, func(*scene) {}, false},
		{"a certificate for another name", clusterShape{names: []string{"other.example.com"}}, func(*scene) {}, false},
		{"no pin", clusterShape{}, func(s *scene) { s.target.CACertHashes = nil }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &scene{fakeMachine: newFakeMachine(t), cluster: newFakeCluster(t, tt.shape)}
			s.cri = serveCRI(s.fakeMachine, "")
			s.target = s.cluster.join(s.fakeMachine, true)
			tt.breaks(s)
			Preflight(t.Context(), s.Machine, s.target, nil)
			s.cluster.mu.Lock()
			defer s.cluster.mu.Unlock()
			if sent := len(s.cluster.tokensSeen) > 0; sent != tt.sent {
				t.Errorf("sent to %q", s.cluster.tokensSeen)
			}
			for _, path := range s.cluster.tokensSeen {
				if strings.HasPrefix(path, "/livez") || strings.Contains(path, "cluster-info") {
					t.Errorf("a stranger's question carried the token: %s", path)
				}
			}
		})
	}
}

// Without anything to join only the machine is looked at.
func TestMachineOnly(t *testing.T) {
	f := newFakeMachine(t)
	serveCRI(f, "")
	for _, c := range Preflight(t.Context(), f.Machine, Target{}, nil) {
		if c.Result != OK {
			t.Errorf("%s: %s %s", c.ID, c.Result, c.Evidence)
		}
		if strings.HasPrefix(string(c.ID), "endpoint") || c.ID == "bootstrap-token" {
			t.Errorf("%s was made", c.ID)
		}
	}
}
