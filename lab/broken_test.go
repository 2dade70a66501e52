package lab

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8slab/lab/health"
	"k8slab/lab/join"
	"k8slab/lab/labtest"
	"k8slab/lab/machine"
	"k8slab/lab/symptom"
)

const (
	flannelSet = "/apis/apps/v1/namespaces/kube-flannel/daemonsets/flannel"
	corednsSet = "/apis/apps/v1/namespaces/kube-system/deployments/coredns"
	probePods  = "/api/v1/namespaces/k8slab/pods/"
)

// conditionsBroken break each condition of the proof, and say what of it is named.
var conditionsBroken = []struct {
	name, want string
	damage     func(*world)
}{
	{"API server", "api server is not ready", func(w *world) {
		w.fails = func(call string) error {
			if call == "api: GET /readyz" {
				return os.ErrDeadlineExceeded
			}
			return nil
		}
	}},
	{"a learner", "etcd-stale-member: learner 4 at", func(w *world) { w.addMember("stranger", true) }},
	{"a member is gone", "etcd has 2 members, cluster.yaml has 3 control planes", func(w *world) {
		w.members = slices.DeleteFunc(w.members, func(m *member) bool { return m.node == "cp3" })
	}},
	{"a machine is off", "machine-not-running on w1", func(w *world) { w.box("w1").state = machine.Off }},
	{"a Node is gone", "node-name-mismatch on w2: the cluster has no Node w2", func(w *world) { delete(w.objects, "/api/v1/nodes/w2") }},
	{"no flannel", "daemonset kube-flannel/flannel does not exist", func(w *world) { delete(w.objects, flannelSet) }},
	{"no CoreDNS", "unexplained (CoreDNS): get deployment kube-system/coredns", func(w *world) { delete(w.objects, corednsSet) }},
	{"pods do not reach", "unexplained (pod network) on w1: cp1's pod cannot reach: 10.244.21.2:8080: i/o timeout", func(w *world) { w.deaf = []string{"10.244.21.2:8080: i/o timeout"} }},
	{"two pods of one address", "have the same address", func(w *world) {
		w.objects[probePods+"probe-cp1"]["status"].(object)["podIP"] = w.objects[probePods+"probe-cp2"]["status"].(object)["podIP"]
	}},
	{"a pod without an address", "w1: its probe has no address yet", func(w *world) {
		w.objects[probePods+"probe-w1"]["status"].(object)["podIP"] = ""
	}},
	{"a pod whose machine is silent", "node-unreachable on w2", func(w *world) { w.box("w2").silent = true }},
}

// Whatever a healthy lab lacks, status and the proof name it, and look only.
func TestStatusOfBrokenClusters(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.clean()
		if r, err := w.lab.Diagnose(t.Context(), health.DiagnoseOptions{Brief: true}); err != nil || !r.Healthy {
			t.Errorf("a healthy lab: %+v, %v", r.Findings, err)
		}
		st, err := w.lab.Status(t.Context())
		if err != nil || !st.Healthy || len(st.Nodes) != 5 || st.Libvirt != "lxc:///system of this computer" {
			t.Errorf("%+v, %v", st, err)
		}
		for _, n := range st.Nodes {
			if n.Machine != machine.Running || !n.Ready || (n.Etcd == "voter") != strings.HasPrefix(n.Name, "cp") || n.Started != strings.HasPrefix(n.Name, "cp") {
				t.Errorf("%+v", n)
			}
		}
	})
	for _, tt := range conditionsBroken {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) { w.wantIll(tt.damage, tt.want) })
		})
	}
}

// wantIll wants status and the proof to name the damage, and to look only.
func (w *world) wantIll(damage func(*world), want string) {
	t := w.t
	w.up()
	w.clean()
	w.change(func() { damage(w) })
	st, err := w.lab.Status(t.Context())
	if text := strings.Join(st.Problems, "\n"); err != nil || st.Healthy || !strings.Contains(text, want) {
		t.Errorf("status: %v, %q, want %q", err, text, want)
	}
	if r, err := w.lab.Diagnose(t.Context(), health.DiagnoseOptions{Brief: true}); err != nil || r.Healthy || !slices.Equal(asked(r.Problems()), asked(st.Problems)) {
		t.Errorf("diagnosed: %q, %v, while the status has %q", r.Problems(), err, st.Problems)
	}
	if len(w.lab.Changes()) > 0 {
		t.Errorf("looking changed %q", w.lab.Changes())
	}
}

// asked leaves out which API server said that it is not ready: the first that answers does.
func asked(problems []string) []string {
	return strings.Split(regexp.MustCompile(`(crashloop) on cp\d: (api server)`).ReplaceAllString(strings.Join(problems, "\n"), "$1: $2"), "\n")
}

// A lab whose control planes are all silent has a status: what its machines are, and why nothing else is known.
func TestStatusOfSilence(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		for _, name := range []string{"cp1", "cp2", "cp3"} {
			w.change(func() { w.box(name).silent = true })
		}
		w.change(func() { w.box("w1").state, w.box("w2").maker = machine.Paused, machine.Vagrant })
		st, err := w.lab.Status(t.Context())
		if err != nil || st.Healthy || len(st.Problems) != 2 || !strings.HasPrefix(st.Problems[0], "node-unreachable on cp1, cp2, cp3: ") || !strings.HasPrefix(st.Problems[1], "machine-paused on w1") {
			t.Errorf("%+v, %v", st.Problems, err)
		}
		states := map[string]machine.State{}
		for _, n := range st.Nodes {
			states[n.Name] = n.Machine
			if (n.Maker == machine.Vagrant) != (n.Name == "w2") {
				t.Errorf("%s was made by %q", n.Name, n.Maker)
			}
		}
		if states["cp1"] != machine.Running || states["w1"] != machine.Paused {
			t.Errorf("machines are %v", states)
		}
	})
}

// A proof that does not come is an error within its budget, which names the condition.
func TestProofThatDoesNotCome(t *testing.T) {
	inWorld(t, labtest.Small, nil, func(t *testing.T, w *world) {
		w.up()
		w.change(func() { w.deaf = []string{"probe.k8slab.svc.cluster.local:8080: no such host"} })
		begin := time.Now()
		err := w.lab.Up(t.Context(), "proof")
		if took := time.Since(begin); err == nil || !strings.Contains(err.Error(), "pods reach pods and a Service by name") ||
			!strings.Contains(err.Error(), "no such host") || took > 2*health.ProofBudget {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// Nobody waits for what only a repair mends.
func TestProofOfWhatDoesNotPass(t *testing.T) {
	inWorld(t, labtest.Small, nil, func(t *testing.T, w *world) {
		w.up()
		w.change(func() { delete(w.objects, "/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy") })
		begin := time.Now()
		err := w.lab.Up(t.Context(), "proof")
		if took := time.Since(begin); err == nil || !strings.Contains(err.Error(), "kube-proxy-crash: daemonset kube-system/kube-proxy does not exist") ||
			!strings.HasSuffix(err.Error(), "next: labctl repair") || took > health.ProofBudget/2 {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// What the cluster has of a node is listed, until a reset has removed all of it.
func TestTraces(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		want := func(name string, traces ...string) {
			t.Helper()
			if got, err := w.lab.Traces(t.Context(), name); err != nil || !slices.Equal(got, traces) {
				t.Errorf("%s: %q, %v, want %q", name, got, err, traces)
			}
		}
		want("w1", "the Node w1")
		want("cp2", "the Node cp2", "its etcd member")
		w.change(func() { w.box("w1").facts.JoinUnit = "activating" })
		want("w1", "the Node w1", "a running kubeadm on its machine")
		w.change(func() { w.box("w1").silent = true })
		want("w1", "the Node w1")
		for _, name := range []string{"cp2", "w2"} {
			if err := w.lab.Reset(t.Context(), name); err != nil {
				t.Error(err)
			}
			want(name)
		}
	})
}

// A diagnosis finds nothing in a healthy lab, names what was broken, keeps its facts where it was told to, and changes nothing.
func TestDiagnoseInMemory(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.clean()
		report, err := w.lab.Diagnose(t.Context(), health.DiagnoseOptions{})
		if err != nil || len(report.Findings) > 0 {
			t.Errorf("a healthy lab: %+v, %v", report.Findings, err)
		}
		if _, err := w.lab.Diagnose(t.Context(), health.DiagnoseOptions{Nodes: []string{"w7"}}); err == nil || !strings.Contains(err.Error(), "w7") {
			t.Errorf("of a stranger: %v", err)
		}
		w.change(func() { w.box("w1").state = machine.Off; w.addMember("stranger", true) })
		bundle := filepath.Join(t.TempDir(), "facts.tar.gz")
		report, err = w.lab.Diagnose(t.Context(), health.DiagnoseOptions{Bundle: bundle})
		text, _ := json.Marshal(report)
		if err != nil || !strings.Contains(string(text), `"w1"`) || !strings.Contains(string(text), string(symptom.EtcdStaleMember)) {
			t.Errorf("%s, %v", text, err)
		}
		if info, err := os.Stat(bundle); err != nil || info.Size() == 0 {
			t.Errorf("its facts: %v, %v", info, err)
		}
		if len(w.lab.Changes()) > 0 {
			t.Errorf("a diagnosis changed %q", w.lab.Changes())
		}
	})
}

// A machine is asked what a join needs of it, before it is in a cluster; nothing is asked of a member.
func TestPreflight(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		if err := w.lab.Up(t.Context(), "machines"); err != nil {
			t.Fatal(err)
		}
		w.change(func() { w.box("w1").swap = true })
		results := func(fix bool) (all []join.Result) {
			checks, err := w.lab.Preflight(t.Context(), "w1", fix)
			if err != nil {
				t.Error(err)
			}
			for _, c := range checks {
				if c.ID == "swap" {
					all = append(all, c.Result)
				}
			}
			return all
		}
		if got := results(false); !slices.Equal(got, []join.Result{join.Fixable}) || !w.box("w1").swap {
			t.Errorf("only looked at: %v", got)
		}
		if got := results(true); !slices.Equal(got, []join.Result{join.OK}) || w.box("w1").swap {
			t.Errorf("repaired: %v", got)
		}
		w.up()
		if checks, err := w.lab.Preflight(t.Context(), "w1", true); err != nil || len(checks) > 0 {
			t.Errorf("of a member: %v, %v", checks, err)
		}
		if _, err := w.lab.Preflight(t.Context(), "w7", true); err == nil || !strings.Contains(err.Error(), "no machine in the lab") {
			t.Errorf("of nobody: %v", err)
		}
	})
}
