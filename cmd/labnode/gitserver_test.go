package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The command refuses a missing or an empty password, and ends with its context.
func TestGitserver(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "password")
	run := func(args ...string) (int, string) {
		var said strings.Builder
		a := &app{stdout: io.Discard, stderr: &said}
		return a.run(t.Context(), append([]string{"gitserver", "--listen", "127.0.0.1:0", "--dir", dir}, args...)), said.String()
	}
	if code, said := run(); code == 0 || !strings.Contains(said, "password-file") {
		t.Errorf("exit %d: %s", code, said)
	}
	if err := os.WriteFile(file, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, said := run("--password-file", file); code != exitFailed || !strings.Contains(said, "is empty") {
		t.Errorf("exit %d: %s", code, said)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := serve(ctx, "127.0.0.1:0", http.NotFoundHandler()); err != nil {
		t.Error(err)
	}
}
