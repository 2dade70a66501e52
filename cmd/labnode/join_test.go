package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8slab/lab/join"
	"k8slab/lab/metrics"
	"k8slab/lab/symptom"
)

const (
	joinToken = "abcdef.0123456789abcdef"
	joinHash  = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	joinWords = "kubeadm join 10.30.0.10:6443 --token " + joinToken + " --discovery-token-ca-cert-hash " + joinHash
)

func testApp(stdin string) (*app, *strings.Builder, *strings.Builder) {
	var stdout, stderr strings.Builder
	return &app{stdin: strings.NewReader(stdin), stdout: &stdout, stderr: &stderr}, &stdout, &stderr
}

func TestJoinRequest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "command")
	if err := os.WriteFile(file, []byte(joinWords+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		o       joinOptions
		args    []string
		stdin   string
		env     map[string]string
		warning bool
		tries   int
		config  string // part of it
	}{
		{"a command's words", joinOptions{}, strings.Fields(joinWords), "", nil, true, 3, "tlsBootstrap: 5m0s"},
		{"a command as one word", joinOptions{}, []string{joinWords}, "", nil, true, 3, "10.30.0.10:6443"},
		{"a command on stdin", joinOptions{commandFile: "-"}, nil, joinWords, map[string]string{"JOIN_TIMEOUT": "60", "MAX_RETRIES": "7"}, false, 7, "tlsBootstrap: 1m0s"},
		{"a command in a file", joinOptions{commandFile: file}, nil, "", nil, false, 3, "10.30.0.10:6443"},
		{"no endpoint", joinOptions{commandFile: "-"}, nil, strings.ReplaceAll(joinWords, " 10.30.0.10:6443", ""), map[string]string{"MASTER_IP": "10.30.0.11"}, false, 3, "10.30.0.11:6443"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, _, stderr := testApp(tt.stdin)
			o := tt.o
			o.output, o.request.First, o.getenv, o.machine = "text", 1, func(k string) string { return tt.env[k] }, join.Local()
			target, err := a.joinRequest(&o, tt.args)
			if err != nil || target.Token != joinToken || o.request.Node == "" || o.request.Policy.Attempts != tt.tries || !strings.Contains(o.request.Config, tt.config) {
				t.Errorf("%v, target %t, %+v", err, target.Token == joinToken, o.request)
			}
			if strings.Contains(stderr.String(), "warning") != tt.warning || strings.Contains(stderr.String(), joinToken) {
				t.Errorf("stderr %q", stderr)
			}
		})
	}
}

func TestJoinRequestNamesEveryProblem(t *testing.T) {
	a, _, stderr := testApp("")
	status := a.run(t.Context(), []string{"join", "--config", "x", "--command-file", "y", "-o", "xml", "--attempt", "0", "--control-plane-ssh", "-x"})
	if status != exitUsage {
		t.Errorf("status %d", status)
	}
	for _, want := range []string{"give one of --config", "xml", "--attempt", "--control-plane-ssh"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("%q is not in %q", want, stderr)
		}
	}
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{{"follow", "--from", "0"}, {"follow", "x"}, {"validate", "-o", "xml"}, {"validate", "--serve", ":80"}, {"validate", "--serve", "10.30.0.21:80"},
		{"reset", "x"}, {"facts", "x"}, {"join", "--config", "/nowhere"}} {
		a, _, _ := testApp("")
		if status := a.run(t.Context(), args); status != exitUsage {
			t.Errorf("%q: status %d", args, status)
		}
	}
}

func TestHealthIsServed(t *testing.T) {
	asked := 0
	checks := []join.Check{{ID: "kubelet", Result: join.OK}, {ID: "node", Result: join.Blocked, Evidence: "NotReady"}}
	now := time.Unix(0, 0)
	handler := healthHandler(func(context.Context) []join.Check { asked++; return slices.Clone(checks) }, func() time.Time { return now })
	get := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz", nil))
		return w
	}
	if w := get(); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "NotReady") || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	checks = checks[:1]
	if w := get(); w.Code != http.StatusServiceUnavailable || asked != 1 {
		t.Errorf("%d, asked %d times: an answer is kept for a while", w.Code, asked)
	}
	now = now.Add(validateFresh)
	if w := get(); w.Code != http.StatusOK || asked != 2 || !strings.Contains(w.Body.String(), `"ok":true`) {
		t.Errorf("%d %s, asked %d times", w.Code, w.Body, asked)
	}
}

func TestHealthIsKeptOnTheNode(t *testing.T) {
	for address, ok := range map[string]bool{"127.0.0.1:10270": true, "[::1]:10270": true, "0.0.0.0:1": false, ":1": false, "localhost:1": false, "10.30.0.21:1": false} {
		if err := checkServe(address, false); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
	if err := errors.Join(checkServe("0.0.0.0:1", true), checkServe("10.30.0.21:1", true)); err != nil {
		t.Error(err)
	}
}

// Each attempt that ends is counted on the machine that joins.
func TestAttemptsAreCounted(t *testing.T) {
	m := join.Machine{Root: t.TempDir(), Now: func() time.Time { return time.Unix(7, 0) }}
	ended := engine(m).Ended
	if err := errors.Join(ended(join.Outcome{Symptom: symptom.SwapEnabled, Elapsed: time.Second}), ended(join.Outcome{Joined: true, Elapsed: 2 * time.Second})); err != nil {
		t.Fatal(err)
	}
	text, err := m.Read(metrics.Dir + "/k8slab_join.prom")
	for _, want := range []string{`{result="failed",cause="swap-enabled"} 1`, `{result="joined",cause=""} 1`, `k8slab_join_duration_seconds{result="joined"} 2`, `timestamp_seconds{result="joined"} 7`} {
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s%v", want, text, err)
		}
	}
}

// The engine of the command knows the catalogue.
func TestEngineKnowsTheCauses(t *testing.T) {
	e := engine(join.Local())
	if id, ok := e.Certain("Failed to add etcd member: etcdserver: too many learner members in cluster"); !ok || id != symptom.EtcdTooManyLearners {
		t.Errorf("%q, %t", id, ok)
	}
	for _, healthy := range []string{
		"[etcd] Announced new etcd member joining to the existing etcd cluster", "[etcd] Member 8e9e05c52164694d is not started yet. Waiting for it to be started.",
		"[kubelet-check] Waiting for a healthy kubelet at http://127.0.0.1:10248/healthz. This can take up to 4m0s", "[kubelet-start] Waiting for the kubelet to perform the TLS Bootstrap",
		"[etcd] Promoting the learner 8e9e05c52164694d failed: etcdserver: can only promote a learner member which is in sync with leader",
	} {
		if id, ok := e.Certain(healthy); ok {
			t.Errorf("%q is taken for %s", healthy, id)
		}
	}
	got := e.Causes("[preflight] Running pre-flight checks\nerror: error execution phase kubelet-start: a Node with name \"w1\" and status \"Ready\" already exists in the cluster. " +
		"You must delete the existing Node or change the name of this new joining Node\n")
	if len(got) == 0 || got[0] != symptom.NodeNameExists || e.Hint(got[0]) == "" || meaning(got[0]) == "" {
		t.Errorf("%q", got)
	}
}
