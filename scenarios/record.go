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
)

// Injected is a fault that was made and is not restored yet.
type Injected struct {
	Fault  string    `json:"fault"`
	Node   string    `json:"node"`
	Time   time.Time `json:"time"`
	Circle bool      `json:"circle,omitempty"` // made by a circle, which would have ended it: what is left if it was killed
}

// Record is the file that remembers which faults are in a lab. A fault is written down before it is made. Without a path nothing is.
type Record struct{ Path string }

// Faults are those in the lab, in the order in which they were made.
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

// Left are the faults of circles that were killed.
func (r Record) Left() (left []Injected, err error) {
	faults, err := r.Faults()
	for _, f := range faults {
		if f.Circle {
			left = append(left, f)
		}
	}
	return left, err
}

// Add writes a fault down.
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

// Forget is for faults that are not in the lab any more.
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
	temporary := filepath.Join(filepath.Dir(r.Path), ".faults.tmp")
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, r.Path)
}
