package provision

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8slab/lab/host"
	"k8slab/lab/image"
	"k8slab/lab/labtest"
	"k8slab/lab/machine"
	"k8slab/lab/session"
)

func TestVagrant(t *testing.T) {
	l := labtest.Closed(t, labtest.Small)
	l.URI = host.Containers
	if _, err := DescribeVagrant(l); err == nil || !strings.Contains(err.Error(), "libvirt.uri: qemu:///system") {
		t.Errorf("of containers: %v", err)
	}
	l.URI = host.VirtualMachines
	l.Cluster.Image.Base = "/srv/images/debian.qcow2"
	if _, err := DescribeVagrant(l); err == nil || !strings.Contains(err.Error(), "remove image.base") {
		t.Errorf("of a stock image: %v", err)
	}
	l.Cluster.Image.Base = ""
	if _, err := DescribeVagrant(l); err == nil || !strings.Contains(err.Error(), "make box") {
		t.Errorf("without a box: %v", err)
	}
	box := image.Box{Name: "k8slab/0123", Version: "1.36.3", URL: "file:///cache/box-1/catalog.json"}
	if err := writeVagrantBox(l, vagrantBox{Box: box, Boot: machine.Boot{Kernel: "/cache/disk-1/vmlinuz"}, Pool: "/pool"}); err != nil {
		t.Fatal(err)
	}
	v, err := DescribeVagrant(l)
	if err != nil {
		t.Fatal(err)
	}
	id, err := l.ID()
	if err != nil {
		t.Fatal(err)
	}
	members := l.Cluster.Members()
	if v.Box != box || v.Network != l.Cluster.Name || v.Pool != l.Cluster.Libvirt.Pool || len(v.Machines) != len(members) {
		t.Fatalf("got %+v", v)
	}
	for i, n := range members {
		m, r := v.Machines[i], l.Cluster.Resource(n.Role)
		if m.Name != n.Name || m.Domain != l.Cluster.Name+"-"+n.Name || m.CPUs != r.CPUs || m.Memory != r.Memory || m.Disk != r.Disk ||
			m.MAC != machine.MAC(id, n.Name) || m.Kernel != "/cache/disk-1/vmlinuz" || filepath.Dir(m.Console) != "/pool" {
			t.Errorf("%s: %+v", n.Name, m)
		}
	}
	info, err := os.Stat(v.Key)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key: %v, %v", info, err)
	}
}

// What vagrant made is recognised by its description alone, so its address must come from the network's leases.
func TestLeasedSeed(t *testing.T) {
	s := labtest.Session(t, labtest.Small)
	files, err := seedFiles(s, s.Cluster.Members()[0], leasedAddress)
	text := files["etc/systemd/network/10-lab.network"].text
	if err != nil || strings.Contains(text, "Address=") || !strings.Contains(text, "DHCP=ipv4") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestNotOurs(t *testing.T) {
	own := machine.Machine{Node: "cp1"}
	if err := refuseVagrantMachines([]machine.Machine{own}); err != nil {
		t.Error(err)
	}
	err := refuseVagrantMachines([]machine.Machine{{Node: "w1", Maker: machine.Vagrant}, own, {Node: "cp2", Maker: machine.Vagrant}})
	if err == nil || !strings.Contains(err.Error(), "vagrant destroy cp2 w1") {
		t.Error(err)
	}
}

// Also when the daemon that could tell is gone, as after a restart of the computer.
func TestDownKeepsVagrantsDisks(t *testing.T) {
	l := labtest.Closed(t, labtest.Small)
	disk := filepath.Join(host.OwnFile(session.DaemonDir(l), session.PoolDir(l)), l.Cluster.Name+"-cp1.img")
	if err := os.MkdirAll(filepath.Dir(disk), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := refuseVagrantDisks(l, false); err != nil {
		t.Errorf("without one: %v", err)
	}
	if err := os.WriteFile(disk, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := refuseVagrantDisks(l, false); err == nil || !strings.Contains(err.Error(), "vagrant destroy cp1,") {
		t.Errorf("got %v", err)
	}
	if err := refuseVagrantDisks(l, true); err != nil {
		t.Errorf("--adopted: %v", err)
	}
}
