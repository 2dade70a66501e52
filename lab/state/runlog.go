package state

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// RunLog makes the file that a run's events go to, and removes the oldest of the lab's logs.
func RunLog(lab, verb string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, ".logs", lab) // no lab has such a name
	const kept = 50
	old, _ := filepath.Glob(filepath.Join(dir, "*.jsonl")) // in order of time, by their names
	for len(old) >= kept {
		_ = os.Remove(old[0])
		_ = os.Remove(strings.TrimSuffix(old[0], ".jsonl") + ".log") // an onboarding's, in levels
		old = old[1:]
	}
	return filepath.Join(dir, fmt.Sprintf("%s-%s-%d.jsonl", time.Now().UTC().Format("20060102T150405"), verb, os.Getpid())), nil
}
