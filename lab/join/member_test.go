package join

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8slab/lab/etcd"
	"k8slab/lab/symptom"
)

// nodeAPI is an API server that knows one Node, as kubelet's credentials see it. It answers on loopback's health port too.
type nodeAPI struct {
	t      *testing.T
	server *httptest.Server

	mu      sync.Mutex
	node    any // nil: there is none
	changed chan struct{}
	health  int
	beats   int // how often kubelet has told of the node
}

// newNodeAPI makes the machine a member of the API's cluster and returns it.
func newNodeAPI(t *testing.T, f *fakeMachine) *nodeAPI {
	t.Helper()
	a := &nodeAPI{t: t, changed: make(chan struct{}), health: http.StatusOK}
	a.server = httptest.NewTLSServer(a)
	t.Cleanup(a.server.Close)
	t.Cleanup(a.server.CloseClientConnections)
	f.host("127.0.0.1:6443", a.server.Listener.Addr().String())
	f.host("127.0.0.1:10257", a.server.Listener.Addr().String())
	f.host("127.0.0.1:10259", a.server.Listener.Addr().String())
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.server.Certificate().Raw}))
	f.write(kubeletConf, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "x",
		"clusters": [{"name": "x", "cluster": {"server": "https://127.0.0.1:6443", "certificate-authority-data": "%s"}}],
		"contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}], "users": [{"name": "x", "user": {"token": "x"}}]}`, ca))
	f.answer("systemctl show --property="+stateProperties+" kubelet.service", "Id=kubelet.service\nLoadState=loaded\nActiveState=active\nMainPID=77\n")
	f.write("/proc/77/cmdline", "/usr/bin/kubelet\x00--bootstrap-kubeconfig=/a\x00--kubeconfig=/etc/kubernetes/kubelet.conf\x00")
	a.set("w1", testMachineID, "True", "")
	return a
}

func (a *nodeAPI) set(name, machineID, ready, message string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.beats++
	heartbeat := time.Unix(1e9+int64(a.beats), 0).UTC().Format(time.RFC3339)
	a.node = map[string]any{"kind": "Node", "apiVersion": "v1", "metadata": map[string]any{"name": name}, "status": map[string]any{
		"nodeInfo":   map[string]any{"machineID": machineID},
		"conditions": []any{map[string]any{"type": "Ready", "status": ready, "message": message, "lastHeartbeatTime": heartbeat}},
	}}
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *nodeAPI) remove() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.node = nil
}

func (a *nodeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	node, changed, health := a.node, a.changed, a.health
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/livez" || r.URL.Path == "/healthz":
		w.WriteHeader(health)
	case r.URL.Path == "/api/v1/nodes/w1" && node != nil:
		_ = json.NewEncoder(w).Encode(node)
	case r.URL.Path == "/api/v1/nodes/w1":
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404})
	case r.URL.Path == "/api/v1/nodes" && r.URL.Query().Get("watch") != "":
		// A watch begins with what there is.
		if node != nil {
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "ADDED", "object": node})
		}
		w.(http.Flusher).Flush()
		for {
			select {
			case <-r.Context().Done():
				return
			case <-changed:
			}
			a.mu.Lock()
			node, changed = a.node, a.changed
			a.mu.Unlock()
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": node})
			w.(http.Flusher).Flush()
		}
	default:
		a.t.Errorf("unexpected %s %s", r.Method, r.URL)
	}
}

func TestValidate(t *testing.T) {
	tests := []struct {
		name    string
		arrange func(*fakeMachine, *nodeAPI)
		target  Target
		bad     CheckID // the check that stops it; "" for none
		cause   symptom.ID
		says    string
	}{
		{"a healthy worker", func(*fakeMachine, *nodeAPI) {}, Target{}, "", "", ""},
		{"kubelet stopped", func(f *fakeMachine, _ *nodeAPI) {
			f.answer("systemctl show --property="+stateProperties+" kubelet.service", "Id=kubelet.service\nActiveState=failed\n")
		}, Target{}, CheckKubelet, symptom.KubeletNotRunning, "failed"},
		{"a systemd that does not answer in time", func(f *fakeMachine, _ *nodeAPI) {
			f.does("systemctl show --property="+stateProperties+" kubelet.service", func() (string, error) { return "", context.DeadlineExceeded })
		}, Target{}, CheckKubelet, "", "deadline exceeded"},
		{"kubelet masked", func(f *fakeMachine, _ *nodeAPI) {
			f.answer("systemctl show --property="+stateProperties+" kubelet.service", "Id=kubelet.service\nLoadState=masked\nActiveState=inactive\n")
		}, Target{}, CheckKubelet, symptom.KubeletNotRunning, "masked"},
		{"kubelet standalone", func(f *fakeMachine, _ *nodeAPI) { f.write("/proc/77/cmdline", "/usr/bin/kubelet\x00--config=/x\x00") },
			Target{}, CheckKubelet, symptom.KubeletStandalone, "--kubeconfig"},
		{"kubelet with an empty kubeconfig", func(f *fakeMachine, _ *nodeAPI) { f.write("/proc/77/cmdline", "/usr/bin/kubelet\x00--kubeconfig=\x00") },
			Target{}, CheckKubelet, symptom.KubeletStandalone, "--kubeconfig"},
		{"another cluster's member", func(*fakeMachine, *nodeAPI) {}, Target{CACertHashes: []string{testHash}}, CheckCluster, symptom.LeftoverState, "another cluster"},
		{"a worker that was to be a control plane", func(*fakeMachine, *nodeAPI) {}, Target{Endpoint: testEndpoint, ControlPlane: true},
			CheckRole, symptom.LeftoverState, "it is a worker"},
		{"no Node", func(_ *fakeMachine, a *nodeAPI) { a.node = nil }, Target{}, CheckNode, "", "no Node w1"},
		{"another machine's Node", func(_ *fakeMachine, a *nodeAPI) { a.set("w1", "ffffffffffffffffffffffffffffffff", "True", "") },
			Target{}, CheckNode, symptom.NodeNameExists, "another machine's"},
		{"NotReady for want of a network", func(_ *fakeMachine, a *nodeAPI) {
			a.set("w1", testMachineID, "False", "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady")
		}, Target{}, CheckNode, symptom.CNINotInitialized, "not Ready"},
		{"an API server that is gone", func(f *fakeMachine, _ *nodeAPI) { f.host("127.0.0.1:6443", "no route") }, Target{}, CheckNode, symptom.APIServerUnreachable, "no route"},
		{"a control plane whose static pods fail", func(f *fakeMachine, a *nodeAPI) {
			f.write(apiManifest, "- --secure-port=6443\n")
			a.health = http.StatusInternalServerError
		}, Target{}, CheckAPIServer, symptom.ControlPlaneCrashloop, "500"},
		{"a control plane on another port", func(f *fakeMachine, _ *nodeAPI) { f.write(apiManifest, "- --secure-port=7443\n") },
			Target{}, CheckAPIServer, symptom.ControlPlaneCrashloop, "7443"},
		{"a control plane", func(f *fakeMachine, _ *nodeAPI) { f.write(apiManifest, "- --secure-port=6443\n") },
			Target{Endpoint: testEndpoint, ControlPlane: true}, "", "", ""},
		{"a control plane without the keys of etcd", func(f *fakeMachine, _ *nodeAPI) {
			f.write(apiManifest, "- --secure-port=6443\n")
			f.write(etcdManifest, etcdYAML)
		}, Target{}, CheckEtcdMember, "", "no such file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFakeMachine(t)
			tt.arrange(f, newNodeAPI(t, f))
			if tt.target.CACertHashes == nil {
				tt.target.CACertHashes = nil
			}
			before := f.digest()
			checks := Validate(t.Context(), f.Machine, tt.target)
			bad := worst(checks)
			switch {
			case tt.bad == "" && bad != nil:
				t.Errorf("%+v", *bad)
			case tt.bad == "":
			case bad == nil:
				t.Error("it passes")
			default:
				if got := find(checks, tt.bad); got.Result != Blocked || got.Symptom != tt.cause || !strings.Contains(got.Evidence, tt.says) {
					t.Errorf("%+v", got)
				}
			}
			if f.digest() != before || len(f.changed()) > 0 {
				t.Error("it changed something")
			}
		})
	}
}

func TestJudgeEtcd(t *testing.T) {
	w := &member{name: "cp2"}
	tests := []struct {
		name    string
		members []etcd.Member
		want    symptom.ID
		ok      bool
	}{
		{"a voter", []etcd.Member{cp1, cp2}, "", true},
		{"a learner", []etcd.Member{cp1, {ID: 2, Name: "cp2", Learner: true}}, symptom.EtcdLearnerNotInSync, false},
		{"not in the cluster", []etcd.Member{cp1}, symptom.EtcdMemberMismatch, false},
	}
	for _, tt := range tests {
		if got := w.judgeEtcd(tt.members); (got.Result == OK) != tt.ok || got.Symptom != tt.want {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

func TestNodeNameIsOfTheCertificate(t *testing.T) {
	f := newFakeMachine(t)
	if got := newMember(f.Machine, Target{}).name; got != "w1" {
		t.Errorf("without one it is %q, not the host name", got)
	}
	ca, key := newCA(t)
	for subject, want := range map[string]string{"system:node:earlier": "earlier", "kube-apiserver": "w1"} {
		f.write("/var/lib/kubelet/pki/kubelet-client-current.pem", string(pemOf(leaf(t, ca, key, clusterShape{subject: subject}).Certificate[0])))
		if got := newMember(f.Machine, Target{}).name; got != want {
			t.Errorf("%s: %q", subject, got)
		}
	}
	f.write("/var/lib/kubelet/pki/kubelet-client-current.pem", string(pemOf(leaf(t, ca, key, clusterShape{subject: "system:node:earlier"}).Certificate[0])))
	if got := newMember(f.Machine, Target{Name: "other"}).name; got != "other" {
		t.Errorf("%q", got)
	}
}

// A Node that becomes Ready is seen at once, and not at the next question.
func TestProveWatchesTheNode(t *testing.T) {
	s := newScenery(t, false, "exit 0")
	a := newNodeAPI(t, s.fakeMachine)
	a.set("w1", testMachineID, "False", "not yet")
	s.write(placeholderConf, "{}")
	go func() {
		for !strings.Contains(s.events.details(), "not yet") {
			time.Sleep(5 * time.Millisecond)
		}
		a.set("w1", testMachineID, "True", "")
	}()
	var o Outcome
	begin := time.Now()
	s.job.Target = Target{}
	if !s.engine.prove(t.Context(), s.job, &o) || !o.Joined || time.Since(begin) > 2*time.Second {
		t.Errorf("after %s: %+v", time.Since(begin), o)
	}
	if s.Exists(placeholderConf) {
		t.Error("the placeholder is left beside the real configuration")
	}
	if slices.ContainsFunc(o.Checks, func(c Check) bool { return c.ID == "" }) {
		t.Errorf("a check without its name: %+v", o.Checks)
	}
}

func TestProveIsBounded(t *testing.T) {
	s := newScenery(t, false, "exit 0")
	newNodeAPI(t, s.fakeMachine).set("w1", testMachineID, "False", "NetworkPluginNotReady")
	var o Outcome
	s.job.Target, s.job.Ready = Target{}, 300*time.Millisecond
	if s.engine.prove(t.Context(), s.job, &o) || o.Joined || o.Symptom != symptom.CNINotInitialized || o.Phase != PhaseValidate {
		t.Errorf("%+v", o)
	}
}

// On a healthy member nothing runs and nothing changes.
func TestAlreadyAMember(t *testing.T) {
	s := newScenery(t, false, "exit 1")
	newNodeAPI(t, s.fakeMachine)
	s.job.Target = Target{Name: "w1"}
	before := s.digest()
	o := s.engine.Attempt(t.Context(), s.job)
	if !o.Joined || !o.Already || s.digest() != before || len(s.changed()) > 0 || !s.missing("args") {
		t.Errorf("%+v; ran %q", o, s.changed())
	}
}

// A member of another cluster, or in another role, is not taken from there.
func TestAMemberElsewhereIsLeftAlone(t *testing.T) {
	for name, target := range map[string]Target{
		"another cluster": {CACertHashes: []string{testHash}},
		"another role":    {Endpoint: testEndpoint, ControlPlane: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenery(t, false, "exit 1")
			newNodeAPI(t, s.fakeMachine)
			s.job.Target, s.job.Number = target, 2
			before := s.digest()
			o := s.engine.Attempt(t.Context(), s.job)
			if o.Joined || o.Symptom != symptom.LeftoverState || s.digest() != before || len(s.changed()) > 0 || !s.missing("args") {
				t.Errorf("%+v; ran %q", o, s.changed())
			}
		})
	}
}

// kubelet is started again once, when the local API server answers, and only on a control plane.
func TestKubeletIsRestartedWhenTheAPIServerAnswers(t *testing.T) {
	for _, controlPlane := range []bool{true, false} {
		s := newScenery(t, controlPlane, "sleep 0.7")
		newNodeAPI(t, s.fakeMachine)
		s.answer("systemctl restart kubelet.service", "")
		if o, ok := s.run(t.Context()); !ok {
			t.Errorf("%+v", o)
		}
		if got := slices.Contains(s.changed(), "systemctl restart kubelet.service"); got != controlPlane || len(s.changed()) > 1 {
			t.Errorf("control plane %t: ran %q", controlPlane, s.changed())
		}
	}
}

// Who judges a machine tells the failures of its Node apart by their reasons, not by their words.
func TestNodeReasons(t *testing.T) {
	for want, arrange := range map[Reason]func(*nodeAPI){
		"":           func(*nodeAPI) {},
		NodeMissing:  func(a *nodeAPI) { a.node = nil },
		NodeOfOther:  func(a *nodeAPI) { a.set("w1", "ffffffffffffffffffffffffffffffff", "True", "") },
		NodeNotReady: func(a *nodeAPI) { a.set("w1", testMachineID, "False", "it is full") },
	} {
		f := newFakeMachine(t)
		a := newNodeAPI(t, f)
		arrange(a)
		if c := find(Validate(t.Context(), f.Machine, Target{}), CheckNode); c.Reason != want {
			t.Errorf("%q: %+v", want, c)
		}
	}
}
