package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/golden"
	"k8slab/lab/host"
	"k8slab/lab/labtest"
	"k8slab/lab/session"
)

// sessionWithOptions is a session of the lab with every option, edited.
func sessionWithOptions(t *testing.T, edits ...string) *session.Session {
	t.Helper()
	text, err := os.ReadFile("../../config/testdata/" + labtest.WithOptions)
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := config.Parse("f", []byte(strings.NewReplacer(edits...).Replace(string(text))))
	if err != nil {
		t.Fatal(err)
	}
	s := labtest.Session(t, labtest.Three)
	s.Cluster, s.URI = c, host.Containers
	return s
}

// Each document has the lab's own and what cluster.yaml adds to it.
func TestDocumentsWithOptions(t *testing.T) {
	s := sessionWithOptions(t)
	for file, documents := range map[string][]any{
		"options-init.yaml":               initDocuments(s, labtest.Node(t, s.Lab, "cp1"), testToken, testKey),
		"options-join-control-plane.yaml": joinDocuments(s, labtest.Node(t, s.Lab, "cp2"), testToken, testHash, testKey),
		"options-join-worker.yaml":        joinDocuments(s, labtest.Node(t, s.Lab, "w1"), testToken, testHash, ""),
	} {
		text, err := marshal(documents)
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, file, text)
	}
}

// What kubeadm makes on a control plane for a worker gets the worker's settings; on a control plane kubeadm patches its own.
func TestOwnKubelet(t *testing.T) {
	s := sessionWithOptions(t)
	const made = "evictionHard:\n  nodefs.available: 1%\nkind: KubeletConfiguration\nmaxPods: 64\n"
	for name, want := range map[string]string{
		"cp1": made, "w1": "evictionHard:\n  memory.available: 50Mi\n  nodefs.available: 1%\nkind: KubeletConfiguration\nmaxPods: 32\n",
	} {
		if got, err := OwnKubelet(s, labtest.Node(t, s.Lab, name), made); err != nil || got != want {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}

// reader notes what it is given, and complains of what has the word "bogus".
type reader struct{ given []string }

func (r *reader) CheckDocuments(_ context.Context, documents string) error { return r.read(documents) }

func (r *reader) CheckArguments(_ context.Context, program string, arguments ...string) error {
	return r.read(program + " " + strings.Join(arguments, " "))
}

func (r *reader) read(text string) error {
	r.given = append(r.given, text)
	if strings.Contains(text, "bogus") {
		return errors.New("unknown bogus")
	}
	return nil
}

func TestCheckOptions(t *testing.T) {
	r := &reader{}
	if err := CheckOptions(t.Context(), sessionWithOptions(t), r); err != nil {
		t.Error(err)
	}
	var short []string
	for _, text := range r.given {
		kinds := strings.Count(text, "\nkind: ")
		first, _, _ := strings.Cut(text, "\n")
		short = append(short, fmt.Sprint(kinds, " ", first))
	}
	want := []string{
		"1 ---", "1 ---", "2 ---", "2 ---", "1 ---", "2 ---", "2 ---",
		"0 kube-apiserver --feature-gates=InPlacePodVerticalScaling=true,ReduceDefaultCrashLoopBackOffDecay=true",
		"0 kube-apiserver --v=4", "0 kube-scheduler --leader-elect-retry-period=3s", "0 kubelet --v=5",
	}
	if !slices.Equal(short, want) {
		t.Errorf("%q", short)
	}
	err := CheckOptions(t.Context(), sessionWithOptions(t, "certSANs", "bogus", "maxPods", "bogus", "rue}\n  kubeadm", "rue, bogus: true}\n  kubeadm"), &reader{})
	for _, line := range []string{
		"\n  kubernetes.kubeadm.cluster: unknown bogus\n", "\n  kubernetes.kubeadm.kubelet: ", "\n  resources.worker.kubelet: ",
		"\n  kubernetes.feature_gates: unknown bogus\n", "\nnext: correct it",
	} {
		if err == nil || !strings.Contains(err.Error(), line) {
			t.Errorf("%v, want %q", err, line)
		}
	}
}
