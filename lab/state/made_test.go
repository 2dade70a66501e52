package state

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
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

func madeLab(t *testing.T) Lab { return madeOf(t, madeFrom) }

// madeOf is a lab whose machines were made, and the cluster.yaml that it was made from.
func madeOf(t *testing.T, text string) Lab {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l := newLab(t, path)
	if _, err := l.ID(); err != nil {
		t.Fatal(err)
	}
	if err := l.Settle(l.Cluster.Members()...); err != nil {
		t.Fatal(err)
	}
	return l
}

// edited is a lab that exists, with another cluster.yaml.
func edited(t *testing.T, l Lab, edit func(*config.Cluster)) Lab {
	t.Helper()
	c := *l.Described
	c.Nodes = slices.Clone(c.Nodes)
	edit(&c)
	return read(t, &c)
}

// The node of another name that has a machine's address in the file is not taken for that machine.
func TestAddressOfAMachine(t *testing.T) {
	l := madeLab(t)
	now := edited(t, l, func(c *config.Cluster) { c.Nodes[1].Name = "w9" })
	if memberNames(now.Cluster) != "cp1, w1" || memberNames(now.After) != "cp1, w9" || len(now.Differences) != 2 {
		t.Errorf("got %s, then %s, %v", memberNames(now.Cluster), memberNames(now.After), now.Differences)
	}
}

// A node that waits may be described anew until it is admitted, and then its machine is made as the file says at that moment. What could not be
// read again is not written: it would lock the lab.
func TestSettleWhatWaits(t *testing.T) {
	l := madeLab(t)
	address := netip.MustParseAddr("10.30.0.32")
	now := edited(t, l, func(c *config.Cluster) { c.Nodes[2].IP = address })
	if err := now.Settle(); err != nil {
		t.Fatal(err)
	}
	if err := now.Admit("w2"); err != nil {
		t.Fatal(err)
	}
	now = read(t, now.Described)
	if n := nodeOf(t, now, "w2"); n.IP != address || n.Onboard || len(now.Differences) > 0 {
		t.Errorf("got %+v, %v", n, now.Differences)
	}
	l = madeLab(t)
	taken := edited(t, l, func(c *config.Cluster) {
		c.Nodes = slices.Delete(c.Nodes, 1, 2)
		c.Nodes[1].IP = netip.MustParseAddr("10.30.0.21") // w1's, which has a machine
	})
	if err := taken.Settle(); err == nil {
		t.Error("settled two nodes on one address")
	}
	if _, err := l.Made(); err != nil {
		t.Errorf("the lab is locked: %v", err)
	}
}

// A lab that an older labctl made has its URI in a file of its own.
func TestURIOfAnOlderLab(t *testing.T) {
	l := newLab(t, small)
	if err := l.Write("uri", []byte(host.VirtualMachines)); err != nil {
		t.Fatal(err)
	}
	if now := edited(t, l, func(*config.Cluster) {}); now.URI != host.VirtualMachines || now.Cluster.Image.Distribution != config.Bookworm {
		t.Errorf("got %s, %+v", now.URI, now.Cluster.Image)
	}
}

// Where the file leaves it open, a new lab has the default, and a lab that exists keeps its own.
func TestDistributionIsSettled(t *testing.T) {
	if l := madeLab(t); l.Cluster.Image.Distribution != config.DefaultDistribution || len(l.Differences) > 0 {
		t.Errorf("a new lab: %+v, %v", l.Cluster.Image, l.Differences)
	}
	for _, distribution := range []string{config.Bookworm, config.Trixie} {
		l := madeOf(t, madeFrom+"image: {distribution: "+distribution+"}\n")
		now := edited(t, l, func(c *config.Cluster) { c.Image.Distribution = "" })
		if now.Cluster.Image.Distribution != distribution || len(now.Differences) > 0 {
			t.Errorf("made with %s: %+v, %v", distribution, now.Cluster.Image, now.Differences)
		}
	}
}

// A lab that was made before there was image.distribution has Debian 12, and stays as it is.
func TestDistributionOfAnOlderLab(t *testing.T) {
	l := madeOf(t, madeFrom+"image: {distribution: trixie}\n")
	text, err := os.ReadFile(l.Path(MadeFile))
	if err != nil {
		t.Fatal(err)
	}
	older := strings.Replace(string(text), "    distribution: trixie\n", "", 1)
	if older == string(text) {
		t.Fatalf("the distribution is not written down:\n%s", text)
	}
	if err := l.Write(MadeFile, []byte(older)); err != nil {
		t.Fatal(err)
	}
	now := edited(t, l, func(c *config.Cluster) { c.Image.Distribution = "" })
	if now.Cluster.Image.Distribution != config.Bookworm || len(now.Differences) > 0 {
		t.Errorf("got %+v, %v", now.Cluster.Image, now.Differences)
	}
	asked := edited(t, l, func(c *config.Cluster) { c.Image.Distribution = config.Trixie })
	if err := asked.CheckDescribed(true); err == nil || !strings.Contains(err.Error(), "image.distribution: made with bookworm, now trixie; ") {
		t.Errorf("got %v", err)
	}
	if err := now.Settle(); err != nil {
		t.Fatal(err)
	}
	if again := read(t, now.Described); again.Cluster.Image.Distribution != config.Bookworm {
		t.Errorf("settled as %+v", again.Cluster.Image)
	}
}

// A lab of which nothing was made is what the file says.
func TestNothingIsSettledBefore(t *testing.T) {
	l := newLab(t, onboard)
	now := edited(t, l, func(c *config.Cluster) { c.Resources.Worker.Memory, c.Libvirt.URI = 3072, host.VirtualMachines })
	if len(now.Differences) > 0 || now.URI != host.VirtualMachines || now.Cluster.Resources.Worker.Memory != 3072 {
		t.Errorf("got %v, %s, %+v", now.Differences, now.URI, now.Cluster.Resources)
	}
}

// Settled once: a computer that can do more by now must not make strangers of the lab's machines.
func TestURIIsSettled(t *testing.T) {
	l := madeLab(t)
	l.URI = host.VirtualMachines
	if err := l.Settle(l.Cluster.Members()...); err != nil {
		t.Fatal(err)
	}
	now := edited(t, l, func(c *config.Cluster) { c.Libvirt.URI = "auto" })
	if now.URI != host.VirtualMachines || len(now.Differences) > 0 {
		t.Errorf("got %s, %v", now.URI, now.Differences)
	}
}

func TestSettleAndForget(t *testing.T) {
	l := madeLab(t)
	if err := l.Admit("w2"); err != nil {
		t.Fatal(err)
	}
	l = read(t, l.Described)
	if err := l.Settle(nodeOf(t, l, "w2")); err != nil {
		t.Fatal(err)
	}
	without := func(c *config.Cluster) { c.Nodes = slices.DeleteFunc(c.Nodes, hasName("w2")) }
	if now := edited(t, l, without); memberNames(now.Cluster) != "cp1, w1, w2" || len(now.Differences) != 1 {
		t.Errorf("an onboarded node that the file no longer has: %s, %v", memberNames(now.Cluster), now.Differences)
	}
	// With the file gone, the state describes the lab.
	path, err := MadeWith(l.Cluster.Name)
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if now := read(t, c); memberNames(now.Cluster) != "cp1, w2, w1" || len(now.Differences) > 0 {
		t.Errorf("by its own description: %s, %v", memberNames(now.Cluster), now.Differences)
	}
	if err := l.Forget("w2"); err != nil {
		t.Fatal(err)
	}
	if now := edited(t, l, without); memberNames(now.Cluster) != "cp1, w1" || len(now.Differences) > 0 {
		t.Errorf("after it was removed: %s, %v", memberNames(now.Cluster), now.Differences)
	}
}

// The size of workers is free again when the last of them was removed.
func TestSizeWithoutMachines(t *testing.T) {
	l := madeLab(t)
	if err := l.Forget("w1"); err != nil {
		t.Fatal(err)
	}
	now := edited(t, l, func(c *config.Cluster) { c.Resources.Worker.Memory = 3072 })
	if len(now.Differences) != 1 || now.Differences[0].Key != "nodes[w1]" || now.Cluster.Resources.Worker.Memory != 3072 {
		t.Errorf("got %v, %+v", now.Differences, now.Cluster.Resources)
	}
}

// What a lab was made with is its old size until all machines have the new one, also when a node is added meanwhile.
func TestResized(t *testing.T) {
	l := madeLab(t)
	now := edited(t, l, func(c *config.Cluster) { c.Resources.Worker.Memory = 3072 })
	for range 2 {
		if err := now.Settle(now.Cluster.Members()...); err != nil {
			t.Fatal(err)
		}
		now = read(t, now.Described)
		if n := now.Resizing(); len(now.Differences) != 1 || len(n) != 1 || n[0].Name != "w1" || now.Cluster.Resources.Worker.Memory != 3072 {
			t.Errorf("got %v, %v, %+v", now.Differences, n, now.Cluster.Resources)
		}
	}
	if err := now.Resized(); err != nil {
		t.Fatal(err)
	}
	if now = read(t, now.Described); len(now.Differences) > 0 || len(now.Resizing()) > 0 {
		t.Errorf("then %v, %v", now.Differences, now.Resizing())
	}
}

// What a lab was made with is its old options until all nodes have the new ones. After an interruption, putting the old ones back is a change.
func TestReconfigured(t *testing.T) {
	l := madeOf(t, comparedFrom)
	edit := func(c *config.Cluster) {
		c.Kubernetes.Kubeadm.Kubelet, c.Resources.Worker.Labels = config.Fragment{"maxPods": 32}, map[string]string{"rack": "b"}
		setTaints("w1", "a:NoExecute")(c)
	}
	now := edited(t, l, edit)
	if err := now.Settle(now.Cluster.Members()...); err != nil {
		t.Fatal(err)
	}
	now = read(t, now.Described)
	if len(now.Differences) != 3 || !now.Reconfigures() || len(now.Cluster.OptionsOf(nodeOf(t, now, "w1")).Taints) > 0 {
		t.Errorf("got %v", now.Differences)
	}
	c := now.Reconfigured()
	w1, _ := c.Node("w1")
	if o := c.OptionsOf(w1); o.Labels["rack"] != "a" || len(o.Taints) != 1 || c.Kubernetes.Kubeadm.Kubelet["maxPods"] != 32 {
		t.Errorf("up leaves %+v, %+v", o, c.Kubernetes)
	}
	failure := errors.New("interrupted")
	for range 2 {
		if err := now.Reconfigure(func([]*config.Cluster) error { return failure }); !errors.Is(err, failure) {
			t.Error(err)
		}
	}
	if back := read(t, l.Described); len(back.Differences) > 0 || !back.Reconfigures() {
		t.Errorf("with the old options: %v, reconfigures: %v", back.Differences, back.Reconfigures())
	}
	var pods []any // that kubelet was to have, in what was made and in each attempt
	err := now.Reconfigure(func(was []*config.Cluster) error {
		for _, c := range was {
			pods = append(pods, c.Kubernetes.Kubeadm.Kubelet["maxPods"])
		}
		return nil
	})
	if err != nil || !reflect.DeepEqual(pods, []any{64, 32, 32}) {
		t.Fatalf("%v, was %v", err, pods)
	}
	if now = read(t, now.Described); len(now.Differences) > 0 || now.Reconfigures() {
		t.Errorf("then %v", now.Differences)
	}
}

// Addresses that were chosen stay the lab's, whatever would be chosen now, and a new node gets one beside them.
func TestChosenAddressesStay(t *testing.T) {
	l := madeLab(t)
	moved := *l.Cluster
	moved.Network.CIDR, moved.Network.VirtualIP = netip.MustParsePrefix("10.37.0.0/24"), netip.MustParseAddr("10.37.0.10")
	moved.Network.LoadBalancer = config.PoolOf(moved.Network.CIDR)
	moved.Nodes = []config.Node{
		{Name: "cp1", Role: config.ControlPlane, IP: netip.MustParseAddr("10.37.0.11")},
		{Name: "w1", Role: config.Worker, IP: netip.MustParseAddr("10.37.0.21")},
	}
	if err := l.writeMade(&moved); err != nil {
		t.Fatal(err)
	}
	file := "name: " + l.Cluster.Name + `
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
	now := read(t, c)
	if d := now.Differences; len(d) != 1 || d[0].Key != "nodes[w0]" || d[0].Now != "worker" {
		t.Errorf("got %v", d)
	}
	var got []string
	for _, n := range now.Cluster.Nodes {
		got = append(got, n.Name+"="+n.IP.String())
	}
	if want := []string{"w0=10.37.0.22", "cp1=10.37.0.11", "w1=10.37.0.21"}; !slices.Equal(got, want) || now.Cluster.Network.VirtualIP != moved.Network.VirtualIP {
		t.Errorf("got %q, want %q; virtual IP %s", got, want, now.Cluster.Network.VirtualIP)
	}
}
