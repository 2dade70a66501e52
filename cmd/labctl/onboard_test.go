package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8slab/config"
	"k8slab/lab/event"
	"k8slab/lab/onboard"
)

func TestOnboardUsage(t *testing.T) {
	alone(t)
	for _, tt := range []struct {
		name string
		args string
		want []string
	}{
		{"no node", "", []string{"onboard needs NODE: labctl onboard NODE"}},
		{"status and rollback", "w2 --status --rollback", []string{"--status and --rollback contradict each other"}},
		{"all at once", "w2 --rollback --resume --skip-validation --dry-run --report", []string{
			"--rollback and --resume contradict", "--rollback and --skip-validation contradict", "--dry-run and --report contradict"}},
		{"repair of another cluster", "w2 --auto-fix --kubeconfig x", []string{"--kubeconfig and --auto-fix contradict"}},
		{"role in the lab", "w2 --role worker", []string{"--role is for another cluster"}},
		{"no role", "n1 --context x --role master", []string{`--role "master": use worker or control-plane`}},
		{"a member", "w1", []string{`no node "w1" with onboard: true; those that have it: w2, cp2`}},
		{"nobody", "w9 --status", []string{`no node "w9" with onboard: true; those that have it: w2, cp2`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, stdout, stderr := labctl(t, append([]string{"-c", later, "onboard"}, strings.Fields(tt.args)...)...)
			if status != exitUsage || stdout != "" {
				t.Errorf("status %d, stdout %q", status, stdout)
			}
			for _, want := range tt.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("stderr lacks %q:\n%s", want, stderr)
				}
			}
		})
	}
	if _, _, stderr := labctl(t, "-c", three, "onboard", "w1"); !strings.Contains(stderr, "no node has that") {
		t.Errorf("without any: %s", stderr)
	}
}

func TestOnboardWithoutALab(t *testing.T) {
	alone(t)
	for _, flags := range []string{"", "--status", "--dry-run", "--rollback --yes"} {
		status, stdout, stderr := labctl(t, append([]string{"-c", later, "onboard", "w2"}, strings.Fields(flags)...)...)
		if status != exitFailed || stdout != "" || !strings.Contains(stderr, "labctl up") {
			t.Errorf("%s: status %d, stdout %q, stderr %q", flags, status, stdout, stderr)
		}
	}
}

func TestOnboardCompletes(t *testing.T) {
	alone(t)
	_, stdout, _ := labctl(t, "__complete", "-c", later, "onboard", "")
	if !strings.HasPrefix(stdout, "w2\ncp2\n:") {
		t.Errorf("completed\n%s\nwant the nodes with onboard: true", stdout)
	}
}

// otherCluster is an API server that has nothing but a name. It tells what was asked of it that may change something.
func otherCluster(t *testing.T) (kubeconfig string, changes func() string) {
	t.Helper()
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			mu.Lock()
			asked = append(asked, r.Method+" "+r.URL.Path)
			mu.Unlock()
		}
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/api/v1/namespaces/kube-system" {
			_, _ = fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"7d8e2c1a-0000-4000-8000-000000000001"}}`)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"not found"}`)
	}))
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "config")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: x, user: x}}]\nusers: [{name: x}]\n" +
		"clusters: [{name: x, cluster: {server: '" + server.URL + "'}}]\n"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig, func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(asked, " ")
	}
}

func TestOnboardElsewhere(t *testing.T) {
	alone(t)
	t.Chdir(t.TempDir()) // no cluster.yaml
	kubeconfig, changes := otherCluster(t)
	state := filepath.Join(os.Getenv("XDG_STATE_HOME"), "k8slab")
	status, stdout, stderr := labctl(t, "onboard", "n1", "--kubeconfig", kubeconfig, "--status")
	if status != 0 || !strings.Contains(stdout, "not_started") {
		t.Errorf("status: %d, %q, %q", status, stdout, stderr)
	}
	status, stdout, stderr = labctl(t, "onboard", "n1", "--kubeconfig", kubeconfig, "--dry-run")
	for _, want := range []string{
		"1. pre_validation: ", "   - not applicable: the cluster has no Flux, and no repository is configured",
		"   - wait for n1 to join by its own means: ", "   - wait until the Node n1 is Ready, as worker", "9. health_verification: ", "nothing was changed",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("dry run: %d, stderr %q; stdout lacks %q:\n%s", status, stderr, want, stdout)
		}
	}
	if status != 0 || changes() != "" {
		t.Errorf("a dry run: %d, and asked for %s", status, changes())
	}
	if _, err := os.Stat(state); !os.IsNotExist(err) {
		t.Errorf("looks left %s: %v", state, err)
	}
	status, _, stderr = labctl(t, "onboard", "n1", "--kubeconfig", kubeconfig, "--rollback")
	if status != exitFailed || !strings.Contains(stderr, "none was begun") {
		t.Errorf("rollback of nothing: %d, %q", status, stderr)
	}
}

// A pre-validation that fails ends the command with its cause, its log, and a state that --status shows.
func TestOnboardFailsElsewhere(t *testing.T) {
	alone(t)
	t.Chdir(t.TempDir())
	kubeconfig, _ := otherCluster(t)
	status, stdout, stderr := labctl(t, "onboard", "n1", "--kubeconfig", kubeconfig, "--report")
	for _, want := range []string{"phase 1 of 9, pre_validation", "--resume", "Log: ", "report: "} {
		if status != exitFailed || !strings.Contains(stderr, want) {
			t.Errorf("status %d, stderr lacks %q:\n%s", status, want, stderr)
		}
	}
	if !strings.Contains(stdout, "onboarding of n1: failed") {
		t.Errorf("no summary: %q", stdout)
	}
	logs, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_STATE_HOME"), "k8slab", ".logs", "*", "*.log"))
	if len(logs) != 1 {
		t.Fatalf("logs in levels: %v", logs)
	}
	text, err := os.ReadFile(logs[0])
	if err != nil || !strings.Contains(string(text), " ERROR    n1 pre_validation: ") || !strings.Contains(string(text), " PROGRESS n1 pre_validation: started") {
		t.Errorf("%v; the log is\n%s", err, text)
	}
	status, _, stderr = labctl(t, "onboard", "n1", "--kubeconfig", kubeconfig)
	if status != exitFailed || !strings.Contains(stderr, "is not finished: continue with --resume") {
		t.Errorf("a second one: %d, %q", status, stderr)
	}
	status, _, stderr = labctl(t, "onboard", "n1", "--kubeconfig", kubeconfig, "--rollback")
	if status != exitUsage || !strings.Contains(stderr, "answer with --yes") {
		t.Errorf("rollback without a terminal: %d, %q", status, stderr)
	}
}

func TestLimits(t *testing.T) {
	set := config.Timeouts{NetworkValidation: 7 * time.Minute}
	for patience, want := range map[int]time.Duration{1: 5 * time.Minute, 5: 25 * time.Minute} {
		all := limits(set, patience)
		if len(all) != 9 || all[onboard.NetworkValidation] != 7*time.Minute || all[onboard.NodeJoinMonitoring] != want {
			t.Errorf("patience %d: %v", patience, all)
		}
	}
}

func TestInterruptedOnboarding(t *testing.T) {
	for err, want := range map[error]string{
		resumableError{errors.New("x"), "go on with labctl onboard w3 --resume"}: "labctl: interrupted; go on with labctl onboard w3 --resume\n",
		errors.New("x"): "labctl: interrupted; run the same command again to go on\n",
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errInterrupted)
		var out bytes.Buffer
		a := &app{stderr: &out}
		if status := a.exitCode(ctx, fmt.Errorf("onboard: %w", err)); status != exitInterrupted || out.String() != want {
			t.Errorf("status %d, %q, want %q", status, out.String(), want)
		}
	}
}

func TestPrintUndoable(t *testing.T) {
	var out bytes.Buffer
	printUndoable(&out, []onboard.Change{{Phase: "storage", Undo: "drain w3", Status: onboard.Made}, {Phase: "join", Undo: "remove its machine", Status: onboard.Intended}})
	if want := "1. storage: drain w3\n2. join: remove its machine (if it was made)\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// heard are the events that came through.
type heard struct{ details []string }

func (h *heard) Emit(e event.Event) { h.details = append(h.details, e.Detail) }

func TestWithoutDebug(t *testing.T) {
	h := &heard{}
	s := withoutDebug{h}
	for _, detail := range []string{"debug: x", "warning: y", "z"} {
		s.Emit(event.Event{State: event.Progress, Detail: detail})
	}
	if got := strings.Join(h.details, " | "); got != "warning: y | z" {
		t.Errorf("got %s", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
