package lab

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8slab/lab/event"
	"k8slab/lab/join"
	"k8slab/lab/labtest"
	"k8slab/lab/symptom"
)

// heard keeps when events of progress said what.
type heard struct {
	mu    sync.Mutex
	lines []string
	at    []time.Time
}

func (h *heard) Emit(e event.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines, h.at = append(h.lines, e.Detail), append(h.at, time.Now())
}

// when is when a line with all the parts was said first; zero for never.
func (h *heard) when(parts ...string) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, line := range h.lines {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			return h.at[i]
		}
	}
	return time.Time{}
}

// rejoined takes w1 out of a lab that is up, changes the cluster, and joins w1 again: what was heard, how long it took, and how it ended.
func rejoined(t *testing.T, w *world, change func()) (*heard, time.Duration, error) {
	t.Helper()
	w.up()
	if err := w.lab.Reset(t.Context(), "w1"); err != nil {
		t.Fatal(err)
	}
	w.clean()
	w.change(change)
	h := &heard{}
	w.lab.events = event.NewStream(h)
	w.attach(w.lab)
	begin := time.Now()
	err := w.lab.Join(t.Context(), "w1")
	return h, time.Since(begin), err
}

// soon is how long a join with a cause on the cluster's side may take, healed or ended.
const soon = 5 * time.Second

// What the lab's own kubeadm has made for joins is made again, before the join begins or while it waits.
func TestJoinsAreRestored(t *testing.T) {
	deny := func(w *world, what string) { w.denied = map[string]bool{what: true} }
	issued := func(w *world) { w.box("w1").waits = func() bool { return w.issued("w1") } }
	tests := []struct {
		name   string
		cause  symptom.ID
		change func(*world)
		does   string
	}{
		{"nobody approves by itself", symptom.BootstrapRBACForbidden, func(w *world) { deny(w, "create certificatesigningrequests/nodeclient"); issued(w) },
			"cp1: kubeadm init phase bootstrap-token"},
		{"cluster-info is deleted", symptom.JoinConfigMissing, func(w *world) { delete(w.objects, publicConfigs+"cluster-info") }, "cp1: kubeadm init phase bootstrap-token"},
		{"cluster-info is hidden", symptom.BootstrapRBACForbidden, func(w *world) { deny(w, "get configmaps cluster-info") }, "cp1: kubeadm init phase bootstrap-token"},
		{"kubeadm-config is deleted", symptom.JoinConfigMissing, func(w *world) { delete(w.objects, systemConfigs+"kubeadm-config") },
			"cp1: kubeadm init phase upload-config kubeadm"},
		{"kubelet-config is empty", symptom.JoinConfigMissing, func(w *world) { w.objects[systemConfigs+"kubelet-config"]["data"] = object{} },
			"cp1: kubeadm init phase upload-config kubelet"},
		{"the approver loses its right while kubelet waits", symptom.BootstrapRBACForbidden, func(w *world) {
			first := true
			w.box("w1").waits = func() bool {
				if first {
					first = false
					deny(w, "create certificatesigningrequests/nodeclient")
					w.objects[requests+"/csr-w1"]["status"] = object{}
				}
				return w.issued("w1")
			}
		}, "cp1: kubeadm init phase bootstrap-token"},
		{"the approver does not run", symptom.CSRNotApproved, func(w *world) { w.approver = func() bool { return false }; issued(w) },
			"kube PUT " + requests + "/csr-w1/approval"},
		{"the token is deleted while kubelet waits", symptom.TokenExpiredOrInvalid, func(w *world) {
			w.approver = func() bool { return false }
			deleted := false
			w.box("w1").waits = func() bool {
				if !deleted {
					deleted = true
					delete(w.objects, w.tokenOf("w1"))
					delete(w.objects, requests+"/csr-w1") // kubelet could not ask yet
				}
				return w.tokenOf("w1") != ""
			}
		}, "kube POST /api/v1/namespaces/kube-system/secrets"},
	}
	for _, tt := range tests {
		inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
			begin := time.Now()
			h, took, err := rejoined(t, w, func() { begin = time.Now(); tt.change(w) })
			if err != nil || took > soon {
				t.Errorf("%s: %s, %v", tt.name, took, err)
			}
			if at := h.when("cause: "+string(tt.cause)+": ", ""); at.IsZero() || at.Sub(begin) > 3*time.Second {
				t.Errorf("%s: not named within 3 s: %q", tt.name, h.lines)
			}
			if w.count(tt.does) == 0 || w.count("w1: /usr/bin/labnode join") != 1 {
				t.Errorf("%s: changes %q", tt.name, w.lab.Changes())
			}
			w.change(func() { w.side = side{}; w.box("w1").waits = nil })
			w.wantHealthy()
		})
	}
}

const (
	rejection     = `admission webhook "nodes.example.com" denied the request: no asset tag`
	configuration = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/inventory"
)

// addWebhook adds a webhook that rejects Nodes.
func addWebhook(w *world) {
	w.rejects = rejection
	w.objects[configuration] = object{"metadata": object{"name": "inventory"}, "webhooks": []object{{"name": "nodes.example.com"}}}
}

// hangs are what the cluster's side does to a join that nobody here may repair.
var hangs = []struct {
	name   string
	cause  symptom.ID
	says   string
	within time.Duration
	joins  int
	change func(*world)
}{
	{"a webhook rejects the Node", symptom.AdmissionRejects, "webhook nodes.example.com of ValidatingWebhookConfiguration inventory", soon, 0, addWebhook},
	{"a webhook does not answer", symptom.AdmissionRejects, "webhook", 16 * time.Second, 0, func(w *world) {
		w.rejects = `Internal error occurred: failed calling webhook "nodes.example.com": connection refused`
	}},
	{"a policy rejects the Node", symptom.AdmissionRejects, "policy nodes with binding all", soon, 0, func(w *world) {
		w.rejects = "nodes \"w1\" is forbidden: ValidatingAdmissionPolicy 'nodes' with binding 'all' denied request: no tag"
	}},
	{"a webhook that is added while kubelet waits", symptom.AdmissionRejects, "inventory", soon, 1, func(w *world) {
		w.box("w1").waits = func() bool { addWebhook(w); return false }
	}},
	{"the request is denied", symptom.CSRNotApproved, "csr-w1, is denied", soon, 1, func(w *world) {
		w.box("w1").waits = func() bool {
			w.objects[requests+"/csr-w1"]["status"] = object{"conditions": []any{object{"type": "Denied", "status": "True"}}}
			return false
		}
	}},
	{"nobody signs the certificate", symptom.ControllerManagerFailing, "csr-w1 of w1 is approved", 32 * time.Second, 1, func(w *world) {
		w.noSigner, w.box("w1").waits = true, func() bool { return false }
	}},
	{"nobody signs cluster-info", symptom.ControllerManagerFailing, "signs cluster-info", 61 * time.Second, 0, func(w *world) { w.unsigned = true }},
}

// A cause that waiting does not cure, and that is nobody's here to repair, ends the join, and is named.
func TestJoinsAreEnded(t *testing.T) {
	for _, tt := range hangs {
		inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
			begin := time.Now()
			h, took, err := rejoined(t, w, func() { begin = time.Now(); tt.change(w) })
			if err == nil || !strings.Contains(err.Error(), string(tt.cause)) || !strings.Contains(err.Error(), tt.says) || took > tt.within {
				t.Errorf("%s: %s, %v", tt.name, took, err)
			}
			if at := h.when("cause: "+string(tt.cause)+": ", tt.says); at.IsZero() || at.Sub(begin) > 4*time.Second {
				t.Errorf("%s: not named within 3 s: %q", tt.name, h.lines)
			}
			if n := w.count("w1: /usr/bin/labnode join"); n != tt.joins {
				t.Errorf("%s: %d attempts", tt.name, n)
			}
			if w.rejects == rejection && w.objects[configuration] == nil {
				t.Errorf("%s: the webhook is gone", tt.name)
			}
			w.change(func() {
				w.side, w.box("w1").waits = side{}, nil
				delete(w.objects, requests+"/csr-w1")
			})
			w.reborn()
			w.expire = true
			w.up()
			w.wantHealthy()
		})
	}
}

// A request that was made with another token, or that names another machine, is not the lab's to approve.
func TestOthersRequestsStay(t *testing.T) {
	for _, change := range []func(spec object){
		func(spec object) { spec["username"] = "system:bootstrap:others" },
		func(spec object) { spec["request"] = certificateRequest("system:node:cp1") },
		func(spec object) { spec["signerName"] = "kubernetes.io/kubelet-serving" },
	} {
		inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
			w.approver = func() bool { return false }
			_, _, err := rejoined(t, w, func() {
				until := time.Now().Add(10 * time.Second)
				w.box("w1").waits = func() bool {
					change(w.objects[requests+"/csr-w1"]["spec"].(object))
					return time.Now().After(until)
				}
			})
			if err != nil || w.issued("w1") || w.count("kube PUT") > 0 {
				t.Errorf("%v, changes %q", err, w.lab.Changes())
			}
		})
	}
}

// A join that somebody began with a join command of labctl waits for its certificate. labctl join, which waits for that join, approves it.
func TestJoinByHandIsApproved(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.approver = func() bool { return false }
		_, took, err := rejoined(t, w, func() {
			b := w.box("w1")
			b.waits = func() bool { return w.issued("w1") }
			b.facts.JoinUnit, b.atWork = "activating", func() join.Outcome {
				b.facts.Joined, b.facts.CA = true, "ca"
				w.addNode(b)
				return join.Outcome{Joined: true, Finished: true}
			}
			w.addToken("byhand", "made by labctl join-command")
			w.ask("w1", "byhand")
		})
		if err != nil || took > soon || w.count("kube PUT "+requests+"/csr-w1/approval") != 1 || w.count("w1: /usr/bin/labnode join") > 0 {
			t.Errorf("%s, %v, changes %q", took, err, w.lab.Changes())
		}
	})
}

// A join command is not printed before the cluster can be joined with it.
func TestJoinCommandRestoresClusterInfo(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.change(func() { delete(w.objects, publicConfigs+"cluster-info") })
		begin := time.Now()
		if _, err := w.lab.JoinCommand(t.Context(), false); err != nil || w.objects[publicConfigs+"cluster-info"] == nil || time.Since(begin) > soon {
			t.Errorf("%s, %v", time.Since(begin), err)
		}
		// kubeadm makes a token whenever it makes cluster-info.
		if left := w.tokens(); !slices.Equal(left, []string{"made by labctl join-command"}) {
			t.Errorf("tokens %q", left)
		}
	})
}

// An API server that has just started denies everything for a moment: nothing is missing, and nothing is restored or told of.
func TestRightsAreDeniedForAMoment(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		h, took, err := rejoined(t, w, func() { w.starting = time.Now().Add(500 * time.Millisecond) })
		if err != nil || took > soon || w.count("cp1: kubeadm init phase bootstrap-token") > 0 || !h.when("cause: bootstrap-rbac-forbidden").IsZero() {
			t.Errorf("%s, %v: %q", took, err, h.lines)
		}
		w.wantHealthy()
	})
}
