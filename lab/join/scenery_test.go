package join

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8slab/lab/event"
	"k8slab/lab/symptom"
)

// recorder keeps the events of a test.
type recorder struct {
	mu     sync.Mutex
	events []event.Event
}

func (r *recorder) Emit(e event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) details() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, e := range r.events {
		fmt.Fprintf(&b, "%s %s %s\n", e.Phase, e.State, e.Detail)
	}
	return b.String()
}

// certainly is a small catalogue.
func certainly(line string) (symptom.ID, bool) {
	for part, id := range map[string]symptom.ID{
		"too many learner members": symptom.EtcdTooManyLearners,
		"containerd.sock: connect": symptom.RuntimeSocketMissing,
		"is forbidden":             symptom.BootstrapRBACForbidden,
	} {
		if strings.Contains(line, part) {
			return id, true
		}
	}
	return "", false
}

// scenery is an engine on a machine with a fake kubeadm, which is a shell script.
type scenery struct {
	*fakeMachine
	engine *Engine
	events *recorder
	job    *Job
	dir    string
}

func newScenery(t *testing.T, controlPlane bool, kubeadm string) *scenery {
	t.Helper()
	f := newFakeMachine(t)
	f.answer("systemctl stop kubelet.service", "")
	s := &scenery{fakeMachine: f, events: &recorder{}, dir: t.TempDir()}
	script := filepath.Join(s.dir, "kubeadm")
	text := "#!/bin/sh\ncat $3 >" + s.dir + "/config\necho \"$@\" >" + s.dir + "/args\n" + kubeadm + "\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	command := workerCommand
	if controlPlane {
		command += " --control-plane --certificate-key " + testKey
	}
	config, target := commandConfig(t, command, Environment{})
	s.job = &Job{Config: config, Target: target, Node: "w1", Number: 1, Of: 1}
	s.engine = &Engine{
		Machine: f.Machine, Events: event.NewStream(s.events), Node: "w1", Certain: certainly,
		Kubeadm: []string{script}, Journal: []string{"true"},
	}
	return s
}

func (s *scenery) path(name string) string { return filepath.Join(s.dir, name) }

// journal makes the machine's journal say something once the file is there.
func (s *scenery) journal(when, unit, message string) {
	line, _ := json.Marshal(map[string]string{"_SYSTEMD_UNIT": unit, "MESSAGE": message})
	script := fmt.Sprintf("until [ -e %s ]; do sleep 0.02; done; echo '%s'; exec sleep 60", s.path(when), line)
	s.engine.Journal = []string{"sh", "-c", script}
}

// run makes only kubeadm's part of an attempt.
func (s *scenery) run(ctx context.Context) (Outcome, bool) {
	o := Outcome{ExitCode: -1}
	ok := s.engine.kubeadm(ctx, s.job, &o)
	return o, ok
}

// kubeadmEnds is where nothing of kubeadm's run may be left.
func (s *scenery) kubeadmEnds(t *testing.T) {
	t.Helper()
	if s.Exists(kubeadmConfig) || s.Exists(bootstrapConf) {
		t.Error("the configuration with the secrets is left, or kubelet's bootstrap kubeconfig")
	}
	if s.Exists(kubeletConfig) {
		text, _ := s.Read(kubeletConfig)
		if strings.HasPrefix(text, bridgeMark) {
			t.Error("the temporary kubelet configuration is left")
		}
	}
}
