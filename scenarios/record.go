package scenarios

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8slab/lab/atomicfile"
)

// Injected is a fault that was injected and is not restored yet.
type Injected struct {
	Fault      string    `json:"fault"`
	Node       string    `json:"node"`
	Time       time.Time `json:"time"`
	Experiment bool      `json:"circle,omitempty"` // injected by an experiment, which removes the entry at its end; it stays if the experiment was killed
	Damage     Damage    `json:"damage,omitzero"`  // of a soak of damage
}

// Record is the file that says which faults are in a lab. A fault is added before it is injected. Without a path, nothing is recorded.
type Record struct{ Path string }

// Faults are those in the lab, in the order of their injection.
func (r Record) Faults() (faults []Injected, err error) {
	data, err := os.ReadFile(r.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &faults)
	}
	if err != nil {
		return nil, fmt.Errorf("which faults are in the lab: %w; remove %s if `labctl status` says that it is healthy", err, r.Path)
	}
	return faults, nil
}

// Left are the faults of experiments that were killed.
func (r Record) Left() (left []Injected, err error) {
	faults, err := r.Faults()
	return slices.DeleteFunc(faults, func(f Injected) bool { return !f.Experiment }), err
}

// Add adds a fault.
func (r Record) Add(f Injected) error {
	if r.Path == "" {
		return nil
	}
	faults, err := r.Faults()
	if err != nil {
		return err
	}
	return r.write(append(faults, f))
}

// Forget removes faults that are not in the lab any more.
func (r Record) Forget(ended ...Injected) error {
	faults, err := r.Faults()
	if err != nil || len(faults) == 0 {
		return err
	}
	faults = slices.DeleteFunc(faults, func(f Injected) bool { return slices.Contains(ended, f) })
	if len(faults) == 0 {
		return os.Remove(r.Path)
	}
	return r.write(faults)
}

func (r Record) write(faults []Injected) error {
	data, err := json.Marshal(faults)
	if err != nil {
		return err
	}
	return atomicfile.Write(r.Path, atomicfile.Private, data)
}

// proof says that an experiment has just ended in a healthy lab.
type proof struct {
	Time    time.Time `json:"time"`
	Members []Member  `json:"members"`
}

// proofHolds is how long an experiment that follows another one relies on its proof.
const proofHolds = 10 * time.Second

func (r Record) proofFile() string { return filepath.Join(filepath.Dir(r.Path), "proof.json") }

// proven keeps the proof for an experiment that follows.
func (r Record) proven(members []Member) error {
	if r.Path == "" {
		return nil
	}
	data, err := json.Marshal(proof{time.Now(), members})
	if err != nil {
		return err
	}
	return atomicfile.Write(r.proofFile(), atomicfile.Private, data)
}

// takeProof returns the members of a lab that was proven healthy a moment ago, nil for none. A proof is for one experiment, and says nothing of
// a lab that has got a fault since.
func (r Record) takeProof() []Member {
	if r.Path == "" {
		return nil
	}
	data, err := os.ReadFile(r.proofFile())
	var p proof
	if err != nil || json.Unmarshal(data, &p) != nil || os.Remove(r.proofFile()) != nil || time.Since(p.Time) > proofHolds {
		return nil
	}
	if faults, err := r.Faults(); err != nil || len(faults) > 0 {
		return nil
	}
	return p.Members
}
