package lab

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
)

// Vagrant is what the Vagrantfile makes machines from: the same as labctl would make.
type Vagrant struct {
	Network  string                   `json:"network"` // name of the lab's libvirt network
	Pool     string                   `json:"pool"`    // name of the storage pool
	CIDR     string                   `json:"cidr"`
	Key      string                   `json:"key"` // path of root's private key
	Box      image.Box                `json:"box"`
	Machines []machine.VagrantMachine `json:"machines"` // in the order in which they come up
}

// VagrantBox makes the node image's box, and what vagrant needs beside it: the lab's identity and keys.
func (l *Lab) VagrantBox(ctx context.Context) (image.Box, error) {
	release, err := lock(l.cluster.Name, "labctl vagrant box")
	if err != nil {
		return image.Box{}, err
	}
	defer release()
	if err := l.needVMs(); err != nil {
		return image.Box{}, err
	}
	if err := l.connectHost(ctx); err != nil {
		return image.Box{}, err
	}
	img, disk, err := l.buildDisk(ctx)
	if err != nil {
		return image.Box{}, err
	}
	box, err := img.BuildBox(ctx, disk, l.cluster.Kubernetes.Version, l.events)
	if err != nil {
		return image.Box{}, err
	}
	b := vagrantBox{Box: box}
	if b.Boot, err = l.image(ctx); err != nil {
		return image.Box{}, err
	}
	if b.Pool, err = l.machines.PoolPath(ctx); err != nil {
		return image.Box{}, err
	}
	return box, l.writeVagrantBox(b)
}

// vagrantBox is what the state keeps of the box: the kernel and the rest of what boots must be of the disk that is in it.
type vagrantBox struct {
	Box  image.Box    `json:"box"`
	Boot machine.Boot `json:"boot"`
	Pool string       `json:"pool"` // directory of the storage pool
}

// writeVagrantBox also makes the identity and the keys, since Vagrant has no lock.
func (l *Lab) writeVagrantBox(b vagrantBox) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	if _, err := l.state.id(); err != nil {
		return err
	}
	if _, _, err := l.state.keyPair(rootKey); err != nil {
		return err
	}
	return errors.Join(l.state.keepImage(b.Box.Dir()), l.state.write("box", text))
}

// needVMs refuses a lab of containers, of which vagrant knows nothing, and one of a stock image.
func (l *Lab) needVMs() error {
	if l.uri == host.Containers {
		return errors.New("the lab's machines are containers on this computer, and vagrant makes virtual machines; set libvirt.uri: qemu:///system in cluster.yaml")
	}
	if l.cluster.Image.Base != "" {
		return errors.New("cluster.yaml has image.base, and vagrant's box is made of the lab's own image; remove image.base, or make the machines with labctl up")
	}
	return nil
}

// Vagrant describes the machines. It only reads the lab's state: VagrantBox comes first.
func (l *Lab) Vagrant() (Vagrant, error) {
	if err := l.needVMs(); err != nil {
		return Vagrant{}, err
	}
	v := Vagrant{Network: l.cluster.Name, Pool: l.cluster.Libvirt.Pool, CIDR: l.cluster.Network.CIDR.Masked().String(), Key: l.state.path(rootKey)}
	text, err := os.ReadFile(l.state.path("box"))
	if errors.Is(err, fs.ErrNotExist) {
		return v, errors.New("the lab has no box for vagrant yet; next: make box")
	}
	if err != nil {
		return v, err
	}
	var box vagrantBox
	if err := json.Unmarshal(text, &box); err != nil {
		return v, fmt.Errorf("%s: %w; next: make box", l.state.path("box"), err)
	}
	v.Box = box.Box
	id, err := l.state.id()
	if err != nil {
		return v, err
	}
	l.id = id
	machines := machine.Open(machine.Config{URI: l.uri, Lab: l.cluster.Name, ID: id, KVM: host.KVM()})
	for _, n := range l.cluster.Members() {
		v.Machines = append(v.Machines, machines.Vagrant(l.specOf(n, box.Boot), box.Pool))
	}
	return v, nil
}

// VagrantPrepare makes what the node's machine needs before vagrant can make or start it: the lab's network, and the node's own files.
func (l *Lab) VagrantPrepare(ctx context.Context, name string) error {
	release, err := lock(l.cluster.Name, "labctl vagrant prepare "+name)
	if err != nil {
		return err
	}
	defer release()
	n, ok := l.cluster.Node(name)
	if !ok {
		return l.unknownNode(name)
	}
	if err := l.needVMs(); err != nil {
		return err
	}
	if err := l.connectHost(ctx); err != nil {
		return err
	}
	if err := l.CheckDescribed(); err != nil {
		return err
	}
	if err := l.settle(l.cluster.Members()...); err != nil { // vagrant makes them all
		return err
	}
	if err := l.network(ctx); err != nil {
		return err
	}
	if state, err := l.machines.State(ctx, name); err != nil || state != machine.Absent {
		return err
	}
	return l.makeLeasedSeed(ctx, n)
}

func (l *Lab) makeLeasedSeed(ctx context.Context, n config.Node) error {
	files, err := l.seedFiles(n, leasedAddress)
	if err != nil {
		return err
	}
	dir, err := l.writeSeed(n, files)
	if err != nil {
		return err
	}
	return l.machines.MakeVagrantSeed(ctx, n.Name, dir)
}
