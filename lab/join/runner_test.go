package join

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8slab/lab/event"
	"k8slab/lab/symptom"
)

// details keeps what events say.
type details struct{ texts []string }

func (d *details) Emit(e event.Event) {
	if e.Detail != "" {
		d.texts = append(d.texts, e.Phase+": "+e.Detail)
	}
}

// Whoever counts attempts hears of each once, and cannot make one fail.
func TestEndedAttemptsAreTold(t *testing.T) {
	seen := &details{}
	var told []Outcome
	s := &series{engine: &Engine{Events: event.NewStream(seen), Ended: func(o Outcome) error {
		told = append(told, o)
		return errors.New("the disk is full")
	}}}
	s.tell(Outcome{Joined: true, Already: true}) // nothing was attempted
	s.tell(failedWith(symptom.SwapEnabled))
	if len(told) != 1 || told[0].Symptom != symptom.SwapEnabled {
		t.Errorf("told of %+v", told)
	}
	if want := []string{"metrics: warning: the disk is full"}; !slices.Equal(seen.texts, want) {
		t.Errorf("events: %q, want %q", seen.texts, want)
	}
	s.engine.Ended = nil
	s.tell(Outcome{})
}

// With a login, what hangs a join from the cluster's side ends it: here kubeadm would wait for a minute.
func TestAJoinIsWatchedThroughTheLogin(t *testing.T) {
	s := newScenery(t, false, "sleep 60")
	s.engine.Preflight = nil
	c := newControlPlane(t)
	api := &adminAPI{t: t, rejects: `admission webhook "nodes.example.com" denied the request: no tag`}
	api.serve(c)
	job := &series{engine: s.engine, job: s.job, login: Login{Host: "root@cp1", Run: c.run}}
	begin := time.Now()
	o, err := job.attempt(t.Context(), 1)
	if err != nil || o.Joined || o.Symptom != symptom.AdmissionRejects || !strings.Contains(o.Evidence, "nodes.example.com") || time.Since(begin) > 30*time.Second {
		t.Errorf("after %s: %+v, %v", time.Since(begin), o, err)
	}
	if !strings.Contains(s.events.details(), CauseMark+"admission-rejects") {
		t.Error(s.events.details())
	}
}
