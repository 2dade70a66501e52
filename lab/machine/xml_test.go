package machine

import (
	"encoding/xml"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8slab/lab/golden"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

const (
	labID = "6f1d0f5c-2f4e-4c53-9a55-0d6f3c1e2b7a"
	// hostile is what no name may be, and what must not change the meaning of the XML if one ever is.
	hostile = `a<b&"c`
)

func hostileSpec() Spec {
	return Spec{
		Node: hostile, MachineID: "0123456789abcdef0123456789abcdef", CPUs: 2, Memory: 4096, Disk: 20, Seed: "/state/seeds/" + hostile,
		Boot: Boot{
			Root: "/cache/" + hostile + "/root", Base: "/cache/" + hostile + "/root.qcow2", Kernel: "/cache/" + hostile + "/vmlinuz",
			Initrd: "/cache/" + hostile + "/initrd.img", Cmdline: "root=/dev/vda quiet=" + hostile,
		},
	}
}

var hostileFiles = files{disk: "/pool/" + hostile + ".qcow2", seed: "/pool/" + hostile + ".seed", console: "/pool/" + hostile + ".console"}

func TestDomainXML(t *testing.T) {
	tests := []struct {
		name   string
		cfg    Config
		golden string
	}{
		{"container", Config{URI: "lxc:///system", Partition: "/k8slab-lab"}, "container.xml"},
		{"container of a daemon with partitions of its own", Config{URI: "lxc:///system"}, "container-default.xml"},
		{"emulated", Config{URI: "qemu:///system"}, "emulated.xml"},
		{"kvm, by the computer's daemon", Config{URI: "qemu:///system", KVM: true}, "kvm.xml"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Lab, tt.cfg.ID, tt.cfg.Dir = "lab", labID, "/state/"+hostile
			text, err := Open(tt.cfg).domainXML(hostileSpec(), hostileFiles)
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, tt.golden, text)
			var dom libvirtxml.Domain
			if err := dom.Unmarshal(text); err != nil {
				t.Fatal(err)
			}
			if want := "lab-" + hostile; dom.Name != want {
				t.Errorf("name read back: %q, want %q", dom.Name, want)
			}
			var note mark
			if err := xml.Unmarshal([]byte(dom.Metadata.XML), &note); err != nil {
				t.Fatal(err)
			}
			if note.Lab != "lab" || note.ID != labID || note.Node != hostile {
				t.Errorf("mark read back: %+v", note)
			}
		})
	}
}

// The firmware boots a stock image's own disk, with the boot loader and the kernel command line that are on it.
func TestStockDomainXML(t *testing.T) {
	spec := hostileSpec()
	spec.Boot = Boot{Base: "/images/" + hostile + ".qcow2"}
	text, err := Open(Config{URI: "qemu:///system", KVM: true, Lab: "lab", ID: labID, Dir: "/state/" + hostile}).domainXML(spec, hostileFiles)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "stock.xml", text)
}

// Empty disks come after the others, and the node sees them by the same names whatever the machine is.
func TestExtraDisks(t *testing.T) {
	spec := hostileSpec()
	spec.Disks = []int{1, 2}
	own := hostileFiles
	own.extra = []string{"/pool/" + hostile + ".disk0.qcow2", "/pool/" + hostile + ".disk1.qcow2"}
	for uri, want := range map[string][]string{
		"lxc:///system": {"loop raw /s/" + hostile + "/disk0.img vdc", "loop raw /s/" + hostile + "/disk1.img vdd"},
		"qemu:///system": {
			"qemu qcow2 " + hostileFiles.disk + " vda", "qemu raw " + hostileFiles.seed + " vdb", "qemu qcow2 " + own.extra[0] + " vdc", "qemu qcow2 " + own.extra[1] + " vdd",
		},
	} {
		text, err := Open(Config{URI: uri, Lab: "lab", ID: labID, Dir: "/s"}).domainXML(spec, own)
		if err != nil {
			t.Fatal(err)
		}
		var dom libvirtxml.Domain
		if err := dom.Unmarshal(text); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range dom.Devices.Disks {
			got = append(got, strings.Join([]string{d.Driver.Name, d.Driver.Type, d.Source.File.File, d.Target.Dev}, " "))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", uri, got)
		}
	}
}

func TestNetworkXML(t *testing.T) {
	l := Open(Config{URI: "lxc:///system", Lab: "lab", ID: labID})
	text, err := l.networkXML(Network{
		CIDR: netip.MustParsePrefix("10.30.0.0/22"), Gateway: netip.MustParseAddr("10.30.0.1"),
		Hosts: []Host{{"cp1", netip.MustParseAddr("10.30.0.11")}, {hostile, netip.MustParseAddr("10.30.3.21")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "network.xml", text)
	var net libvirtxml.Network
	if err := net.Unmarshal(text); err != nil {
		t.Fatal(err)
	}
	if got := net.IPs[0].DHCP.Hosts[1].Name; got != hostile {
		t.Errorf("host read back: %q", got)
	}
	// The lab's network leads nowhere: what is in it reaches no other network.
	if net.Forward != nil {
		t.Errorf("forward: %+v", net.Forward)
	}
}

func TestMAC(t *testing.T) {
	// Fixed for ever: a running lab's addresses must not change with a new labctl.
	if got, want := MAC(labID, "cp1"), "52:54:00:6c:4a:13"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	seen := map[string]string{}
	for _, lab := range []string{labID, "other"} {
		for _, node := range []string{"cp1", "cp2", "cp3", "w1", "w2", ""} {
			mac := MAC(lab, node)
			if other := seen[mac]; other != "" {
				t.Errorf("%s/%s has the address of %s", lab, node, other)
			}
			seen[mac] = lab + "/" + node
			if !strings.HasPrefix(mac, "52:54:00:") || len(mac) != 17 {
				t.Errorf("%s is no address in QEMU's range", mac)
			}
		}
	}
}

func TestBridgeName(t *testing.T) {
	names := map[string]bool{}
	for _, id := range []string{labID, "", strings.Repeat("x", 100)} {
		name := Open(Config{Lab: strings.Repeat("long", 5), ID: id}).BridgeName()
		if len(name) > 15 || !strings.HasPrefix(name, "k8slab") {
			t.Errorf("%q: Linux takes 15 characters, it has %d", name, len(name))
		}
		names[name] = true
	}
	if len(names) != 3 {
		t.Errorf("labs share a bridge: %v", names)
	}
}

func TestUUIDString(t *testing.T) {
	u := libvirt.UUID{0x6f, 0x1d, 0x0f, 0x5c, 0x2f, 0x4e, 0x4c, 0x53, 0x9a, 0x55, 0x0d, 0x6f, 0x3c, 0x1e, 0x2b, 0x7a}
	if got := uuidString(u); got != labID {
		t.Errorf("got %s, want %s", got, labID)
	}
	if got := uuidString(libvirt.UUID{}); got != "00000000-0000-0000-0000-000000000000" {
		t.Errorf("zero: %s", got)
	}
}

func TestForeignError(t *testing.T) {
	tests := []struct{ name, owner, want string }{
		{"unmarked", "", "carries no mark"},
		{"another lab's", "other", `another lab called "other"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := (&ForeignError{Kind: "domain", Name: "lab-cp1", Owner: tt.owner}).Error()
			for _, want := range []string{tt.want, `domain "lab-cp1"`, "nothing was changed"} {
				if !strings.Contains(text, want) {
					t.Errorf("%q lacks %q", text, want)
				}
			}
		})
	}
}

func TestRemoveCgroup(t *testing.T) {
	root := filepath.Join(t.TempDir(), "k8slab-lab.partition")
	if err := os.MkdirAll(filepath.Join(root, "a.libvirt-lxc", "kubepods.slice", "pod"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "b.libvirt-lxc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := removeCgroup(root); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(root); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	// A cgroup that still has processes refuses; here a file stands for them.
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "busy"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := removeCgroup(root); err == nil {
		t.Error("a busy one is no error")
	}
}
