package image

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fakeKubernetes has programs that are scripts. What is no node's own is in a layer of a container image.
func fakeKubernetes(t *testing.T, programs map[string]string) Image {
	t.Helper()
	i := Image{Dir: t.TempDir()}
	for name, script := range programs {
		dir := "usr/share/k8slab/containerd/layers/7/usr/local/bin"
		if slices.Contains(hostPrograms, name) {
			dir = "usr/bin"
		}
		write(t, filepath.Join(i.Root(), dir, name), []byte("#!/bin/sh\n"+script), 0o755)
	}
	return i
}

// The outputs are those of kubeadm, kube-apiserver, kube-scheduler and kubelet 1.36, and of a kubeadm that only warns.
func TestCheck(t *testing.T) {
	const group = `error unmarshaling configuration schema.GroupVersionKind{Group:"kubeadm.k8s.io", Version:"v1beta4", Kind:"ClusterConfiguration"}: `
	const strict = group + `strict decoding error: unknown field "apiServer.extraArrgs", unknown field "bogus"`
	const fields = `unknown field "apiServer.extraArrgs", unknown field "bogus"`
	tests := []struct{ name, script, want string }{
		{"accepted", "echo ok", ""},
		{"a warning that is none of ours", `echo 'I1127 feature_gate.go:362] "Warning: setting GA feature gate." featureGate="X"' >&2; echo Kubernetes v1.36.3`, ""},
		{"unknown fields", "echo 'error: " + strict + "' >&2; echo 'To see the stack trace of this error execute with --v=5 or higher' >&2; exit 1", fields},
		{"unknown fields, with a warning only", "echo 'W1127 initconfiguration.go:332] " + strict + "' >&2; echo ok", fields},
		{"a wrong type", "echo 'error: " + group + "json: cannot unmarshal string into Go struct field KubeletConfiguration.maxPods of type int32' >&2; exit 1",
			"json: cannot unmarshal string into Go struct field KubeletConfiguration.maxPods of type int32"},
		{"an unknown gate", `echo 'E1127 run.go:72] "command failed" err="unrecognized feature gate: Bogus"' >&2; exit 1`, "unrecognized feature gate: Bogus"},
		{"an unknown flag, with help", "echo 'Error: unknown flag: --bogus'; seq 4000; exit 1", "unknown flag: --bogus"},
		{"a wrong value", `echo 'E1 run.go] "command failed" err="invalid argument \"x\" for \"--max-pods\" flag"' >&2; exit 1`, `invalid argument "x" for "--max-pods" flag`},
	}
	for _, tt := range tests {
		i := fakeKubernetes(t, map[string]string{"kubeadm": tt.script, "kube-apiserver": tt.script})
		for what, err := range map[string]error{
			"documents": i.CheckDocuments(t.Context(), "x"), "arguments": i.CheckArguments(t.Context(), "kube-apiserver", "--x"),
		} {
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("%s: %s: %q, want %q", tt.name, what, got, tt.want)
			}
		}
	}
}

// The programs get what is to be checked, also as nobody.
func TestCheckIsOfWhatIsGiven(t *testing.T) {
	i := fakeKubernetes(t, map[string]string{"kubeadm": `echo "error: $* $(cat /dev/stdin)"; exit 1`, "kubelet": `echo "error: $*"; exit 1`})
	if err := i.CheckDocuments(t.Context(), "kind: Y"); err == nil || err.Error() != "config validate --config /dev/stdin kind: Y" {
		t.Error(err)
	}
	if err := i.CheckArguments(t.Context(), "kubelet", "--a=b", "--c=d"); err == nil || err.Error() != "--a=b --c=d --version" {
		t.Error(err)
	}
	if err := i.CheckArguments(t.Context(), "kube-proxy"); err != nil {
		t.Errorf("a program that is not there: %v", err)
	}
	i.Dir = filepath.Join(t.TempDir(), "gone")
	if err := i.CheckDocuments(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "usr/bin/kubeadm") {
		t.Errorf("without a kubeadm: %v", err)
	}
}
