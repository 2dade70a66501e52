package phase

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8slab/lab/atomicfile"
	"k8slab/lab/event"
	"k8slab/lab/onboard"
	"k8slab/lab/validate"
)

// evidenceFile is beside the state, and not in it: nothing is done because of it, and without it only a comparison and a report are poorer.
const evidenceFile = "evidence.json"

// Record is what was seen in one onboarding.
type Record struct {
	Began    time.Time                              `json:"began"` // the onboarding that it is of
	Before   *validate.Snapshot                     `json:"before,omitempty"`
	After    *validate.Snapshot                     `json:"after,omitempty"`
	Findings map[onboard.PhaseID][]validate.Finding `json:"findings"` // of each phase's last attempt
}

// Evidence keeps the Record of the newest onboarding in a file that is the user's alone.
type Evidence struct {
	path  string
	began func() (time.Time, error)
	mu    sync.Mutex
}

// OpenEvidence returns what is kept of the node's onboardings beside their states in the store, which is below dir. It touches nothing.
func OpenEvidence(dir, node string, store *onboard.Store) *Evidence {
	return &Evidence{path: filepath.Join(dir, node, evidenceFile), began: func() (time.Time, error) {
		view, err := store.Status()
		if err != nil || view.State == nil {
			return time.Time{}, err
		}
		return view.Started, nil
	}}
}

// Read returns the record of the onboarding that the state is of; an empty one if there is none, or if it is of another onboarding.
func (e *Evidence) Read() (Record, error) {
	began, err := e.began()
	if err != nil {
		return Record{}, err
	}
	fresh := Record{Began: began, Findings: map[onboard.PhaseID][]validate.Finding{}}
	data, err := os.ReadFile(e.path)
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	}
	var r Record
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		return fresh, fmt.Errorf("read the evidence %s: %w", e.path, err)
	}
	if !r.Began.Equal(began) || r.Findings == nil {
		return fresh, nil
	}
	return r, nil
}

// change replaces the record as a whole. A damaged one is begun anew.
func (e *Evidence) change(do func(*Record)) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	r, err := e.Read()
	if err != nil && r.Findings == nil {
		return err
	}
	do(&r)
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(e.path, atomicfile.Private, append(data, '\n'))
}

// keep records the findings of a phase. A detail may be a pod's last words.
func (e *Evidence) keep(id onboard.PhaseID, findings []validate.Finding) error {
	for i, f := range findings {
		findings[i].Detail = event.Redact(f.Detail)
	}
	return e.change(func(r *Record) { r.Findings[id] = findings })
}

// keepBefore takes a snapshot of the cluster before the node came, unless the record has one.
func (e *Evidence) keepBefore(ctx context.Context, take func(context.Context) (validate.Snapshot, error)) error {
	if r, err := e.Read(); err == nil && r.Before != nil {
		return nil
	}
	s, err := take(ctx)
	if err != nil {
		return fmt.Errorf("check the cluster before the node joins: %w", err)
	}
	return e.change(func(r *Record) { r.Before = &s })
}

// keepAfter takes a snapshot of the cluster with the node.
func (e *Evidence) keepAfter(ctx context.Context, take func(context.Context) (validate.Snapshot, error)) error {
	s, err := take(ctx)
	if err != nil {
		return fmt.Errorf("check the cluster with the node: %w", err)
	}
	return e.change(func(r *Record) { r.After = &s })
}
