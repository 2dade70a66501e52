package external_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8slab/lab/external"
	"k8slab/lab/host"
	"k8slab/lab/labtest"
)

// lent is the small lab, lent to programs of the test.
func lent(t *testing.T) (*external.Access, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bench")
	a, err := external.Lend(labtest.Closed(t, labtest.Small), &host.Host{}, []byte("admin"), []byte("name: small"), dir)
	if err != nil {
		t.Fatal(err)
	}
	return a, dir
}

// A program finds all that it needs by its environment, in files that nobody else may read, and they go with the loan.
func TestLend(t *testing.T) {
	a, dir := lent(t)
	out, err := a.Run(t.Context(), `cat "$KUBECONFIG" && echo && cat "$LABCTL_CLUSTER" && echo && echo "$LABCTL_PHASE $LABCTL_SECONDS" && cat "$LABCTL_NODES"`, "diagnose", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitN(out, "\n", 4)
	if len(lines) < 4 || strings.Join(lines[:3], "|") != "admin|name: small|diagnose 60" {
		t.Fatalf("got %q", out)
	}
	var logins []external.Login
	if err := json.Unmarshal([]byte(lines[3]), &logins); err != nil || len(logins) != 2 {
		t.Fatalf("%v: %s", err, lines[3])
	}
	cp1 := logins[0]
	if cp1.Name != "cp1" || cp1.Role != "control-plane" || cp1.Address.String() != "10.31.0.11" || cp1.Port != 22 || cp1.User != "root" {
		t.Errorf("got %+v", cp1)
	}
	known, err := os.ReadFile(cp1.KnownHosts)
	if err != nil || !strings.HasPrefix(string(known), "10.31.0.11 ssh-ed25519 ") {
		t.Errorf("%v: %s", err, known)
	}
	if ssh, err := a.Run(t.Context(), `ssh -G -F "$LABCTL_SSH_CONFIG" w1`, "diagnose", time.Minute); err != nil || !strings.Contains(ssh, "hostname 10.31.0.21\n") ||
		!strings.Contains(ssh, "identityfile "+cp1.Key+"\n") || !strings.Contains(ssh, "userknownhostsfile "+cp1.KnownHosts+"\n") {
		t.Errorf("%v: %s", err, ssh)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 6 {
		t.Fatalf("%v: %v", err, entries)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", e.Name(), info.Mode(), err)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v: %v", info, err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the files stay: %v", err)
	}
}

// How a program ended is told with its last words, and one that takes too long is ended with all that it started.
func TestRunEnds(t *testing.T) {
	a, _ := lent(t)
	if _, err := a.Run(t.Context(), "echo first >&2; echo 'no idea' >&2; exit 3", "repair", time.Minute); err == nil || err.Error() != "exit status 3: no idea" {
		t.Errorf("got %v", err)
	}
	begun := time.Now()
	if _, err := a.Run(t.Context(), "sleep 60 & sleep 60", "repair", time.Second); err == nil || !strings.Contains(err.Error(), "its time is over after 1s") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}
