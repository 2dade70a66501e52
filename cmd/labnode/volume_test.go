package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProbeVolume(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	tests := []struct {
		name, verb, file, text string
		fails                  string // part of what is said
	}{
		{"nothing there yet", "read", file, "one", "no such file"},
		{"write", "write", file, "longer than one", ""},
		{"write again", "write", file, "one", ""},
		{"read back", "read", file, "one", ""},
		{"another text", "read", file, "two", "has 3 bytes that are not the 3"},
		{"the beginning alone", "read", file, "on", "has 3 bytes that are not the 2"},
		{"no text", "read", file, "", "K8SLAB_TEXT is not set"},
		{"no directory", "write", filepath.Join(dir, "none", "file"), "one", "no such file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(textVariable, tt.text)
			var said bytes.Buffer
			a := &app{stdin: strings.NewReader(""), stdout: &said, stderr: &said}
			status := a.run(t.Context(), []string{"probe", tt.verb, tt.file})
			if (status != 0) != (tt.fails != "") || !strings.Contains(said.String(), tt.fails) {
				t.Errorf("status %d, %q", status, said.String())
			}
		})
	}
	if data, err := os.ReadFile(file); string(data) != "one" || err != nil {
		t.Errorf("%q %v", data, err)
	}
}
