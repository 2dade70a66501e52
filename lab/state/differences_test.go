package state

import (
	"cmp"
	"errors"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/host"
)

// comparedFrom describes the lab of TestCompare. Of its nodes w3 is still to be onboarded, and w2 was.
const comparedFrom = `libvirt: {uri: "lxc:///system"}
kubernetes: {source: modules, kubeadm: {kubelet: {maxPods: 64}}}
resources: {control_plane: {taints: []}}
addons: [prometheus]
nodes:
  - {name: cp1, role: control-plane, ip: 10.30.0.11}
  - {name: cp2, role: control-plane, ip: 10.30.0.12}
  - {name: w1, role: worker, ip: 10.30.0.21, labels: {rack: a}}
  - {name: w2, role: worker, ip: 10.30.0.22, onboard: true}
  - {name: w3, role: worker, ip: 10.30.0.23, onboard: true}
`

// edits of a file.
func drop(names ...string) func(*config.Cluster) {
	return func(c *config.Cluster) {
		c.Nodes = slices.DeleteFunc(c.Nodes, func(n config.Node) bool { return slices.Contains(names, n.Name) })
	}
}

func set(name string, change func(*config.Node)) func(*config.Cluster) {
	return func(c *config.Cluster) { change(&c.Nodes[slices.IndexFunc(c.Nodes, hasName(name))]) }
}

func setAddress(name, ip string) func(*config.Cluster) {
	return set(name, func(n *config.Node) { n.IP = netip.MustParseAddr(ip) })
}

func setTaints(name string, taints ...string) func(*config.Cluster) {
	return set(name, func(n *config.Node) { n.Taints = taints })
}

func TestCompare(t *testing.T) {
	tests := []struct {
		name  string
		edit  func(*config.Cluster)
		want  string // WAY KEY: made with, now
		after string // members, if they are others
	}{
		{name: "nothing", edit: func(*config.Cluster) {}},
		{name: "what was onboarded is a node like any other", edit: set("w2", func(n *config.Node) { n.Onboard = false })},
		{name: "a node that waits is gone", edit: drop("w3")},
		{name: "libvirt chosen again", edit: func(c *config.Cluster) { c.Libvirt.URI = "auto" }},
		{name: "options of a node that waits", edit: setTaints("w3", "a:NoExecute")},
		{name: "an address that is chosen", edit: set("w1", func(n *config.Node) { n.Auto = true })},

		{name: "a new worker", edit: func(c *config.Cluster) {
			c.Nodes = append(c.Nodes, config.Node{Name: "w9", Role: config.Worker, IP: netip.MustParseAddr("10.30.0.99")})
		}, want: "apply nodes[w9]: , worker 10.30.0.99", after: "cp1, cp2, w1, w2, w9"},
		{name: "a node that waits no more", edit: set("w3", func(n *config.Node) { n.Onboard = false }),
			want: "apply nodes[w3]: , worker 10.30.0.23", after: "cp1, cp2, w1, w2, w3"},
		{name: "a new add-on", edit: func(c *config.Cluster) { c.Addons = []string{"prometheus", "git"} }, want: "apply addons: , git"},
		{name: "an add-on is gone", edit: func(c *config.Cluster) { c.Addons = nil }, want: "keep addons: prometheus, "},
		{name: "tuning", edit: func(c *config.Cluster) { c.Tuning.CPJoinRetryAttempts, c.Tuning.Stagger = 3, config.StaggerMachine },
			want: "apply tuning.cp_join_retry_attempts: 8, 3; apply tuning.stagger: join, machine"},

		{name: "sizes", edit: func(c *config.Cluster) { c.Resources.Worker.Memory, c.Resources.ControlPlane.CPUs = 3072, 3 },
			want: "resize resources.control_plane.cpus: 2, 3; resize resources.worker.memory: 2048, 3072"},
		{name: "a disk", edit: func(c *config.Cluster) { c.Resources.Worker.Disk = 30 }, want: "refuse resources.worker.disk: 20, 30"},

		{name: "a node is gone", edit: drop("w1"), want: "remove nodes[w1]: worker 10.30.0.21, ", after: "cp1, cp2, w2"},
		{name: "an onboarded node is gone", edit: drop("w2"), want: "remove nodes[w2]: worker 10.30.0.22, ", after: "cp1, cp2, w1"},
		{name: "a control plane is gone", edit: drop("cp1"), want: "remove nodes[cp1]: control-plane 10.30.0.11, ", after: "cp2, w1, w2"},
		{name: "an address", edit: setAddress("w1", "10.30.0.29"), want: "remove nodes[w1].ip: 10.30.0.21, 10.30.0.29"},
		{name: "a role", edit: set("w1", func(n *config.Node) { n.Role = config.ControlPlane }),
			want: "remove nodes[w1].role: worker, control-plane", after: "cp1, cp2, w1, w2"},
		{name: "a member that is to be onboarded", edit: set("w1", func(n *config.Node) { n.Onboard = true }),
			want: "remove nodes[w1].onboard: false, true", after: "cp1, cp2, w2"},
		{name: "an onboarded node with another address", edit: setAddress("w2", "10.30.0.29"),
			want: "remove nodes[w2].ip: 10.30.0.22, 10.30.0.29", after: "cp1, cp2, w1"},
		{name: "a name", edit: set("w1", func(n *config.Node) { n.Name = "w9" }),
			want: "remove nodes[w1]: worker 10.30.0.21, ; apply nodes[w9]: , worker 10.30.0.21", after: "cp1, cp2, w9, w2"},
		{name: "options of a node", edit: set("w1", func(n *config.Node) {
			n.NodeOptions = config.NodeOptions{Kubelet: config.Fragment{"maxPods": 32}, Taints: config.List[string]{}, Disks: config.List[int]{1, 2}}
		}), want: `remove nodes[w1].disks: , [1,2]`},
		{name: "no disks, where the role has some", edit: set("w1", func(n *config.Node) { n.Disks = config.List[int]{} }), want: `remove nodes[w1].disks: , []`},
		{name: "options of a node, not its disks", edit: set("w1", func(n *config.Node) {
			n.NodeOptions = config.NodeOptions{Kubelet: config.Fragment{"maxPods": 32}, Taints: config.List[string]{}}
		}), want: `reconfigure nodes[w1].kubelet: , {"maxPods":32}; reconfigure nodes[w1].labels: {"rack":"a"}, ; reconfigure nodes[w1].taints: , []`},
		{name: "options of an onboarded node", edit: setTaints("w2", "a:NoExecute"), want: `reconfigure nodes[w2].taints: , ["a:NoExecute"]`},
		{name: "options of the control plane that stays", edit: func(c *config.Cluster) { drop("cp2")(c); setTaints("cp1", "a:NoExecute")(c) },
			want: `reconfigure nodes[cp1].taints: , ["a:NoExecute"]; remove nodes[cp2]: control-plane 10.30.0.12, `, after: "cp1, w1, w2"},
		{name: "no control plane stays", edit: func(c *config.Cluster) { drop("cp2")(c); setAddress("cp1", "10.30.0.19")(c) },
			want: "refuse nodes[cp1].ip: 10.30.0.11, 10.30.0.19; refuse nodes[cp2]: control-plane 10.30.0.12, "},

		{name: "virtual machines", edit: func(c *config.Cluster) { c.Libvirt.URI = host.VirtualMachines },
			want: "refuse libvirt.uri: lxc:///system, qemu:///system"},
		{name: "versions", edit: func(c *config.Cluster) { c.Kubernetes.Version, c.Kubernetes.Source = "v1.36.2", "/releases" },
			want: "refuse kubernetes.version: v1.37.2, v1.36.2; refuse kubernetes.source: modules, /releases"},
		{name: "programs from elsewhere", edit: func(c *config.Cluster) {
			c.Kubernetes.Programs, c.Etcd.Source = map[string]string{"kubeadm": "/src/kubernetes"}, "v3.6.8"
		}, want: `refuse kubernetes.programs: , {"kubeadm":"/src/kubernetes"}; refuse etcd.source: , v3.6.8`},
		{name: "a version that floats", edit: func(c *config.Cluster) { c.Kubernetes.Version = "ci/latest" }},
		{name: "any source", edit: func(c *config.Cluster) { c.Kubernetes.Source = config.SourceAuto }},
		{name: "options of all nodes", edit: func(c *config.Cluster) {
			part := config.Fragment{"a": true}
			c.Kubernetes.FeatureGates = map[string]bool{"A": true}
			c.Kubernetes.Kubeadm = config.Kubeadm{Cluster: part, Init: part, Join: part, KubeProxy: part, Patches: map[string]any{"etcd": part}}
		}, want: `refuse kubernetes.kubeadm.init: , {"a":true}; refuse kubernetes.kubeadm.join: , {"a":true}; ` +
			`reconfigure kubernetes.feature_gates: , {"A":true}; reconfigure kubernetes.kubeadm.cluster: , {"a":true}; reconfigure kubernetes.kubeadm.kubelet: {"maxPods":64}, ; ` +
			`reconfigure kubernetes.kubeadm.kube_proxy: , {"a":true}; reconfigure kubernetes.kubeadm.patches: , {"etcd":{"a":true}}`},
		{name: "options of roles", edit: func(c *config.Cluster) {
			c.Resources.ControlPlane.Taints, c.Resources.Worker.Labels = nil, map[string]string{"rack": "b"}
			c.Resources.Worker.Disks = config.List[int]{1}
		}, want: `reconfigure resources.control_plane.taints: [], ; reconfigure resources.worker.labels: , {"rack":"b"}; refuse resources.worker.disks: , [1]`},
		{name: "an image", edit: func(c *config.Cluster) { c.Image.Base = "/debian.qcow2" }, want: "refuse image.base: , /debian.qcow2"},
		{name: "an image that is fetched", edit: func(c *config.Cluster) { c.Image.From = "r.example/node@sha256:0" }, want: "refuse image.from: , r.example/node@sha256:0"},
		{name: "a distribution", edit: func(c *config.Cluster) { c.Image.Distribution = config.Trixie }, want: "refuse image.distribution: bookworm, trixie"},
		{name: "a pool of addresses", edit: func(c *config.Cluster) { c.Network.LoadBalancer = netip.MustParsePrefix("10.30.0.64/26") },
			want: "refuse network.load_balancer: the default, 10.30.0.64/26"},
		{name: "an uplink", edit: func(c *config.Cluster) { c.Network.Uplink = config.UplinkNAT }, want: "refuse network.uplink: auto, nat"},
		{name: "a registry", edit: func(c *config.Cluster) { c.Registries = []config.Registry{{Name: "docker.io"}, {Name: "quay.io"}} },
			want: "apply registries: , docker.io, quay.io"},
		{name: "a proxy", edit: func(c *config.Cluster) {
			c.Network.Proxy, c.Network.NoProxy, c.Network.CAFile = "http://p:1", []string{"a", "b"}, "/ca.pem"
		}, want: `apply network.proxy: , http://p:1; apply network.no_proxy: , ["a","b"]; apply network.ca_file: , /ca.pem`},
		{name: "networks", edit: func(c *config.Cluster) {
			c.Network.CIDR, c.Network.VirtualIP = netip.MustParsePrefix("10.31.0.0/24"), netip.MustParseAddr("10.31.0.9")
			c.Network.LoadBalancer = config.PoolOf(c.Network.CIDR)
			c.Network.PodSubnet, c.Network.ServiceSubnet = netip.MustParsePrefix("10.245.0.0/16"), netip.MustParsePrefix("10.97.0.0/16")
		}, want: "refuse network.cidr: 10.30.0.0/24, 10.31.0.0/24; refuse network.virtual_ip: 10.30.0.10, 10.31.0.9; " +
			"refuse network.pod_subnet: 10.244.0.0/16, 10.245.0.0/16; refuse network.service_subnet: 10.96.0.0/16, 10.97.0.0/16"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := madeOf(t, comparedFrom)
			if err := l.Admit("w2"); err != nil {
				t.Fatal(err)
			}
			now := edited(t, l, tt.edit)
			var got []string
			for _, d := range now.Differences {
				got = append(got, string(d.Way)+" "+d.Key+": "+d.Made+", "+d.Now)
				if d.Takes == "" || d.Way == Refuses && d.Why == "" {
					t.Errorf("%s: why, and how is it applied?", d.Key)
				}
				if d.Way == Removes && d.Node == "" {
					t.Errorf("%s: which node?", d.Key)
				}
			}
			if text := strings.Join(got, "; "); text != tt.want {
				t.Errorf("got %q, want %q", text, tt.want)
			}
			if members := memberNames(now.After); members != cmp.Or(tt.after, "cp1, cp2, w1, w2") {
				t.Errorf("then the lab has %s", members)
			}
			// What is there keeps the upper hand.
			if is := nodeOf(t, now, "w1"); is.Role != config.Worker || is.IP != nodeOf(t, l, "w1").IP || now.URI != host.Containers {
				t.Errorf("w1 became %+v, of %s", is, now.URI)
			}
			for _, n := range l.Cluster.Members() {
				if is, was := now.Cluster.OptionsOf(nodeOf(t, now, n.Name)), l.Cluster.OptionsOf(n); !reflect.DeepEqual(is, was) {
					t.Errorf("%s has the options %+v, and had %+v", n.Name, is, was)
				}
			}
			if is, was := now.Cluster.Kubernetes, l.Cluster.Kubernetes; !reflect.DeepEqual(is, was) {
				t.Errorf("Kubernetes became %+v, from %+v", is, was)
			}
		})
	}
}

// Which nodes leave, and in which order, and what up says of what it does not do.
func TestWhatLeaves(t *testing.T) {
	l := madeOf(t, comparedFrom)
	now := edited(t, l, func(c *config.Cluster) {
		c.Nodes = append(c.Nodes, config.Node{Name: "w9", Role: config.Worker, IP: netip.MustParseAddr("10.30.0.99")})
		drop("cp1", "w1")(c)
	})
	if got := strings.Join(config.Names(now.Leaving()), " "); got != "w1 cp1" {
		t.Errorf("%s leave", got)
	}
	var changed *ChangedError
	if err := now.CheckDescribed(false); !errors.As(err, &changed) || len(changed.Differences) != 2 {
		t.Errorf("without consent: %v", err)
	}
	if err := now.CheckDescribed(true); err != nil {
		t.Errorf("with consent: %v", err)
	}
	now = edited(t, now, func(c *config.Cluster) {
		c.Kubernetes.Version, c.Nodes[0].IP = "v1.36.2", netip.MustParseAddr("10.30.0.19")
	})
	err := now.CheckDescribed(true)
	want := `cluster.yaml differs from what lab "lab" was made with, so nothing was changed:
  kubernetes.version: made with v1.37.2, now v1.36.2; up does not change the version of a cluster; to apply it: labctl upgrade, to a version that is at most one minor version newer; or labctl down, then labctl up
  nodes[cp1]: made with control-plane 10.30.0.11, no longer in the file; no control plane that the lab has would be left; to apply it: first labctl up with another control plane beside it; or labctl down, then labctl up
  nodes[cp2].ip: made with 10.30.0.12, now 10.30.0.19; no control plane that the lab has would be left; to apply it: first labctl up with another control plane beside it; or labctl down, then labctl up
next: put back what was there, or apply it as each line says; labctl --lab lab up starts the lab as it was made`
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if got := now.Leaving(); len(got) != 1 {
		t.Errorf("%v leave", got)
	}
}
