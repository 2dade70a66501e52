package join

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"k8slab/lab/symptom"
)

// newForwarder is a member of flannel's with a kube-proxy that has run for an hour.
func newForwarder(t *testing.T) (*fakeMachine, *fakeCRI) {
	t.Helper()
	f := newFakeMachine(t)
	f.write("/run/flannel/subnet.env", "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.1.1/24\nFLANNEL_MTU=1450\n")
	f.write("/proc/sys/net/ipv4/conf/cni0/forwarding", "1\n")
	f.program("/usr/sbin/nft")
	f.rules(t, proxyRules)
	c := serveCRI(f, "")
	c.sandboxes.list = []*runtimeapi.Container{{Metadata: &runtimeapi.ContainerMetadata{Name: "kube-proxy"},
		State: runtimeapi.ContainerState_CONTAINER_RUNNING, CreatedAt: time.Now().Add(-time.Hour).UnixNano()}}
	return f, c
}

const proxyRules = `{"chain":{"family":"ip","table":"kube-proxy","name":"nat-prerouting","type":"nat","hook":"prerouting","policy":"accept"}},
{"chain":{"family":"ip","table":"kube-proxy","name":"nat-output","type":"nat","hook":"output","policy":"accept"}},
{"rule":{"family":"ip","table":"kube-proxy","chain":"nat-prerouting","expr":[{"jump":{"target":"services"}}]}},
{"rule":{"family":"ip","table":"kube-proxy","chain":"nat-output","expr":[{"jump":{"target":"services"}}]}}`

func (f *fakeMachine) rules(t *testing.T, rules ...string) {
	t.Helper()
	text := `{"nftables":[` + strings.Join(rules, ",") + "]}"
	if !json.Valid([]byte(text)) {
		t.Fatal(text)
	}
	f.answer("nft --json list ruleset", text)
}

func forwardChain(policy string, rules ...string) string {
	all := []string{fmt.Sprintf(`{"chain":{"family":"inet","table":"guard","name":"forward","type":"filter","hook":"forward","policy":%q}}`, policy)}
	for _, expr := range rules {
		all = append(all, fmt.Sprintf(`{"rule":{"family":"inet","table":"guard","chain":"forward","expr":[%s]}}`, expr))
	}
	return strings.Join(all, ",")
}

func TestForwarding(t *testing.T) {
	const fromPods = `{"match":{"op":"==","left":{"payload":{"protocol":"ip","field":"saddr"}},"right":{"prefix":{"addr":"10.244.0.0","len":16}}}}`
	for _, tt := range []struct {
		name   string
		damage func(*testing.T, *fakeMachine, *fakeCRI)
		id     symptom.ID
		says   string
	}{
		{"all is passed on", func(*testing.T, *fakeMachine, *fakeCRI) {}, "", ""},
		{"all is dropped", func(t *testing.T, f *fakeMachine, _ *fakeCRI) { f.rules(t, proxyRules, forwardChain("drop")) }, symptom.FirewallBlocked, "inet guard forward (policy)"},
		{"pods' packets are let through", func(t *testing.T, f *fakeMachine, _ *fakeCRI) {
			f.rules(t, proxyRules, forwardChain("drop", fromPods+`,{"accept":null}`))
		}, "", ""},
		{"pods' packets are dropped", func(t *testing.T, f *fakeMachine, _ *fakeCRI) {
			f.rules(t, proxyRules, forwardChain("accept", fromPods+`,{"drop":null}`))
		}, symptom.FirewallBlocked, "is dropped by inet guard forward"},
		{"what goes out through the tunnel is dropped", func(t *testing.T, f *fakeMachine, _ *fakeCRI) {
			f.rules(t, proxyRules, forwardChain("accept", `{"match":{"op":"==","left":{"meta":{"key":"oifname"}},"right":"flannel.1"}},{"drop":null}`))
		}, symptom.FirewallBlocked, "from cni0 to flannel.1"},
		{"what comes from elsewhere is dropped", func(t *testing.T, f *fakeMachine, _ *fakeCRI) {
			f.rules(t, proxyRules, forwardChain("accept", `{"match":{"op":"==","left":{"meta":{"key":"iifname"}},"right":"eth1"}},{"drop":null}`))
		}, "", ""},
		{"one of a set, which nobody knows", func(t *testing.T, f *fakeMachine, _ *fakeCRI) {
			f.rules(t, proxyRules, forwardChain("accept", `{"match":{"op":"==","left":{"meta":{"key":"iifname"}},"right":"@some"}},{"drop":null}`))
		}, "", ""},
		{"kube-proxy's rules are gone", func(t *testing.T, f *fakeMachine, _ *fakeCRI) { f.rules(t) }, symptom.KubeProxyCrash, "rules are not in the packet filter"},
		{"kube-proxy's rules are half gone", func(t *testing.T, f *fakeMachine, _ *fakeCRI) {
			f.rules(t, strings.Split(proxyRules, ",\n")[:3]...)
		}, symptom.KubeProxyCrash, "rules are not in the packet filter"},
		{"kube-proxy has only started", func(t *testing.T, f *fakeMachine, c *fakeCRI) {
			f.rules(t)
			c.sandboxes.list[0].CreatedAt = time.Now().UnixNano()
		}, "", ""},
		{"no kube-proxy", func(t *testing.T, f *fakeMachine, c *fakeCRI) { f.rules(t); c.sandboxes.list = nil }, "", ""},
		{"a link does not pass on", func(_ *testing.T, f *fakeMachine, _ *fakeCRI) {
			f.write("/proc/sys/net/ipv4/conf/cni0/forwarding", "0\n")
		},
			symptom.KernelPrereqMissing, "it is 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, c := newForwarder(t)
			tt.damage(t, f, c)
			found, err := Forwarding(t.Context(), f.Machine)
			if err != nil {
				t.Fatal(err)
			}
			if tt.id == "" && len(found) == 0 {
				return
			}
			if len(found) != 1 || found[0].Symptom != tt.id || !strings.Contains(found[0].Text, tt.says) {
				t.Errorf("%+v", found)
			}
		})
	}
}

// A tool that fails tells nothing.
func TestForwardingUnread(t *testing.T) {
	f, _ := newForwarder(t)
	f.does("nft --json list ruleset", func() (string, error) { return "", os.ErrPermission })
	if found, err := Forwarding(t.Context(), f.Machine); err == nil || len(found) > 0 {
		t.Errorf("%v %v", found, err)
	}
}
