package config

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func load(t *testing.T, path string) *Cluster {
	t.Helper()
	c, warnings, err := Load(path)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("Load(%s): warnings %v, error %v", path, warnings, err)
	}
	return c
}

func names(nodes []Node) string {
	var list []string
	for _, n := range nodes {
		list = append(list, n.Name)
	}
	return strings.Join(list, " ")
}

func TestLoadThree(t *testing.T) {
	c := load(t, "testdata/three.yaml")
	if got, want := names(c.Members()), "cp1 cp2 cp3 w1 w2"; got != want {
		t.Errorf("members %q, want %q", got, want)
	}
	// It is cluster.yaml as committed, which shows the defaults: changing one must change the other.
	want := defaults()
	want.Network.CIDR, want.Network.Auto = netip.MustParsePrefix("10.30.0.0/24"), true
	want.Network.VirtualIP = netip.MustParseAddr("10.30.0.10")
	want.Network.LoadBalancer = netip.MustParsePrefix("10.30.0.240/28")
	want.Nodes = c.Nodes
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v, want the defaults %+v", c, want)
	}
}

func TestLoadSmall(t *testing.T) {
	c := load(t, "testdata/small.yaml")
	want := defaults()
	want.Name = "small"
	want.Network.CIDR = netip.MustParsePrefix("10.31.0.0/24")
	want.Network.VirtualIP = netip.MustParseAddr("10.31.0.10")
	want.Network.LoadBalancer = netip.MustParsePrefix("10.31.0.240/28")
	want.Nodes = []Node{
		{Name: "cp1", Role: ControlPlane, IP: netip.MustParseAddr("10.31.0.11")},
		{Name: "w1", Role: Worker, IP: netip.MustParseAddr("10.31.0.21")},
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v, want %+v", c, want)
	}
}

func TestLoadEveryKey(t *testing.T) {
	want := &Cluster{
		Name:     "onboard",
		Machines: MachinesLibvirt,
		Kubernetes: Kubernetes{Version: "v1.35.0", Source: "https://mirror.example/release",
			Release: Release{Server: "https://mirror.example/upstream", Images: "mirror.example/k8s"}},
		Image:   Image{Base: "/srv/images/debian.qcow2", Distribution: Bookworm},
		Libvirt: Libvirt{URI: "qemu:///system", Pool: "fast.disks-1"},
		Network: Network{
			CIDR:          netip.MustParsePrefix("10.32.0.0/22"),
			VirtualIP:     netip.MustParseAddr("10.32.3.254"),
			LoadBalancer:  netip.MustParsePrefix("10.32.2.0/26"),
			PodSubnet:     netip.MustParsePrefix("10.200.0.0/20"),
			ServiceSubnet: netip.MustParsePrefix("10.100.0.0/20"),
			CNI:           "flannel",
			Uplink:        UplinkNone,
		},
		Resources: Resources{ControlPlane: Resource{CPUs: 4, Memory: 1700, Disk: 5}, Worker: Resource{CPUs: 1, Memory: 1024, Disk: 6}},
		Nodes: []Node{
			{Name: "w1", Role: Worker, IP: netip.MustParseAddr("10.32.1.1")},
			{Name: "cp1", Role: ControlPlane, IP: netip.MustParseAddr("10.32.0.2")},
			{Name: "w2", Role: Worker, IP: netip.MustParseAddr("10.32.1.2"), Onboard: true},
			{Name: "cp2", Role: ControlPlane, IP: netip.MustParseAddr("10.32.0.3"), Onboard: true},
		},
		Addons: []string{"prometheus", "local-path"},
		Tuning: Tuning{11, 12, 13, 14, 15, 16, 17, 18, StaggerMachine},
		Onboarding: Onboarding{
			Git: Git{
				"https://git.example/fleet.git", "trunk", "infrastructure/storage/kustomization.yaml", "../NODE-config", "flux-system/fleet",
				"flux-system/infrastructure", "robot", "/etc/labctl/token", "/etc/labctl/key",
			},
			Timeouts: Timeouts{
				time.Minute, 2 * time.Minute, 3 * time.Minute, 4 * time.Minute, 5 * time.Minute, 6 * time.Minute, 7 * time.Minute, 8 * time.Minute, time.Hour,
			},
		},
	}
	if c := load(t, "testdata/onboard.yaml"); !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v, want %+v", c, want)
	}
}

func TestClusterLookups(t *testing.T) {
	c := load(t, "testdata/onboard.yaml")
	lists := []struct {
		name, want string
		got        []Node
	}{
		{"control planes", "cp1", c.ControlPlanes()},
		{"workers", "w1", c.Workers()},
		{"members", "cp1 w1", c.Members()},
	}
	for _, tt := range lists {
		if got := names(tt.got); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if n, ok := c.Node("cp2"); !ok || n.IP.String() != "10.32.0.3" {
		t.Errorf("Node(cp2) = %v, %v; want the onboard node", n, ok)
	}
	if n, ok := c.Node("cp9"); ok {
		t.Errorf("Node(cp9) = %v, want none", n)
	}
	if got := c.Resource(ControlPlane).Memory; got != 1700 {
		t.Errorf("control plane memory %d, want 1700", got)
	}
	if got := c.Resource(Worker).Memory; got != 1024 {
		t.Errorf("worker memory %d, want 1024", got)
	}
	if got, want := c.Network.Gateway(), netip.MustParseAddr("10.32.0.1"); got != want {
		t.Errorf("gateway %s, want %s", got, want)
	}
}

func TestLoadBroken(t *testing.T) {
	want, err := os.ReadFile("testdata/broken.golden")
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := Load("testdata/broken.yaml")
	if err == nil || c != nil {
		t.Fatalf("got cluster %v, error %v; want only an error", c, err)
	}
	if got := err.Error() + "\n"; got != string(want) {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := len(err.(Problems)); got != 10 {
		t.Errorf("%d problems, want 10", got)
	}
}

func TestLoadUnreadable(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, []byte(strings.Repeat("#", maxSize+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, path, want string }{
		{"missing", "none.yaml", "no none.yaml in this directory; run in the checkout, or pass -c FILE"},
		{"missing elsewhere", "none/none.yaml", "none/none.yaml: no such file; pass the path of a cluster.yaml with -c FILE"},
		{"directory", dir, dir + ": cannot be read: is a directory"},
		{"too large", large, large + ": the file is larger than 256 KiB; this is not a cluster.yaml"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Load(tt.path)
			if _, ok := err.(Problems); !ok || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	tests := []struct {
		name    string
		planes  int
		onboard int
		want    string
	}{
		{"one", 1, 0, ""},
		{"two", 2, 0, "f:1: nodes: 2 control planes are no safer than 1, because etcd needs a majority; use 1 or 3"},
		{"three", 3, 0, ""},
		{"three and one onboard", 3, 1, ""},
		{"eight", 8, 0, "f:1: nodes: 8 control planes are no safer than 7, because etcd needs a majority; use 7 or 9"},
		{"seven", 7, 0, ""},
		{"nine", 9, 0, "f:1: nodes: 9 control planes make every write to etcd slower; use at most 7"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var file strings.Builder
			file.WriteString("nodes:\n")
			for i := range tt.planes + tt.onboard {
				onboard := "false"
				if i >= tt.planes {
					onboard = "true"
				}
				digit := string(rune('0' + i))
				file.WriteString("- {name: cp" + digit + ", role: control-plane, ip: 10.30.0.2" + digit + ", onboard: " + onboard + "}\n")
			}
			_, warnings, err := Parse("f", []byte(file.String()))
			if err != nil {
				t.Fatal(err)
			}
			if got := Problems(warnings).Error(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// The page has every key, and its examples are accepted.
func TestDocument(t *testing.T) {
	page, err := os.ReadFile("../docs/cluster-yaml.md")
	if err != nil {
		t.Fatal(err)
	}
	for prefix, section := range map[string]any{
		"": Cluster{}, "kubernetes.": Kubernetes{}, "image.": Image{}, "libvirt.": Libvirt{}, "network.": Network{}, "ssh.": SSH{},
		"kubernetes.kubeadm.": Kubeadm{}, "nodes.": Node{}, "resources.worker.": Resource{},
	} {
		for _, key := range keysOf(reflect.TypeOf(section)) {
			if !strings.Contains(string(page), "`"+prefix+key) && !strings.Contains(string(page), "`"+key+"`") {
				t.Errorf("no %s%s", prefix, key)
			}
		}
	}
	examples := 0
	for block := range strings.SplitSeq(string(page), "\n\n") {
		if file, found := strings.CutPrefix(block, "    name: "); found {
			examples++
			if _, _, err := Parse("example", []byte("    name: "+file)); err != nil {
				t.Errorf("%v\n%s", err, block)
			}
		}
	}
	if examples != 3 {
		t.Errorf("%d examples, want 3", examples)
	}
}
