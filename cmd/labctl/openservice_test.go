package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBrowser(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "xdg-open")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		euid                   int
		display, wayland, path string
		want                   string
	}{
		{1000, ":0", "", dir, program},
		{1000, "", "wayland-0", dir, program},
		{1000, "", "", dir, ""},
		{1000, ":0", "", t.TempDir(), ""},
		{0, ":0", "", dir, ""},
	} {
		t.Setenv("DISPLAY", tt.display)
		t.Setenv("WAYLAND_DISPLAY", tt.wayland)
		t.Setenv("PATH", tt.path)
		if got := browser(tt.euid); got != tt.want {
			t.Errorf("%+v: got %q", tt, got)
		}
	}
}

func TestOpenListensOnLoopbackOnly(t *testing.T) {
	alone(t)
	for _, address := range []string{"0.0.0.0:80", "192.0.2.1:80", "localhost:80", "80"} {
		if status, _, stderr := labctl(t, "-c", small, "open", "web", "--listen", address); status != exitUsage || !strings.Contains(stderr, address) {
			t.Errorf("%s: status %d, %s", address, status, stderr)
		}
	}
}
