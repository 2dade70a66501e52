package scenarios

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Injected is a fault that was made by hand and is not restored yet.
type Injected struct {
	Fault string    `json:"fault"`
	Node  string    `json:"node"`
	Time  time.Time `json:"time"`
}

// Record is the file that remembers which faults are in a lab. A fault is written down before it is made.
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

// Add writes a fault down.
func (r Record) Add(f Injected) error {
	faults, err := r.Faults()
	if err != nil {
		return err
	}
	return r.write(append(faults, f))
}

// Clear forgets all faults.
func (r Record) Clear() error { return os.RemoveAll(r.Path) }

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
