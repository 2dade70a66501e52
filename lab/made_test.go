package lab

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/bringup"
	"k8slab/lab/host"
	"k8slab/lab/labtest"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// madeFrom describes a lab of containers.
const madeFrom = `libvirt: {uri: "lxc:///system"}
nodes:
  - {name: cp1, role: control-plane, ip: 10.30.0.11}
  - {name: w1, role: worker, ip: 10.30.0.21}
  - {name: w2, role: worker, ip: 10.30.0.22, onboard: true}
`

// madeLab is a lab whose machines were made, and the cluster.yaml that it was made from.
func madeLab(t *testing.T) *Lab {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(path, []byte(madeFrom), 0o600); err != nil {
		t.Fatal(err)
	}
	labtest.Own(t)
	c, _, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	l := newOf(t, c)
	if _, err := l.found.ID(); err != nil {
		t.Fatal(err)
	}
	if err := l.found.Settle(l.found.Cluster.Members()...); err != nil {
		t.Fatal(err)
	}
	return l
}

// edited is a lab that exists, with another cluster.yaml.
func edited(t *testing.T, l *Lab, edit func(*config.Cluster)) *Lab {
	t.Helper()
	c := *l.described
	c.Nodes = slices.Clone(c.Nodes)
	edit(&c)
	return newOf(t, &c)
}

func TestDifferences(t *testing.T) {
	drop := func(c *config.Cluster, name string) {
		c.Nodes = slices.DeleteFunc(c.Nodes, func(n config.Node) bool { return n.Name == name })
	}
	set := func(c *config.Cluster, name string, change func(*config.Node)) {
		change(&c.Nodes[slices.IndexFunc(c.Nodes, func(n config.Node) bool { return n.Name == name })])
	}
	tests := []struct {
		name string
		edit func(*config.Cluster)
		want string // key: made with, now
	}{
		{"nothing", func(*config.Cluster) {}, ""},
		{"tuning", func(c *config.Cluster) { c.Tuning.CPJoinRetryAttempts = 3 }, ""},
		{"add-ons", func(c *config.Cluster) { c.Addons = []string{"prometheus"} }, ""},
		{"a new worker", func(c *config.Cluster) {
			c.Nodes = append(c.Nodes, config.Node{Name: "w9", Role: config.Worker, IP: netip.MustParseAddr("10.30.0.99")})
		}, ""},
		{"a node that is onboarded no more joins", func(c *config.Cluster) { set(c, "w2", func(n *config.Node) { n.Onboard = false }) }, ""},
		{"a node that was to be onboarded is gone", func(c *config.Cluster) { drop(c, "w2") }, ""},
		{"libvirt chosen again", func(c *config.Cluster) { c.Libvirt.URI = "auto" }, ""},
		{"virtual machines", func(c *config.Cluster) { c.Libvirt.URI = host.VirtualMachines }, "libvirt.uri: lxc:///system, qemu:///system"},
		{"version", func(c *config.Cluster) { c.Kubernetes.Version = "v1.36.2" }, "kubernetes.version: v1.36.3, v1.36.2"},
		{"source", func(c *config.Cluster) { c.Kubernetes.Source = "/releases" }, "kubernetes.source: modules, /releases"},
		{"image", func(c *config.Cluster) { c.Image.Base = "/debian.qcow2" }, "image.base: , /debian.qcow2"},
		{"machines' network", func(c *config.Cluster) { c.Network.CIDR = netip.MustParsePrefix("10.31.0.0/24") },
			"network.cidr: 10.30.0.0/24, 10.31.0.0/24"},
		{"virtual address", func(c *config.Cluster) { c.Network.VirtualIP = netip.MustParseAddr("10.30.0.9") },
			"network.virtual_ip: 10.30.0.10, 10.30.0.9"},
		{"pods", func(c *config.Cluster) { c.Network.PodSubnet = netip.MustParsePrefix("10.245.0.0/16") },
			"network.pod_subnet: 10.244.0.0/16, 10.245.0.0/16"},
		{"Services", func(c *config.Cluster) { c.Network.ServiceSubnet = netip.MustParsePrefix("10.97.0.0/16") },
			"network.service_subnet: 10.96.0.0/16, 10.97.0.0/16"},
		{"memory", func(c *config.Cluster) { c.Resources.Worker.Memory = 3072 }, "resources.worker.memory: 2048, 3072"},
		{"sizes of control planes", func(c *config.Cluster) { c.Resources.ControlPlane = config.Resource{CPUs: 3, Memory: 4096, Disk: 30} },
			"resources.control_plane.cpus: 2, 3; resources.control_plane.disk: 20, 30"},
		{"address", func(c *config.Cluster) {
			set(c, "w1", func(n *config.Node) { n.IP = netip.MustParseAddr("10.30.0.29") })
		},
			"nodes[w1].ip: 10.30.0.21, 10.30.0.29"},
		{"role", func(c *config.Cluster) { set(c, "w1", func(n *config.Node) { n.Role = config.ControlPlane }) },
			"nodes[w1].role: worker, control-plane"},
		{"a member that is to be onboarded", func(c *config.Cluster) { set(c, "w1", func(n *config.Node) { n.Onboard = true }) },
			"nodes[w1].onboard: false, true"},
		{"a node is gone", func(c *config.Cluster) { drop(c, "w1") }, "nodes[w1]: worker 10.30.0.21, "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := madeLab(t)
			now := edited(t, l, tt.edit)
			var got []string
			for _, d := range now.Closed().Differences {
				got = append(got, d.Key+": "+d.Made+", "+d.Now)
				if d.Takes == "" {
					t.Errorf("%s: how is it applied?", d.Key)
				}
			}
			if text := strings.Join(got, "; "); text != tt.want {
				t.Errorf("got %q, want %q", text, tt.want)
			}
			if tt.want == "" {
				return
			}
			// What is there keeps the upper hand, and up refuses before it touches anything.
			if now.found.URI != host.Containers || memberNames(now.found.Cluster) != "cp1, w1" || now.found.Cluster.Resources != l.found.Cluster.Resources {
				t.Errorf("the lab became %s with %s, %+v", now.found.URI, memberNames(now.found.Cluster), now.found.Cluster.Resources)
			}
			if n := labtest.Node(t, now.found, "w1"); n != labtest.Node(t, l.found, "w1") {
				t.Errorf("w1 became %+v", n)
			}
			var changed *state.ChangedError
			if err := now.Up(t.Context(), bringup.StageProof); !errors.As(err, &changed) || len(now.Changes()) > 0 {
				t.Errorf("up: %v, changed %q", err, now.Changes())
			}
		})
	}
}

// Without its daemon a lab that the computer's libvirtd has is not taken for one that is not there, nor made a second time.
func TestDaemonIsSettled(t *testing.T) {
	l := madeLab(t)
	if _, err := session.Connect(l.found); err == nil || errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "systemctl start") {
		t.Errorf("got %v", err)
	}
	if err := l.Down(t.Context(), false); err == nil || !l.found.Exists() {
		t.Errorf("down: %v; the state is needed to remove the machines", err)
	}
	if err := os.MkdirAll(l.found.Path("libvirt"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := session.Connect(l.found); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("with a daemon of its own that ended: %v", err)
	}
	// Killed in the middle, down goes on: of its daemon the directory is left until nothing else is.
	if err := l.Down(t.Context(), false); err != nil {
		t.Errorf("down: %v", err)
	}
	if _, err := os.Stat(l.found.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left", l.found.Path())
	}
}
