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
	"k8slab/lab/host"
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
	l := newLab(t, path)
	if _, err := l.state.id(); err != nil {
		t.Fatal(err)
	}
	if err := l.settle(l.cluster.Members()...); err != nil {
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
	again, err := New(&c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func TestDifferences(t *testing.T) {
	drop := func(c *config.Cluster, name string) { c.Nodes = slices.DeleteFunc(c.Nodes, hasName(name)) }
	set := func(c *config.Cluster, name string, change func(*config.Node)) {
		change(&c.Nodes[slices.IndexFunc(c.Nodes, hasName(name))])
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
			for _, d := range now.Differences() {
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
			if now.uri != host.Containers || memberNames(now.cluster) != "cp1, w1" || now.cluster.Resources != l.cluster.Resources {
				t.Errorf("the lab became %s with %s, %+v", now.uri, memberNames(now.cluster), now.cluster.Resources)
			}
			if n := nodeOf(t, now, "w1"); n != nodeOf(t, l, "w1") {
				t.Errorf("w1 became %+v", n)
			}
			var changed *ChangedError
			if err := now.Up(t.Context(), StageProof); !errors.As(err, &changed) || len(now.Changes()) > 0 {
				t.Errorf("up: %v, changed %q", err, now.Changes())
			}
		})
	}
}

// The node of another name that has a machine's address in the file is not taken for that machine.
func TestAddressOfAMachine(t *testing.T) {
	l := madeLab(t)
	now := edited(t, l, func(c *config.Cluster) { c.Nodes[1].Name = "w9" })
	if memberNames(now.cluster) != "cp1, w1" || len(now.Differences()) != 1 {
		t.Errorf("got %s, %v", memberNames(now.cluster), now.Differences())
	}
}

// The only control plane cannot be reset: a new lab is the way.
func TestDifferenceOfTheOnlyControlPlane(t *testing.T) {
	l := madeLab(t)
	now := edited(t, l, func(c *config.Cluster) { c.Nodes[0].IP = netip.MustParseAddr("10.30.0.12") })
	if d := now.Differences(); len(d) != 1 || d[0].Takes != takesNewLab {
		t.Errorf("got %v", d)
	}
}

// A node that waits may be described anew until it is admitted, and then its machine is made as the file says at that moment. What could not be
// read again is not written: it would lock the lab.
func TestSettleWhatWaits(t *testing.T) {
	l := madeLab(t)
	address := netip.MustParseAddr("10.30.0.32")
	now := edited(t, l, func(c *config.Cluster) { c.Nodes[2].IP = address })
	if err := now.settle(); err != nil {
		t.Fatal(err)
	}
	if err := now.Admit("w2"); err != nil {
		t.Fatal(err)
	}
	if n := nodeOf(t, now, "w2"); n.IP != address || n.Onboard || len(now.Differences()) > 0 {
		t.Errorf("got %+v, %v", n, now.Differences())
	}
	l = madeLab(t)
	taken := edited(t, l, func(c *config.Cluster) {
		c.Nodes = slices.Delete(c.Nodes, 1, 2)
		c.Nodes[1].IP = netip.MustParseAddr("10.30.0.21") // w1's, which has a machine
	})
	if err := taken.settle(); err == nil {
		t.Error("settled two nodes on one address")
	}
	if _, err := l.state.made(); err != nil {
		t.Errorf("the lab is locked: %v", err)
	}
}

// A lab that an older labctl made has its URI in a file of its own.
func TestURIOfAnOlderLab(t *testing.T) {
	l := newLab(t, small)
	if err := l.state.write("uri", []byte(host.VirtualMachines)); err != nil {
		t.Fatal(err)
	}
	if now := edited(t, l, func(*config.Cluster) {}); now.uri != host.VirtualMachines {
		t.Errorf("got %s", now.uri)
	}
}

// A lab of which nothing was made is what the file says.
func TestNothingIsSettledBefore(t *testing.T) {
	l := newLab(t, onboard)
	now := edited(t, l, func(c *config.Cluster) { c.Resources.Worker.Memory, c.Libvirt.URI = 3072, host.VirtualMachines })
	if len(now.Differences()) > 0 || now.uri != host.VirtualMachines || now.cluster.Resources.Worker.Memory != 3072 {
		t.Errorf("got %v, %s, %+v", now.Differences(), now.uri, now.cluster.Resources)
	}
}

// Settled once: a computer that can do more by now must not make strangers of the lab's machines.
func TestURIIsSettled(t *testing.T) {
	l := madeLab(t)
	l.uri = host.VirtualMachines
	if err := l.settle(l.cluster.Members()...); err != nil {
		t.Fatal(err)
	}
	now := edited(t, l, func(c *config.Cluster) { c.Libvirt.URI = "auto" })
	if now.uri != host.VirtualMachines || len(now.Differences()) > 0 {
		t.Errorf("got %s, %v", now.uri, now.Differences())
	}
}

func TestSettleAndForget(t *testing.T) {
	l := madeLab(t)
	if err := l.Admit("w2"); err != nil {
		t.Fatal(err)
	}
	if err := l.settle(nodeOf(t, l, "w2")); err != nil {
		t.Fatal(err)
	}
	without := func(c *config.Cluster) { c.Nodes = slices.DeleteFunc(c.Nodes, hasName("w2")) }
	if now := edited(t, l, without); memberNames(now.cluster) != "cp1, w1, w2" || len(now.Differences()) != 1 {
		t.Errorf("an onboarded node that the file no longer has: %s, %v", memberNames(now.cluster), now.Differences())
	}
	// With the file gone, the state describes the lab.
	path, err := MadeWith(l.cluster.Name)
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if now, differences, err := AsMade(c); err != nil || memberNames(now) != "cp1, w2, w1" || len(differences) > 0 {
		t.Errorf("by its own description: %s, %v, %v", memberNames(now), differences, err)
	}
	if err := l.forget("w2"); err != nil {
		t.Fatal(err)
	}
	if now := edited(t, l, without); memberNames(now.cluster) != "cp1, w1" || len(now.Differences()) > 0 {
		t.Errorf("after it was removed: %s, %v", memberNames(now.cluster), now.Differences())
	}
}

// The size of workers is free again when the last of them was removed.
func TestSizeWithoutMachines(t *testing.T) {
	l := madeLab(t)
	if err := l.forget("w1"); err != nil {
		t.Fatal(err)
	}
	now := edited(t, l, func(c *config.Cluster) { c.Resources.Worker.Memory = 3072 })
	if len(now.Differences()) > 0 || now.cluster.Resources.Worker.Memory != 3072 {
		t.Errorf("got %v, %+v", now.Differences(), now.cluster.Resources)
	}
}

// Without its daemon a lab that the computer's libvirtd has is not taken for one that is not there, nor made a second time.
func TestDaemonIsSettled(t *testing.T) {
	l := madeLab(t)
	if _, err := l.connect(); err == nil || errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "systemctl start") {
		t.Errorf("got %v", err)
	}
	if err := l.Down(t.Context(), false); err == nil || !l.state.exists() {
		t.Errorf("down: %v; the state is needed to remove the machines", err)
	}
	if err := os.MkdirAll(l.state.path("libvirt"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := l.connect(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("with a daemon of its own that ended: %v", err)
	}
	// Killed in the middle, down goes on: of its daemon the directory is left until nothing else is.
	if err := l.Down(t.Context(), false); err != nil {
		t.Errorf("down: %v", err)
	}
	if _, err := os.Stat(l.state.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left", l.state.dir)
	}
}

// Containers get a network namespace of their own, whatever daemon answers on this computer.
func TestContainersHaveADaemonOfTheirOwn(t *testing.T) {
	l := &Lab{uri: host.Containers, state: state{dir: t.TempDir()}}
	if !l.ownDaemon() {
		t.Error("a new lab of containers would take the computer's")
	}
	if err := l.state.write(madeFile, nil); err != nil {
		t.Fatal(err)
	}
	if l.ownDaemon() {
		t.Error("one that the computer's daemon has would move")
	}
}

// Addresses that were chosen stay the lab's, whatever would be chosen now, and a new node gets one beside them.
func TestChosenAddressesStay(t *testing.T) {
	l := madeLab(t)
	moved := *l.cluster
	moved.Network.CIDR, moved.Network.VirtualIP = netip.MustParsePrefix("10.37.0.0/24"), netip.MustParseAddr("10.37.0.10")
	moved.Nodes = []config.Node{
		{Name: "cp1", Role: config.ControlPlane, IP: netip.MustParseAddr("10.37.0.11")},
		{Name: "w1", Role: config.Worker, IP: netip.MustParseAddr("10.37.0.21")},
	}
	if err := l.writeMade(&moved); err != nil {
		t.Fatal(err)
	}
	file := "name: " + l.Name() + `
libvirt: {uri: "lxc:///system"}
nodes:
  - {name: w0, role: worker}
  - {name: cp1, role: control-plane}
  - {name: w1, role: worker}
`
	c, _, err := config.Parse("f", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	now, differences, err := AsMade(c)
	if err != nil || len(differences) > 0 {
		t.Errorf("%v, %v", differences, err)
	}
	var got []string
	for _, n := range now.Nodes {
		got = append(got, n.Name+"="+n.IP.String())
	}
	if want := []string{"w0=10.37.0.22", "cp1=10.37.0.11", "w1=10.37.0.21"}; !slices.Equal(got, want) || now.Network.VirtualIP != moved.Network.VirtualIP {
		t.Errorf("got %q, want %q; virtual IP %s", got, want, now.Network.VirtualIP)
	}
}
