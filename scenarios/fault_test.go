package scenarios

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8slab/config"
	"k8slab/lab/symptom"
)

// recorder is a driver that does nothing.
type recorder struct {
	mu  sync.Mutex
	ran []string
}

func (r *recorder) Run(_ context.Context, node string, argv ...string) (string, error) {
	line := strings.Join(argv, " ")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ran = append(r.ran, node+": "+line)
	switch {
	case strings.Contains(line, "member list --write-out=json"):
		return `{"members":[{"ID":7,"name":"n","peerURLs":["https://10.0.0.9:2380"]}]}`, nil
	case strings.Contains(line, labnode) && strings.Contains(line, " join "):
		return `{"outcome":{"joined":false}}`, nil
	case strings.Contains(line, "endpoint status"):
		return `[{"Endpoint":"https://10.0.0.8:2379","Status":{"header":{"member_id":7,"raft_term":3},"leader":7}}]`, nil
	}
	return "", nil
}

func (r *recorder) Labctl(_ context.Context, args ...string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ran = append(r.ran, "labctl: "+strings.Join(args, " "))
	if args[0] == "upgrade" {
		return "", errors.New("stopped")
	}
	if args[0] == "join-command" {
		return `{"command":"kubeadm join 10.0.0.10:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:00"}`, nil
	}
	return "", nil
}

func TestFaults(t *testing.T) {
	name := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	all := All()
	if !slices.IsSortedFunc(all, func(a, b Fault) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("not sorted by name")
	}
	for i, f := range all {
		if !name.MatchString(f.Name) || i > 0 && f.Name == all[i-1].Name {
			t.Errorf("name %q", f.Name)
		}
		if f.Story == "" || len(f.Roles) == 0 {
			t.Errorf("%s: story %q, roles %q", f.Name, f.Story, f.Roles)
		}
		if f.Outside && f.Alone == "" {
			t.Errorf("%s: no word on what kubeadm does alone", f.Name)
		}
		for _, id := range []symptom.ID{f.Symptom, f.cause()} {
			if _, known := symptom.Lookup(id); id != "" && !known {
				t.Errorf("%s: symptom %q", f.Name, id)
			}
		}
	}
}

func (f Fault) cause() symptom.ID {
	if f.Join == nil {
		return ""
	}
	return f.Join.Cause
}

// mayRun are the beginnings of what injectors may do: on their node, on the control plane beside it, and by labctl.
var mayRun = []string{
	"n: ", "c: ", "labctl: power off n", "labctl: power pause n", "labctl: power resume n", "labctl: upgrade next", "labctl: join-command", "labctl: join n",
	"labctl: kubectl -- delete secret", "labctl: kubectl -- label secret --namespace=kube-system bootstrap-token-abcdef ",
	"labctl: kubectl -- --namespace=kube-flannel delete daemonset flannel",
	"labctl: kubectl -- --namespace=k8slab delete pod --selector=app=probe --field-selector=spec.nodeName=n ",
}

// targetOf is the node n of a lab, beside the control planes c and o.
func targetOf(f Fault, driver Driver) Target {
	return Target{Driver: driver, Node: "n", Address: "10.0.0.9", ControlPlane: "c", Members: []Member{
		{"c", config.ControlPlane, "10.0.0.8"}, {"n", f.Roles[0], "10.0.0.9"}, {"o", config.ControlPlane, "10.0.0.7"},
	}}
}

// What a cluster that labctl did not make is spared.
func TestLabsOnly(t *testing.T) {
	for name, why := range map[string]string{
		"kubelet-stopped": "", "missing-cni": "", "token-expired": "", "stale-learner": "", "quorum-lost": "it loses data", "wiped-voter": "it loses data",
		"etcd-data-corrupt": "it loses data", "ssh-stopped": "power over the machine", "worker-suspended": "power over the machine", "stale-cni": "probes",
		"flannel-down": "Flannel", "runc-empty": "node image",
	} {
		f, known := Lookup(name)
		if got := f.LabsOnly(); !known || (got == "") != (why == "") || !strings.Contains(got, why) {
			t.Errorf("%s: %q, want %q", name, got, why)
		}
	}
	for _, f := range All() { // what only a lab's nodes have
		driver := &recorder{}
		_ = f.Inject(t.Context(), targetOf(f, driver))
		if f.Restore != nil {
			_ = f.Restore(t.Context(), targetOf(f, driver))
		}
		for _, line := range driver.ran {
			for _, ours := range []string{"/usr/share/k8slab", "namespace=k8slab", "labctl: power"} {
				if f.LabsOnly() == "" && strings.Contains(line, ours) {
					t.Errorf("%s uses %s: %s", f.Name, ours, line)
				}
			}
		}
	}
}

// An injector acts on the node that it was given, or on the control plane beside it.
func TestInjectorsStayOnTheirNodes(t *testing.T) {
	for _, f := range All() {
		driver := &recorder{}
		target := targetOf(f, driver)
		err := f.Inject(t.Context(), target)
		injected := len(driver.ran)
		if f.Restore != nil && err == nil {
			err = f.Restore(t.Context(), target)
		}
		if err != nil || injected == 0 {
			t.Errorf("%s: %v, ran %q", f.Name, err, driver.ran)
		}
		for _, line := range driver.ran {
			// A unit may be looked for everywhere, and a link has two ends.
			beside := slices.Contains(f.May, Others) || strings.Contains(line, "systemctl --quiet is-active") || strings.Contains(line, "tc qdisc ")
			if !beside && !slices.ContainsFunc(mayRun, func(prefix string) bool { return strings.HasPrefix(line, prefix) }) {
				t.Errorf("%s ran %q", f.Name, line)
			}
		}
	}
}

// Restoring a fault that was never injected must leave a healthy lab alone: an experiment that is killed is in the record before it injects.
func TestRestoreOfNothing(t *testing.T) {
	for _, f := range All() {
		driver := &recorder{}
		target := targetOf(f, driver)
		if f.Restore == nil {
			continue
		}
		if err := f.Restore(t.Context(), target); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		for _, line := range driver.ran {
			verb, isLabctl := strings.CutPrefix(line, "labctl: ")
			if isLabctl && !slices.ContainsFunc([]string{"power resume n", "kubectl -- delete secret --namespace=kube-system --selector="}, func(harmless string) bool {
				return strings.HasPrefix(verb, harmless)
			}) {
				t.Errorf("%s ran %q", f.Name, line)
			}
		}
	}
}
