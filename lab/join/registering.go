package join

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8slab/lab/event"
	"k8slab/lab/symptom"
)

// registering follows kubelet's log while the new Node is proven: until the Node is there, only that log says what keeps it out.
type registering struct {
	engine *Engine
	shown  *repeats
	end    context.CancelFunc // of the proof

	mu      sync.Mutex
	missing bool     // the cluster has no Node of this name
	said    []string // kubelet's last errors
	cause   symptom.ID
	line    string // that shows the cause
}

// follow reads the log until ctx ends. A cause that no waiting cures ends the proof.
func (r *registering) follow(ctx context.Context, step *event.Step) {
	for l := range r.engine.followJournal(ctx) {
		if l.unit != "kubelet" || !l.news() {
			continue
		}
		if text := r.heard(l.String()); text != "" {
			step.Progress("%s", event.Redact(text))
		}
	}
}

// heard takes in a line, and returns what of it is to be shown.
func (r *registering) heard(text string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.missing {
		return ""
	}
	if r.said = append(r.said, text); len(r.said) > tailLines {
		r.said = r.said[1:]
	}
	if r.engine.Certain != nil && r.cause == "" {
		if id, ok := r.engine.Certain(text); ok && !slices.Contains(askedAgain, id) {
			r.cause, r.line = id, text
			r.end()
		}
	}
	return r.shown.show(text)
}

// see takes in what the proof found. A question that failed says nothing of the Node.
func (r *registering) see(c Check) {
	if c.ID == CheckNode && c.Reason != "" {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.missing = c.Reason == NodeMissing
	}
}

// blame makes what kubelet said the outcome's cause, if the Node never came.
func (r *registering) blame(o *Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.missing {
		return
	}
	if r.cause == "" && r.engine.Causes != nil {
		for _, id := range r.engine.Causes(strings.Join(r.said, "\n")) {
			r.cause, r.line = id, r.said[len(r.said)-1]
			break
		}
	}
	if r.cause != "" {
		o.Symptom, o.Hint, o.Evidence = r.cause, "", fmt.Sprintf("%s; %s", o.Evidence, r.line)
	}
}
