package provision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"k8slab/config"
	"k8slab/lab/host"
	"k8slab/lab/image"
	"k8slab/lab/machine"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// Vagrant is what the Vagrantfile reads, to make the same machines as labctl.
type Vagrant struct {
	Network  string                   `json:"network"` // name of the lab's libvirt network
	Pool     string                   `json:"pool"`    // name of the storage pool
	CIDR     string                   `json:"cidr"`
	Key      string                   `json:"key"` // path of root's private key
	Box      image.Box                `json:"box"`
	Machines []machine.VagrantMachine `json:"machines"` // in the order in which they come up
}

// MakeVagrantBox makes the node image's box, and what vagrant needs beside it: the lab's identity and keys.
func MakeVagrantBox(ctx context.Context, s *session.Session) (image.Box, error) {
	img, disk, err := BuildDisk(ctx, s)
	if err != nil {
		return image.Box{}, err
	}
	box, err := img.BuildBox(ctx, disk, s.Cluster.Kubernetes.Version, s.Events)
	if err != nil {
		return image.Box{}, err
	}
	b := vagrantBox{Box: box}
	if b.Boot, err = For(s).Image(ctx); err != nil {
		return image.Box{}, err
	}
	if b.Pool, err = s.Libvirt.PoolPath(ctx); err != nil {
		return image.Box{}, err
	}
	return box, writeVagrantBox(s.Lab, b)
}

// vagrantBox is what the state keeps of the box. The kernel that boots must belong to the disk in the box.
type vagrantBox struct {
	Box  image.Box    `json:"box"`
	Boot machine.Boot `json:"boot"`
	Pool string       `json:"pool"` // directory of the storage pool
}

// writeVagrantBox also makes the lab's UUID and keys, because Vagrant does not take the lab's lock.
func writeVagrantBox(l state.Lab, b vagrantBox) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	if _, err := l.ID(); err != nil {
		return err
	}
	if _, _, err := l.KeyPair(session.RootKey); err != nil {
		return err
	}
	return errors.Join(l.KeepImage(b.Box.Dir()), l.Write("box", text))
}

// NeedVMs refuses labs that vagrant cannot make: of containers, or from a stock image.
func NeedVMs(l state.Lab) error {
	if l.URI == host.Containers {
		return errors.New("the lab's machines are containers on this computer, and vagrant makes virtual machines; set libvirt.uri: qemu:///system in cluster.yaml")
	}
	if l.Cluster.Image.Base != "" {
		return errors.New("cluster.yaml has image.base, and vagrant's box is made of the lab's own image; remove image.base, or make the machines with labctl up")
	}
	for _, n := range l.Cluster.Members() {
		if len(l.Cluster.OptionsOf(n).Disks) > 0 {
			return fmt.Errorf("%s has disks in cluster.yaml, which vagrant does not make; remove them, or make the machines with labctl up", n.Name)
		}
	}
	return nil
}

// DescribeVagrant describes the machines. It only reads the lab's state: MakeVagrantBox comes first.
func DescribeVagrant(l state.Lab) (Vagrant, error) {
	if err := NeedVMs(l); err != nil {
		return Vagrant{}, err
	}
	v := Vagrant{Network: l.Cluster.Name, Pool: l.Cluster.Libvirt.Pool, CIDR: l.Cluster.Network.CIDR.Masked().String(), Key: l.Path(session.RootKey)}
	text, err := os.ReadFile(l.Path("box"))
	if errors.Is(err, fs.ErrNotExist) {
		return v, errors.New("the lab has no box for vagrant yet; next: make box")
	}
	if err != nil {
		return v, err
	}
	var box vagrantBox
	if err := json.Unmarshal(text, &box); err != nil {
		return v, fmt.Errorf("%s: %w; next: make box", l.Path("box"), err)
	}
	v.Box = box.Box
	id, err := l.ID()
	if err != nil {
		return v, err
	}
	machines := machine.Open(machine.Config{URI: l.URI, Lab: l.Cluster.Name, ID: id, KVM: host.KVM()})
	for _, n := range l.Cluster.Members() {
		v.Machines = append(v.Machines, machines.Vagrant(specOf(l, id, n, box.Boot), box.Pool))
	}
	return v, nil
}

// PrepareVagrant makes what the node's machine needs before vagrant can make or start it: the lab's network, and the node's own files.
func PrepareVagrant(ctx context.Context, s *session.Session, n config.Node) error {
	if err := s.Settle(s.Cluster.Members()...); err != nil { // vagrant makes them all
		return err
	}
	if err := Network(ctx, s); err != nil {
		return err
	}
	if state, err := s.Machines.State(ctx, n.Name); err != nil || state != machine.Absent {
		return err
	}
	return makeLeasedSeed(ctx, s, n)
}

func makeLeasedSeed(ctx context.Context, s *session.Session, n config.Node) error {
	files, err := seedFiles(s, n, leasedAddress)
	if err != nil {
		return err
	}
	dir, err := writeSeed(s, n, files)
	if err != nil {
		return err
	}
	return s.Libvirt.MakeVagrantSeed(ctx, n.Name, dir)
}
