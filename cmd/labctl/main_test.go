package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/bringup"
	"k8slab/lab/golden"
	"k8slab/lab/health"
	"k8slab/lab/host"
	"k8slab/lab/state"
)

const (
	three  = "../../config/testdata/three.yaml"
	small  = "../../config/testdata/small.yaml"
	later  = "../../config/testdata/onboard.yaml"
	broken = "../../config/testdata/broken.yaml"
)

// alone gives the test a home of its own.
func alone(t *testing.T) {
	t.Helper()
	for _, name := range []string{"HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(name, t.TempDir())
	}
}

func labctl(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	status = run(args, nil, &out, &err)
	return status, out.String(), err.String()
}

func TestUsage(t *testing.T) {
	alone(t)
	t.Chdir(t.TempDir())
	tests := []struct {
		name string
		args []string
		want string // in the message
	}{
		{"unknown flag", []string{"plan", "--no-such-flag"}, "no-such-flag"},
		{"unknown flag of labctl", []string{"--no-such-flag"}, "no-such-flag"},
		{"unknown output", []string{"plan", "-o", "yaml"}, `"yaml"`},
		{"unknown output below", []string{"image", "list", "-o", "wide"}, `"wide"`},
		{"unknown command", []string{"explode"}, "explode"},
		{"unknown command below", []string{"image", "explode"}, "explode"},
		{"too many arguments", []string{"plan", "x"}, "plan takes no arguments, got \"x\": labctl plan\n"},
		{"too many nodes", []string{"join", "w1", "w2"}, "join takes 1 argument, got also \"w2\": labctl join NODE\n"},
		{"a node for repair", []string{"repair", "w1"}, "repair takes no arguments, got \"w1\": labctl repair\n"},
		{"too few", []string{"logs"}, "logs needs NODE: labctl logs NODE\n"},
		{"no node", []string{"join"}, "join needs NODE: labctl join NODE\n"},
		{"no node for a command", []string{"ssh"}, "ssh needs NODE: labctl ssh NODE [COMMAND...]\n"},
		{"nothing for kubectl", []string{"kubectl"}, "kubectl needs ARGS: labctl kubectl ARGS...\n"},
		{"nothing to run", []string{"host", "exec"}, "host exec needs COMMAND: labctl host exec COMMAND...\n"},
		{"nothing to copy", []string{"cp"}, "cp needs SRC and DST: labctl cp SRC DST\n"},
		{"copy to nowhere", []string{"cp", "w1:/x"}, "cp needs DST: labctl cp SRC DST\n"},
		{"copy without a node", []string{"cp", "a", "b"}, "write SRC or DST as NODE:PATH"},
		{"copy between nodes", []string{"cp", "w1:/a", "w2:/a"}, "copy to this computer first"},
		{"no fault", []string{"fault", "run"}, "fault run needs NAME[@NODE]: labctl fault run NAME[@NODE]...\n"},
		{"flags after the node", []string{"ssh", "w1", "-v"}, "flags of labctl go before NODE"},
		{"unknown step", []string{"up", "--until", "explode"}, "image, network"},
		{"mistyped step", []string{"up", "--until", "machine"}, `no step "machine"; did you mean "machines"? Steps are image, `},
		{"mistyped command", []string{"statsu"}, "unknown command \"statsu\"; did you mean \"status\"?\n"},
		{"mistyped command below", []string{"fault", "lst"}, "unknown command \"lst\" of labctl fault; did you mean \"list\"?\n"},
		{"mistyped command of a command that runs", []string{"addons", "instal"}, "did you mean \"install\"?\n"},
		{"mistyped fault", []string{"fault", "run", "missing-cnl"}, "no fault \"missing-cnl\"; did you mean \"missing-cni\"?"},
		{"mistyped fault to inject", []string{"fault", "inject", "kubelet-stoped"}, "did you mean \"kubelet-stopped\"?"},
		{"mistyped add-on", []string{"addons", "install", "fluxx"}, "no add-on \"fluxx\"; did you mean \"flux\"?"},
		{"mistyped area", []string{"validate", "networ"}, "validate knows no \"networ\"; did you mean \"network\"?"},
		{"lines that are negative", []string{"logs", "w1", "-n", "-1"}, "must not be negative"},
		{"unknown command of etcd", []string{"etcd", "explode"}, "unknown command \"explode\" of labctl etcd; see `labctl etcd --help`\n"},
		{"no file", []string{"etcd", "snapshot", "save"}, "etcd snapshot save needs FILE: labctl etcd snapshot save FILE\n"},
		{"restore out of nothing", []string{"etcd", "snapshot", "restore", "--node", "cp1"}, "FILE or --own-data"},
		{"restore out of two", []string{"etcd", "snapshot", "restore", "a.db", "--own-data", "--node", "cp1"}, "FILE or --own-data"},
		{"restore on no node", []string{"etcd", "snapshot", "restore", "a.db"}, "--node is required"},
		{"restore out of nothing on no node", []string{"etcd", "snapshot", "restore"}, "--node is required: the control plane that gets the new cluster\n  give either a snapshot's FILE"},
		{"no rounds", []string{"soak", "--rounds", "0"}, "--rounds"},
		{"no time for damage", []string{"soak", "--damage", "--within", "-1h"}, "--within at least 0"},
		{"a time without damage", []string{"soak", "--within", "1h"}, "--within is for --damage"},
		{"unknown fault", []string{"fault", "run", "missing-cni+explode"}, `"explode"`},
		{"no duration", []string{"image", "prune", "--unused-for", "long"}, "long"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, stdout, stderr := labctl(t, tt.args...)
			if status != exitUsage || stdout != "" || !strings.Contains(stderr, tt.want) || !strings.HasPrefix(stderr, "labctl: ") {
				t.Errorf("status %d, stdout %q, stderr %q, want %d and %q", status, stdout, stderr, exitUsage, tt.want)
			}
		})
	}
}

func TestBrokenConfiguration(t *testing.T) {
	alone(t)
	for _, args := range [][]string{{"plan"}, {"status"}, {"plan", "-o", "json"}, {"kubeconfig"}, {"ssh", "cp1"}, {"image", "build"}, {"up"}, {"up", "--keep=false"}, {"down"}, {"etcd", "members"}, {"etcd", "snapshot", "restore", "x.db", "--node", "cp1"}, {"join-command"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			status, stdout, stderr := labctl(t, append([]string{"-c", broken}, args...)...)
			lines := strings.Count(stderr, broken+":")
			if status != exitUsage || stdout != "" || lines != 10 {
				t.Errorf("status %d, %d problems, stdout %q, stderr:\n%s", status, lines, stdout, stderr)
			}
		})
	}
}

func TestMissingConfiguration(t *testing.T) {
	alone(t)
	t.Chdir(t.TempDir())
	status, _, stderr := labctl(t, "plan")
	if status == 0 || !strings.Contains(stderr, "cluster.yaml") {
		t.Errorf("status %d, stderr %q", status, stderr)
	}
}

func TestPlan(t *testing.T) {
	alone(t)
	for name, file := range map[string]string{"plan-three.txt": three, "plan-small.txt": small, "plan-onboard.txt": later} {
		status, stdout, stderr := labctl(t, "plan", "-c", file)
		// A computer that is too small for the lab says so below the plan.
		if tooSmall := status == exitFailed && strings.Contains(stderr, "this computer"); !tooSmall && (status != 0 || stderr != "") {
			t.Errorf("%s: status %d, stderr %q", file, status, stderr)
		}
		golden.Check(t, name, stdout)
	}
	status, stdout, _ := labctl(t, "plan", "-c", three, "-o", "json")
	var plan struct{ Steps []bringup.Step }
	if err := json.Unmarshal([]byte(stdout), &plan); err != nil || status != 0 {
		t.Fatalf("status %d, %v", status, err)
	}
	c, _, err := config.Load(three)
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(bringup.NewPlan(state.Lab{Cluster: c, After: c}))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(plan.Steps); string(got) != string(want) || err != nil {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

func TestStatusNotUp(t *testing.T) {
	alone(t)
	status, stdout, stderr := labctl(t, "status", "-c", small, "-o", "json")
	var got health.Status
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	if status != exitFailed || stderr != "" || !strings.Contains(stdout, `"healthy": false`) || got.Name != "small" || len(got.Nodes) != 2 {
		t.Errorf("status %d, stderr %q, stdout %s", status, stderr, stdout)
	}
	if status, stdout, stderr = labctl(t, "status", "-c", later); status != exitFailed || stderr != "" {
		t.Errorf("status %d, stderr %q", status, stderr)
	}
	golden.Check(t, "status-not-up.txt", stdout)
	left, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_STATE_HOME"), "*"))
	if len(left) > 0 {
		t.Errorf("looking left %q", left)
	}
}

func TestNotUp(t *testing.T) {
	alone(t)
	for _, args := range [][]string{
		{"ssh", "cp1", "--", "true"}, {"ssh", "cp1", "ls", "-l"}, {"logs", "cp1"}, {"kubectl", "--", "get", "nodes"}, {"kubectl", "get", "pods", "-A"},
		{"kubeconfig"}, {"kubeconfig", "--path"}, {"host", "exec", "--", "true"}, {"host", "exec", "virsh", "-c", "lxc:///system"}, {"cp", "x", "cp1:"},
		{"etcd", "members"}, {"etcd", "clean-learners"}, {"etcd", "clean-learners", "--dry-run", "-o", "json"}, {"etcd", "snapshot", "save", "x.db"},
		{"etcd", "snapshot", "restore", "--own-data", "--node", "cp1"}, {"join-command"}, {"join-command", "--control-plane", "-o", "json"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			status, stdout, stderr := labctl(t, append([]string{"-c", small}, args...)...)
			if status != exitFailed || stdout != "" || !strings.Contains(stderr, "run `labctl up`") {
				t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
			}
		})
	}
}

func TestKubeconfig(t *testing.T) {
	alone(t)
	path := filepath.Join(os.Getenv("XDG_STATE_HOME"), "k8slab", "small", "kubeconfig")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("apiVersion: v1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, stdout, stderr := labctl(t, "kubeconfig", "-c", small); status != 0 || stdout != "apiVersion: v1\n" || stderr != "" {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	if status, stdout, _ := labctl(t, "kubeconfig", "-c", small, "--path"); status != 0 || stdout != path+"\n" {
		t.Errorf("status %d, stdout %q", status, stdout)
	}
}

// What --merge puts into a person's kubeconfig, down removes.
func TestKubeconfigIsMerged(t *testing.T) {
	alone(t)
	t.Setenv("KUBECONFIG", "")
	dir, file := filepath.Join(os.Getenv("XDG_STATE_HOME"), "k8slab", "small"), filepath.Join(os.Getenv("HOME"), ".kube", "config")
	const own = `{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: c, cluster: {server: "https://10.30.0.10:6443"}}],
 contexts: [{name: a, context: {cluster: c, user: u}}], users: [{name: u, user: {token: secret}}]}`
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "kubeconfig"), []byte(own), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"--context x", "--use", "--merge --path"} {
		if status, _, stderr := labctl(t, append([]string{"kubeconfig", "-c", small}, strings.Fields(wrong)...)...); status != exitUsage {
			t.Errorf("%s: status %d, %s", wrong, status, stderr)
		}
	}
	if status, stdout, stderr := labctl(t, "kubeconfig", "-c", small, "--merge"); status != 0 || stdout != "context k8slab-small is in "+file+"\n" || stderr != "" {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	if _, stdout, _ := labctl(t, "kubeconfig", "-c", small, "--merge", "--context", "other", "-o", "json"); !strings.Contains(stdout, `"context": "other"`) {
		t.Errorf("as JSON %s", stdout)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "current-context: other") || strings.Contains(string(text), "k8slab-small") {
		t.Errorf("%v\n%s", err, text)
	}
	if status, _, stderr := labctl(t, "down", "-c", small); status != 0 {
		t.Errorf("down: status %d, %s", status, stderr)
	}
	if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "other") || strings.Contains(string(text), "secret") {
		t.Errorf("after down: %v\n%s", err, text)
	}
}

func TestVersion(t *testing.T) {
	defer func(v, c, d string) { version, commit, date = v, c, d }(version, commit, date)
	for _, tt := range []struct{ version, commit, date, text string }{
		{"v1.2", "abcdef0", "2026-11-24T22:43:00+00:00", "labctl v1.2, commit abcdef0 of 2026-11-24T22:43:00+00:00\n"},
		{"", "", "", "labctl devel, commit unknown of unknown\n"}, // a test's binary has no notes of a commit
	} {
		version, commit, date = tt.version, tt.commit, tt.date
		for _, args := range [][]string{{"version"}, {"--version"}} {
			if status, stdout, stderr := labctl(t, args...); status != 0 || stdout != tt.text || stderr != "" {
				t.Errorf("%s: status %d, stdout %q, stderr %q", args, status, stdout, stderr)
			}
			var got build
			status, stdout, _ := labctl(t, append(args, "-o", "json")...)
			if err := json.Unmarshal([]byte(stdout), &got); status != 0 || err != nil || got != thisBuild() {
				t.Errorf("%s: status %d, %v, stdout %q", args, status, err, stdout)
			}
		}
	}
}

func TestDoctor(t *testing.T) {
	alone(t)
	_, stdout, _ := labctl(t, "doctor", "-c", small, "-o", "json") // whether one fails is the computer's
	var got []host.Check
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || len(got) < 10 {
		t.Errorf("%v: %s", err, stdout)
	}
	if _, stdout, _ := labctl(t, "doctor", "-c", small); !strings.Contains(stdout, "kernel-modules") {
		t.Errorf("stdout %q", stdout)
	}
}

func TestImageListAndPrune(t *testing.T) {
	alone(t)
	for _, args := range [][]string{{"image", "list"}, {"image", "prune"}} {
		if status, stdout, stderr := labctl(t, args...); status != 0 || stdout != "" || stderr != "" {
			t.Errorf("%q: status %d, stdout %q, stderr %q", args, status, stdout, stderr)
		}
		status, stdout, _ := labctl(t, append(args, "-o", "json")...)
		var got []any
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || status != 0 || got == nil {
			t.Errorf("%q: status %d, %v, %q is no list", args, status, err, stdout)
		}
	}
}

func TestCompletion(t *testing.T) {
	alone(t)
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"nodes", []string{"-c", small, "ssh", ""}, "cp1\nw1\n"},
		{"nodes for logs", []string{"-c", small, "logs", ""}, "cp1\nw1\n"},
		{"control planes", []string{"-c", small, "etcd", "snapshot", "restore", "--node", ""}, "cp1\n"},
		{"steps", []string{"up", "--until", ""}, "image\nnetwork\nmachines\ninit\nnetwork-plugin\njoin\nreconfigure\nresize\naddons\nproof\n"},
		{"output", []string{"plan", "-o", ""}, "text\njson\n"},
		{"units", []string{"logs", "cp1", "--unit", ""}, strings.Join(knownUnits, "\n") + "\n"},
		{"files to copy", []string{"-c", small, "cp", "./"}, ""},
		{"kubectl without a lab", []string{"-c", small, "kubectl", "get", ""}, ""},
		{"a broken configuration", []string{"-c", broken, "ssh", ""}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, stdout, _ := labctl(t, append([]string{"__complete"}, tt.args...)...)
			if got, _, ok := strings.Cut(stdout, ":"); status != 0 || !ok || got != tt.want {
				t.Errorf("status %d, got %q, want %q", status, got, tt.want)
			}
		})
	}
	for word, want := range map[string]string{"": "cp1:\nw1:\n:2\n", "w": "w1:\n:2\n"} { // 2: no space after it
		if status, stdout, _ := labctl(t, "__complete", "-c", small, "cp", "/x", word); status != 0 || stdout != want {
			t.Errorf("places: status %d, got %q, want %q", status, stdout, want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if status, stdout, _ := labctl(t, "completion", shell); status != 0 || !strings.Contains(stdout, "labctl") {
			t.Errorf("%s: status %d", shell, status)
		}
	}
}
