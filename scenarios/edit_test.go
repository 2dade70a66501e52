package scenarios

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// samples are files of a node as kubeadm and the image make them, as far as edits look at them, and what each edit must make of them.
var samples = []struct {
	name  string
	edit  edit
	whole string
	has   string // "" when the file is gone
}{
	{"a flag of kubelet's", removedFlag, `KUBELET_KUBEADM_ARGS="--node-ip=10.30.0.21"` + "\n", `ARGS="--network-plugin=cni --node-ip=10.30.0.21"`},
	{"kubelet's runtime", dockershimFlag, `KUBELET_KUBEADM_ARGS=""` + "\n", `ARGS="--container-runtime-endpoint=unix:///var/run/dockershim.sock "`},
	{"a feature gate", removedGate, "kind: KubeletConfiguration\n", "kind: KubeletConfiguration\nfeatureGates: {"},
	{"a manifest that goes", etcdGone, "kind: Pod\n", ""},
	{"a flag of a static pod", insecurePort, "  - command:\n    - kube-apiserver\n    - --bind-address=::\n",
		"    - kube-apiserver\n    - --insecure-port=8080\n    - --bind-address=::\n"},
	{"etcd's quota", smallQuota, "  - command:\n    - etcd\n    - --name=cp1\n", "    - etcd\n    - --quota-backend-bytes=1048576\n    - --name=cp1\n"},
	{"a memory limit", lowLimit, "    resources:\n      requests:\n        cpu: 200m\n", "    resources:\n      limits: {memory: 14Mi}\n      requests:\n        cpu: 200m\n"},
	{"no pod networks", noNodeCIDRs, "    - --allocate-node-cidrs=true\n", "    - --allocate-node-cidrs=false\n"},
	{"no approver", noApprover, "    - --controllers=*,bootstrapsigner\n", "    - --controllers=*,bootstrapsigner,-certificatesigningrequest-approving-controller\n"},
	{"the pause image", otherPause, "[plugins]\n  sandbox = 'registry.k8s.io/pause:3.10.1'\n", "  sandbox = 'registry.k8s.io/pause:3.1'\n"},
	{"containerd's configuration", containerdSlip, "version = 3\n", "version = 3\n[plugins\n"},
	{"runc", emptyRunc, "ELF", "nothing"},
	{"the CNI configuration", cutConfig, strings.Repeat("{}", 40), strings.Repeat("{}", 30)},
	{"the administrator's certificate", adminConf, "    client-certificate-data: AAAA\n    client-key-data: BBBB\n", "certificate-data: dmFsdWUK\n    client-key-data: BBBB\n"},
	{"the machine-id", machineID, "0123\n", "value\n"},
}

// computer is a driver that runs scripts on this computer: keptFiles and the file of an edit are in a directory of the test.
type computer struct{ dir string }

func (c computer) Labctl(context.Context, ...string) (string, error) { return "", nil }

func (c computer) Run(ctx context.Context, _ string, argv ...string) (string, error) {
	for i, a := range argv {
		argv[i] = strings.ReplaceAll(a, keptFiles, filepath.Join(c.dir, "kept"))
	}
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return string(out), err
}

// sampled is the edit of a file of the test, which notices nothing.
func sampled(t *testing.T, e edit, whole string) (edit, Target) {
	t.Helper()
	dir := t.TempDir()
	e.path, e.then = filepath.Join(dir, "manifests", filepath.Base(e.path)), ""
	if err := os.Mkdir(filepath.Dir(e.path), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, e.path, whole)
	return e, Target{Driver: computer{dir}, Node: "n"}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

// content is what the file has, and its mode; "" for none.
func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return ""
	}
	info, statErr := os.Stat(path)
	if err != nil || statErr != nil {
		t.Fatal(err, statErr)
	}
	if len(data) == 0 {
		return "nothing " + info.Mode().String()
	}
	return string(data) + info.Mode().String()
}

func TestEditsBreakAndMend(t *testing.T) {
	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			e, target := sampled(t, s.edit, s.whole)
			before := content(t, e.path)
			if err := e.on(t.Context(), target, "n", "value"); err != nil {
				t.Fatal(err)
			}
			if broken := content(t, e.path); !strings.Contains(broken, s.has) || (broken == "") != (s.has == "") {
				t.Errorf("the file has\n%s\nwant\n%s", broken, s.has)
			}
			if err := e.make(t.Context(), target); err == nil {
				t.Error("a second fault may not break the file again")
			}
			for range 2 { // also when there is nothing to undo any more
				if err := e.undo(t.Context(), target); err != nil {
					t.Fatal(err)
				}
			}
			if after := content(t, e.path); after != before {
				t.Errorf("afterwards it has\n%s\nbefore it had\n%s", after, before)
			}
			left, err := os.ReadDir(filepath.Dir(filepath.Dir(e.path)))
			if err != nil || len(left) != 1 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// What a recovery made anew stays, and so does what an injection that was killed had not reached.
func TestUndoLeavesWhatWasRepaired(t *testing.T) {
	e, target := sampled(t, removedFlag, "A=\"\"\n")
	if err := e.make(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	write(t, e.path, "A=\"--new\"\n")
	write(t, e.path+".k8slab-saved", "what the repair replaced")
	if err := e.undo(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if has := content(t, e.path) + content(t, e.path+".k8slab-saved"); !strings.HasPrefix(has, "A=\"--new\"\n-rw") {
		t.Errorf("it has %q", has)
	}

	e, target = sampled(t, removedFlag, "A=\"\"\n")
	e.how = `echo half >"$1"; kill -KILL $$`
	if err := e.make(t.Context(), target); err == nil {
		t.Fatal("it was not killed")
	}
	if err := e.undo(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if has := content(t, e.path); !strings.HasPrefix(has, "A=\"\"\n-rw") {
		t.Errorf("it has %q", has)
	}
}

func TestEditThatChangesNothing(t *testing.T) {
	e, target := sampled(t, insecurePort, "no program\n")
	if err := e.make(t.Context(), target); err == nil || !strings.Contains(err.Error(), "does not change") {
		t.Errorf("%v", err)
	}
}

// Each script that a fault runs on a node is one that sh can read.
func TestScriptsParse(t *testing.T) {
	scripts := map[string]bool{}
	for _, f := range All() {
		driver := &scriptReader{scripts: scripts}
		target := targetOf(f, driver)
		_ = f.Inject(t.Context(), target)
		if f.Restore != nil {
			_ = f.Restore(t.Context(), target)
		}
	}
	for text := range scripts {
		cmd := exec.CommandContext(t.Context(), "sh", "-n")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s\n%s", err, out, text)
		}
	}
	if len(scripts) < 50 {
		t.Errorf("only %d scripts", len(scripts))
	}
}

// scriptReader notes the scripts for sh.
type scriptReader struct {
	recorder
	scripts map[string]bool
}

func (r *scriptReader) Run(ctx context.Context, node string, argv ...string) (string, error) {
	if len(argv) > 2 && argv[0] == "sh" {
		r.mu.Lock()
		r.scripts[argv[2]] = true
		r.mu.Unlock()
	}
	return r.recorder.Run(ctx, node, argv...)
}
