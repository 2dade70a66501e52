package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8slab/lab/golden"
	"k8slab/lab/join"
	"k8slab/lab/symptom"
)

func runNode(t *testing.T, ctx context.Context, stdin string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	a := &app{stdin: strings.NewReader(stdin), stdout: &out, stderr: &errs}
	status = a.run(ctx, args)
	return status, out.String(), errs.String()
}

func TestUsage(t *testing.T) {
	tests := []struct {
		name  string
		args  []string
		stdin string
		want  string
	}{
		{"unknown command", []string{"preflght"}, "", "unknown command"},
		{"unknown flag", []string{"preflight", "--fxi"}, "", "--fxi"},
		{"argument", []string{"preflight", "x"}, "", "x"},
		{"output", []string{"preflight", "-o", "yaml"}, "", "use text or json"},
		{"endpoint", []string{"preflight", "--endpoint", "10.0.0.1"}, "", "HOST:PORT"},
		{"all flags at once", []string{"preflight", "--endpoint", "x", "--peer", "y"}, "", "peer \"y\""},
		{"configuration", []string{"preflight", "--config", "-"}, "kind: Pod\n", "no JoinConfiguration"},
		{"no such file", []string{"preflight", "--config", "/nonexistent/x"}, "", "no such file"},
		{"long configuration", []string{"preflight", "--config", "-"}, strings.Repeat("#", configLimit+1), "more than"},
		{"two sources", []string{"preflight", "--config", "-", "--command-file", "-"}, "", "one of --config and --command-file"},
		{"no join command", []string{"preflight", "--command-file", "-"}, "kubeadm init\n", "kubeadm join"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, stdout, stderr := runNode(t, t.Context(), tt.stdin, tt.args...)
			if status != exitUsage || !strings.Contains(stderr, tt.want) || stdout != "" {
				t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
			}
		})
	}
	if status, stdout, _ := runNode(t, t.Context(), "", "--help"); status != 0 || !strings.Contains(stdout, "preflight") {
		t.Errorf("help: %d %q", status, stdout)
	}
}

func sampleChecks() []join.Check {
	return []join.Check{
		{ID: "kube-binaries", Result: join.Blocked, Symptom: symptom.KubeBinariesMissing, Evidence: "kubeadm: not in /usr/bin", Hint: "install it"},
		{ID: "swap", Result: join.Fixable, Symptom: symptom.SwapEnabled, Evidence: "on:\n/dev/vda5", Hint: "swapoff -a"},
		{ID: "cni-config", Result: join.Warn, Symptom: symptom.CNINotInitialized, Evidence: "no configuration yet", Hint: "nothing"},
		{ID: "sysctls", Result: join.OK, Evidence: "forwarding is on", Fixed: "set net.ipv4.ip_forward to 1", Elapsed: time.Second},
		{ID: "memory", Result: join.OK, Evidence: "3935 MB"},
	}
}

func TestWriteChecks(t *testing.T) {
	for name, cut := range map[string]int{"blocked": 0, "fixable": 1, "ready": 2} {
		for _, all := range []bool{false, true} {
			var out bytes.Buffer
			if err := writeChecks(&out, sampleChecks()[cut:], all); err != nil {
				t.Fatal(err)
			}
			file := "preflight-" + name + ".txt"
			if all {
				file = "preflight-" + name + "-verbose.txt"
			}
			golden.Check(t, file, out.String())
		}
	}
}

func TestWriteJSON(t *testing.T) {
	var out bytes.Buffer
	if err := writeJSON(&out, sampleChecks()); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Verdict join.Result
		Checks  []join.Check
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.Verdict != join.Blocked || len(got.Checks) != 5 || got.Checks[1].Symptom != symptom.SwapEnabled {
		t.Errorf("%+v, %v", got, err)
	}
}

// emptyMachine is a machine on which nothing is installed and no program runs.
func emptyMachine(t *testing.T) join.Machine {
	t.Helper()
	m := join.Local()
	m.Root = t.TempDir()
	m.Run = func(context.Context, ...string) (string, error) { return "", os.ErrNotExist }
	m.Environ = func() []string { return nil }
	return m
}

func TestPreflightCommand(t *testing.T) {
	var out, errs bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &errs}
	o := &preflightOptions{output: "text", machine: emptyMachine(t)}
	never := func(string) bool { return false }
	err := a.preflight(t.Context(), o, never)
	if a.exitCode(t.Context(), err) != exitFailed {
		t.Errorf("error %v", err)
	}
	for _, want := range []string{"kube-binaries-missing", "next: ", "\nblocked: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("stdout lacks %q:\n%s", want, out.String())
		}
	}
	if !strings.Contains(errs.String(), "kube-binaries: kube-binaries-missing: ") { // said before the end
		t.Errorf("stderr %q", errs.String())
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	out.Reset()
	if err := a.preflight(ctx, o, never); a.exitCode(ctx, err) != exitInterrupted || out.Len() > 0 {
		t.Errorf("interrupted: %v, %q", err, out.String())
	}
}

func TestTarget(t *testing.T) {
	config := `apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery: {bootstrapToken: {apiServerEndpoint: "10.0.0.1:6443", token: abcdef.0123456789abcdef}}
nodeRegistration: {name: w1}
`
	file := filepath.Join(t.TempDir(), "join.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, source := range map[string]string{"file": file, "stdin": "-"} {
		a := &app{stdin: strings.NewReader(config)}
		o := &preflightOptions{config: source, target: join.Target{Endpoint: "10.0.0.2:6443", Name: "other", Peers: []string{"10.0.0.3"}}}
		got, err := a.target(o, func(flag string) bool { return flag == "endpoint" })
		if err != nil || got.Endpoint != "10.0.0.2:6443" || got.Name != "w1" || got.Peers[0] != "10.0.0.3" || got.Token == "" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestTargetOfCommand(t *testing.T) {
	a := &app{stdin: strings.NewReader("kubeadm join 10.0.0.1:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:" +
		strings.Repeat("ab", 32) + " --ignore-preflight-errors=SystemVerification,Mem,NumCPU\n")}
	got, err := a.target(&preflightOptions{commandFile: "-"}, func(string) bool { return false })
	if err != nil || got.Endpoint != "10.0.0.1:6443" || got.Token == "" || strings.Join(got.Ignore, " ") != "SystemVerification Mem NumCPU" {
		t.Errorf("%+v, %v", got, err)
	}
}

// A mistake in a configuration must not show what is secret in it.
func TestSecretsStaySecret(t *testing.T) {
	config := "apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\ndiscovery:\n  bootstrapToken: {token: abcdef.0123456789abcdef\n"
	_, stdout, stderr := runNode(t, t.Context(), config, "preflight", "--config", "-")
	if strings.Contains(stdout+stderr, "0123456789abcdef") {
		t.Errorf("%q %q", stdout, stderr)
	}
}
