package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// readHistory reads the earlier runs, oldest first. A line that a killed run left half-written is returned apart.
func readHistory(file string) (runs []Run, unread []string, err error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	for line := range bytes.Lines(data) {
		var r Run
		switch {
		case len(bytes.TrimSpace(line)) == 0:
		case json.Unmarshal(line, &r) != nil:
			unread = append(unread, string(bytes.TrimSpace(line)))
		default:
			runs = append(runs, r)
		}
	}
	slices.SortStableFunc(runs, func(a, b Run) int { return a.Time.Compare(b.Time) })
	return runs, unread, err
}

// appendHistory adds a run in one write, on a line of its own whatever the file ends with.
func appendHistory(file string, r Run) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if before, err := os.ReadFile(file); err == nil && len(before) > 0 && before[len(before)-1] != '\n' {
		line = append([]byte("\n"), line...)
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}
