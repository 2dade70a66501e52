package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8slab/lab/host"
	"k8slab/lab/image"
	"k8slab/lab/machine"
)

func TestVagrant(t *testing.T) {
	l := newLab(t, small)
	l.uri = host.Containers
	if _, err := l.Vagrant(); err == nil || !strings.Contains(err.Error(), "libvirt.uri: qemu:///system") {
		t.Errorf("of containers: %v", err)
	}
	l.uri = host.VirtualMachines
	l.cluster.Image.Base = "/srv/images/debian.qcow2"
	if _, err := l.Vagrant(); err == nil || !strings.Contains(err.Error(), "remove image.base") {
		t.Errorf("of a stock image: %v", err)
	}
	l.cluster.Image.Base = ""
	if _, err := l.Vagrant(); err == nil || !strings.Contains(err.Error(), "make box") {
		t.Errorf("without a box: %v", err)
	}
	box := image.Box{Name: "k8slab/0123", Version: "1.36.3", URL: "file:///cache/box-1/catalog.json"}
	if err := l.writeVagrantBox(vagrantBox{Box: box, Boot: machine.Boot{Kernel: "/cache/disk-1/vmlinuz"}, Pool: "/pool"}); err != nil {
		t.Fatal(err)
	}
	v, err := l.Vagrant()
	if err != nil {
		t.Fatal(err)
	}
	members := l.cluster.Members()
	if v.Box != box || v.Network != l.cluster.Name || v.Pool != l.cluster.Libvirt.Pool || len(v.Machines) != len(members) {
		t.Fatalf("got %+v", v)
	}
	for i, n := range members {
		m, r := v.Machines[i], l.cluster.Resource(n.Role)
		if m.Name != n.Name || m.Domain != l.cluster.Name+"-"+n.Name || m.CPUs != r.CPUs || m.Memory != r.Memory || m.Disk != r.Disk ||
			m.MAC != machine.MAC(l.id, n.Name) || m.Kernel != "/cache/disk-1/vmlinuz" || filepath.Dir(m.Console) != "/pool" {
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
	l := newLab(t, small)
	files, err := l.seedFiles(l.cluster.Members()[0], leasedAddress)
	text := files["etc/systemd/network/10-lab.network"].text
	if err != nil || strings.Contains(text, "Address=") || !strings.Contains(text, "DHCP=ipv4") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestNotOurs(t *testing.T) {
	own := machine.Machine{Node: "cp1"}
	if err := notOurs([]machine.Machine{own}); err != nil {
		t.Error(err)
	}
	err := notOurs([]machine.Machine{{Node: "w1", Maker: machine.Vagrant}, own, {Node: "cp2", Maker: machine.Vagrant}})
	if err == nil || !strings.Contains(err.Error(), "vagrant destroy cp2 w1") {
		t.Error(err)
	}
}

// Also when the daemon that could tell is gone, as after a restart of the computer.
func TestDownKeepsVagrantsDisks(t *testing.T) {
	l := newLab(t, small)
	disk := filepath.Join(host.OwnFile(l.state.path("libvirt"), l.poolDir()), l.cluster.Name+"-cp1.img")
	if err := os.MkdirAll(filepath.Dir(disk), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.noVagrantDisks(false); err != nil {
		t.Errorf("without one: %v", err)
	}
	if err := os.WriteFile(disk, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.noVagrantDisks(false); err == nil || !strings.Contains(err.Error(), "vagrant destroy cp1,") {
		t.Errorf("got %v", err)
	}
	if err := l.noVagrantDisks(true); err != nil {
		t.Errorf("--adopted: %v", err)
	}
}
