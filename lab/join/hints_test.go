package join

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

// What only a person may undo, the hint says in commands with this machine's values; and it says none where undoing would do more than that.
func TestHintsHaveCommands(t *testing.T) {
	const (
		port2380 = `{"match":{"op":"==","left":{"payload":{"protocol":"tcp","field":"dport"}},"right":2380}}`
		fromPeer = `{"match":{"op":"==","left":{"payload":{"protocol":"ip","field":"saddr"}},"right":{"set":["10.30.0.12","10.30.0.13"]}}}`
		chains   = `{"chain":{"family":"inet","table":"x","name":"in","type":"filter","hook":"input","policy":"accept"}},
			{"chain":{"family":"inet","table":"x","name":"out","type":"filter","hook":"output","policy":"accept"}}`
	)
	rule := func(chain string, handle int, expr string) string {
		return fmt.Sprintf(`{"rule":{"family":"inet","table":"x","chain":%q,"handle":%d,"expr":[%s]}}`, chain, handle, expr)
	}
	mounted := func(kind, dir string) func(*scene) {
		return func(s *scene) {
			s.write(dir+"/file", "")
			s.write("/proc/mounts", "overlay / overlay rw 0 0\n"+kind+" "+dir+" "+kind+" rw 0 0\n")
			s.Space = func(path string) (Space, error) {
				if strings.HasSuffix(path, dir) {
					return Space{Bytes: 1 << 20}, nil
				}
				return Space{Bytes: 40 << 30, FreeBytes: 30 << 30}, nil
			}
		}
	}
	filtered := func(rules ...string) func(*scene) {
		return func(s *scene) {
			s.program("/usr/sbin/nft")
			s.rules(t, append([]string{chains}, rules...)...)
			s.target.Peers = []string{"10.30.0.11", "10.30.0.12"}
		}
	}
	tests := []struct {
		name     string
		breaks   func(*scene)
		check    CheckID
		commands string
	}{
		{"a tmpfs is full", mounted("tmpfs", "/var/lib/kubelet"), CheckDisk, "[umount --lazy /var/lib/kubelet]"},
		{"a disk is full", mounted("ext4", "/var/lib/kubelet"), CheckDisk, "[]"},
		{"a service has the port", func(s *scene) {
			s.listen(10250, 99, "nginx")
			s.write("/proc/99/cgroup", "0::/system.slice/nginx.service\n")
		}, CheckPorts, "[systemctl stop nginx.service]"},
		{"somebody's process has the port", func(s *scene) {
			s.listen(10250, 99, "nginx")
			s.write("/proc/99/cgroup", "0::/user.slice/user-0.slice/session-1.scope\n")
		}, CheckPorts, "[]"},
		{"a proxy of all services", func(s *scene) { s.answer("systemctl show-environment", "HTTPS_PROXY=http://10.1.1.1:3128\n") }, CheckProxy,
			"[systemctl unset-environment HTTPS_PROXY]"},
		{"a proxy of kubelet", func(s *scene) { s.write("/etc/default/kubelet", "HTTPS_PROXY=http://10.1.1.1:3128\n") }, CheckProxy,
			"[sed -i /https_proxy=/Id /etc/default/kubelet systemctl daemon-reload systemctl restart kubelet]"},
		{"a route to nowhere", func(s *scene) {
			s.host(testEndpoint, "no route")
			s.answer("ip route show match", "default via 10.30.0.1 dev eth0 \n10.30.0.0/24 dev eth0 proto kernel scope link \nunreachable 10.30.0.10 \n")
		}, CheckEndpointConnect, "[ip route delete unreachable 10.30.0.10]"},
		{"routes to nowhere for a name", func(s *scene) {
			s.target.Endpoint = "k8s.lan:6443"
			s.Lookup = func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("10.30.0.12"), netip.MustParseAddr("10.30.0.11")}, nil
			}
			for _, address := range []string{"10.30.0.11", "10.30.0.12"} {
				s.host(address+":6443", "no route")
				s.answer("ip route show match "+address, "default via 10.30.0.1 dev eth0 \nunreachable "+address+" \n")
			}
		}, CheckEndpointConnect, "[ip route delete unreachable 10.30.0.11 ip route delete unreachable 10.30.0.12]"},
		{"a route to nowhere for the rest", func(s *scene) {
			s.host(testEndpoint, "no route")
			s.answer("ip route show match", "unreachable default metric 4278198272 \n10.30.0.0/24 dev eth0 proto kernel scope link \n")
		}, CheckEndpointConnect, "[]"},
		{"another CA", func(s *scene) { s.target.CACertHashes = []string{"sha256:" + strings.Repeat("0", 64)} }, CheckCAHash,
			"[kubectl -n kube-public delete configmap cluster-info kubeadm init phase bootstrap-token]"},
		{"rules about a port", filtered(rule("in", 3, port2380+`,{"drop":null}`), rule("out", 4, port2380+`,{"drop":null}`)), CheckFirewall,
			"[nft delete rule inet x in handle 3 nft delete rule inet x out handle 4]"},
		{"a rule about a control plane", filtered(rule("in", 7, fromPeer+`,{"drop":null}`)), CheckFirewall, "[nft delete rule inet x in handle 7]"},
		{"a rule about everybody", filtered(rule("in", 7, `{"drop":null}`)), CheckFirewall, "[]"},
		{"a rule with several verdicts", filtered(rule("in", 7, `{"vmap":{"key":{"payload":{"protocol":"tcp","field":"dport"}},
			"data":{"set":[[22,{"accept":null}],[2380,{"drop":null}]]}}}`)), CheckFirewall, "[]"},
		{"a policy", filtered(strings.ReplaceAll(chains, "accept", "drop")), CheckFirewall, "[]"},
		{"a rule of iptables'", filtered(strings.ReplaceAll(chains+","+rule("in", 3, port2380+`,{"drop":null}`), `"inet","table":"x"`, `"ip","table":"filter"`)),
			CheckFirewall, "[]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t, true)
			tt.breaks(s)
			c := find(Preflight(t.Context(), s.Machine, s.target, nil), tt.check)
			if got := fmt.Sprint(symptom.Commands(c.Hint)); c.Result != Blocked || got != tt.commands {
				t.Errorf("%s %s: %s: got %s, want %s", c.ID, c.Result, c.Hint, got, tt.commands)
			}
		})
	}
}

func TestHintOfRejectionHasACommand(t *testing.T) {
	for owner, want := range map[string]string{"ValidatingWebhookConfiguration x": "[kubectl delete ValidatingWebhookConfiguration x]", "": "[]"} {
		if got := fmt.Sprint(symptom.Commands(RejectionFault(&kube.Rejection{By: "webhook x", Owner: owner}, "w1").Hint)); got != want {
			t.Errorf("%q: got %s, want %s", owner, got, want)
		}
	}
}

func TestHintOfForwardingHasACommand(t *testing.T) {
	f, _ := newForwarder(t)
	f.rules(t, proxyRules, forwardChain("drop"))
	found, err := Forwarding(t.Context(), f.Machine)
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	if got := fmt.Sprint(symptom.Commands(found[0].Hint)); got != "[nft chain inet guard forward { policy accept ; }]" {
		t.Errorf("%s: %s", found[0].Hint, got)
	}
}
