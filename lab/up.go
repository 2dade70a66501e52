package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8slab/config"
	"k8slab/lab/host"
	"k8slab/lab/image"
	"k8slab/lab/machine"
	"k8slab/lab/node"
	"k8slab/lab/wait"
)

// machineBudget bounds boot to SSH. An emulated virtual machine was measured at 13 s alone; several share two processors.
const machineBudget = 4 * time.Minute

// Up brings the lab from whatever state it is in to a proven healthy cluster, or to the end of the given stage.
func (l *Lab) Up(ctx context.Context, until Stage) error {
	release, err := lock(l.cluster.Name, "labctl up")
	if err != nil {
		return err
	}
	defer release()
	if err := l.recount(); err != nil { // as it is now that nobody else changes it
		return err
	}
	if err := errors.Join(l.CheckDescribed(), l.checkBase(), l.checkNew(), l.wholeLab()); err != nil {
		return err
	}
	if err := l.CheckHost(ctx); err != nil {
		return err
	}
	if err := l.connectHost(ctx); err != nil {
		return err
	}
	up := &upRun{lab: l}
	defer up.close()
	for _, s := range stages {
		if err := s.run(up, ctx); err != nil || s.name == until {
			return err
		}
	}
	return nil
}

// upRun is what the stages of one `up` hand on.
type upRun struct {
	lab     *Lab
	missing []config.Node // without a machine when it began
	boot    machine.Boot  // what their machines are made of
	first   []config.Node // whose machines are there before the cluster is formed
	cluster *forming
}

func (u *upRun) close() {
	if u.cluster != nil {
		u.cluster.close()
	}
}

// image gets what new machines need. A machine keeps the image that it was made from.
func (u *upRun) image(ctx context.Context) (err error) {
	l := u.lab
	if u.missing, err = l.absentMachines(ctx); err != nil || len(u.missing) == 0 {
		return err
	}
	if err := l.warnSize(u.missing); err != nil {
		return err
	}
	if u.boot, err = l.image(ctx); err != nil {
		return err
	}
	return l.addonImages(ctx)
}

func (u *upRun) network(ctx context.Context) error {
	if err := u.lab.settle(u.lab.cluster.Members()...); err != nil {
		return err
	}
	return u.lab.network(ctx)
}

func (u *upRun) machines(ctx context.Context) error {
	later := u.lab.cluster.Staggered(u.missing)
	u.first = slices.DeleteFunc(u.lab.cluster.Members(), func(n config.Node) bool { return slices.Contains(later, n) })
	return u.lab.boot(ctx, u.first, u.boot)
}

// initialise forms a cluster only when every machine has answered: to make one while a control plane is silent could make a second.
func (u *upRun) initialise(ctx context.Context) error {
	facts, err := u.lab.facts(ctx, u.first)
	if err != nil {
		return err
	}
	u.cluster = &forming{lab: u.lab, facts: facts, boot: func(ctx context.Context, n config.Node) error { return u.lab.boot(ctx, []config.Node{n}, u.boot) }}
	return u.cluster.initialise(ctx)
}

func (u *upRun) networkPlugin(ctx context.Context) error { return u.cluster.networkPlugin(ctx) }

func (u *upRun) join(ctx context.Context) error { return u.cluster.join(ctx) }

func (u *upRun) addons(ctx context.Context) error {
	addons, err := u.lab.addons()
	if err != nil {
		return err
	}
	return u.cluster.install(ctx, addons)
}

func (u *upRun) proof(ctx context.Context) error {
	if err := u.lab.prove(ctx, u.cluster.view); err != nil {
		return err
	}
	return u.cluster.retire(ctx)
}

// connectHost installs what this computer lacks, and gets a libvirt daemon.
func (l *Lab) connectHost(ctx context.Context) error {
	if l.cluster.Libvirt.URI == "auto" && !l.state.exists() {
		_, why := host.Choose()
		step := l.events.Start("", "host", 0)
		step.EndWith(why)
	}
	if err := host.Install(ctx, l.uri, image.Packages(), l.events); err != nil {
		return err
	}
	h, err := l.connect()
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, host.ErrStarting) {
		step := l.events.Start("", "libvirt", 0)
		l.mutated("start libvirtd")
		h, err = l.startDaemon(ctx)
		_ = step.End(err)
	}
	if err != nil {
		return err
	}
	return l.attach(h)
}

func (l *Lab) startDaemon(ctx context.Context) (*host.Host, error) {
	id, err := l.state.id()
	if err != nil {
		return nil, err
	}
	return host.Ensure(ctx, l.state.path("libvirt"), l.scope(id))
}

func (l *Lab) absentMachines(ctx context.Context) ([]config.Node, error) {
	var absent []config.Node
	for _, n := range l.cluster.Members() {
		ctx, cancel := context.WithTimeoutCause(ctx, daemonBudget, errDaemonSilent)
		state, err := l.machines.State(ctx, n.Name)
		cancel()
		if err != nil {
			return nil, err
		}
		if state == machine.Absent {
			absent = append(absent, n)
		}
	}
	return absent, nil
}

// daemonBudget bounds a call that libvirt answers from memory.
const daemonBudget = 10 * time.Second

var errDaemonSilent = fmt.Errorf("no answer for %s", daemonBudget)

// image returns what machines boot from, known to libvirt.
func (l *Lab) image(ctx context.Context) (machine.Boot, error) {
	boot, err := l.bootFiles(ctx)
	if err != nil || l.uri == host.Containers {
		return boot, err
	}
	step := l.events.Start("", "storage pool", 0)
	boot, err = l.machines.Publish(ctx, boot, func(done, size int64) { step.Progress("uploading: %d of %d MiB", done>>20, size>>20) })
	return boot, step.End(err)
}

func (l *Lab) bootFiles(ctx context.Context) (machine.Boot, error) {
	if l.uri == host.Containers {
		img, err := l.buildImage(ctx)
		return machine.Boot{Root: img.Root()}, err
	}
	if base := l.cluster.Image.Base; base != "" {
		if _, err := l.bundle(ctx); err != nil {
			return machine.Boot{}, err
		}
		id, err := image.FileID(base)
		return machine.Boot{Base: base, ID: id}, err
	}
	_, disk, err := l.buildDisk(ctx)
	return bootFrom(disk), err
}

// addonImages builds the images of cluster.yaml's add-ons, and the sops command, before there is a cluster that a compiler would starve.
func (l *Lab) addonImages(ctx context.Context) error {
	addons, err := l.addons()
	if err != nil || len(addons) == 0 {
		return err
	}
	program, err := l.labnode()
	if err != nil {
		return err
	}
	if _, err = image.AddonImages(ctx, imagesOf(addons), program, l.events); err != nil || !l.hasSops(addons) {
		return err
	}
	_, err = image.Sops(ctx, l.events)
	return err
}

func (l *Lab) buildImage(ctx context.Context) (image.Image, error) {
	k8s := l.cluster.Kubernetes
	program, err := l.labnode()
	if err != nil {
		return image.Image{}, err
	}
	img, err := image.Build(ctx, image.Spec{KubernetesVersion: k8s.Version, KubernetesSource: k8s.Source, Labnode: program}, l.events)
	if err != nil {
		return img, err
	}
	return img, l.state.usesImage("image", img.Dir)
}

func (l *Lab) buildDisk(ctx context.Context) (image.Image, image.Disk, error) {
	img, err := l.buildImage(ctx)
	if err != nil {
		return img, image.Disk{}, err
	}
	disk, err := img.BuildDisk(ctx, l.events)
	if err == nil {
		err = l.state.usesImage("disk", filepath.Dir(disk.Base))
	}
	return img, disk, err
}

func bootFrom(disk image.Disk) machine.Boot {
	return machine.Boot{Base: disk.Base, Kernel: disk.Kernel, Initrd: disk.Initrd, Cmdline: disk.Cmdline, ID: disk.ID}
}

func (l *Lab) network(ctx context.Context) error {
	if l.uri == host.Containers {
		if err := host.PrepareKernel(ctx, l.id, l.events); err != nil {
			return err
		}
		if err := machine.EnsurePartition(l.partition(l.id), host.UnifiedControllers); err != nil {
			return err
		}
	}
	hosts := []machine.Host{}
	for _, n := range l.cluster.Nodes {
		hosts = append(hosts, machine.Host{Name: n.Name, IP: n.IP})
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("no answer for 30s"))
	defer cancel()
	active, err := l.machines.NetworkActive(ctx)
	if err != nil || active {
		return err
	}
	step := l.events.Start("", "network", 0)
	return step.End(l.machines.EnsureNetwork(ctx, machine.Network{
		CIDR: l.cluster.Network.CIDR, Gateway: l.cluster.Network.Gateway(), Hosts: hosts,
	}))
}

// boot gets the machines running and answering over SSH, all at once, and with all programs that a node needs.
func (l *Lab) boot(ctx context.Context, nodes []config.Node, boot machine.Boot) error {
	return together(nodes, func(n config.Node) error {
		step := l.events.Start(n.Name, "machine", l.bootBudget())
		state, err := l.machines.State(ctx, n.Name)
		if err != nil {
			return step.End(err)
		}
		spec := l.specOf(n, boot)
		if state != machine.Running {
			if spec.Seed, err = l.seedOf(n); err != nil {
				return step.End(err)
			}
		}
		if err := l.machines.Ensure(ctx, spec); err != nil {
			return step.End(err)
		}
		step.Progress("waiting for SSH")
		err = l.silentStock(n, l.awaitSSH(ctx, n))
		if err == nil && state == machine.Paused {
			err = l.setClock(ctx, n)
		}
		if err := step.End(err); err != nil {
			return err
		}
		return l.provision(ctx, n)
	})
}

// bootBudget bounds boot to SSH.
func (l *Lab) bootBudget() time.Duration {
	if l.cluster.Image.Base != "" {
		return stockBudget
	}
	return machineBudget
}

func (l *Lab) specOf(n config.Node, boot machine.Boot) machine.Spec {
	r := l.cluster.Resource(n.Role)
	return machine.Spec{Node: n.Name, MachineID: machineID(l.id, n.Name), CPUs: r.CPUs, Memory: r.Memory, Disk: r.Disk, Boot: boot}
}

// seedOf is the directory of the node's own files, or of what cloud-init makes them of, for a machine that is about to start.
func (l *Lab) seedOf(n config.Node) (string, error) {
	var files map[string]seedFile
	var err error
	if l.cluster.Image.Base != "" {
		files, err = l.cloudFiles(n)
	} else {
		files, err = l.seedFiles(n, l.fixedAddress(n))
	}
	if err != nil {
		return "", err
	}
	return l.writeSeed(n, files)
}

func (l *Lab) awaitSSH(ctx context.Context, n config.Node) error {
	return wait.For(ctx, n.Name+" to answer over SSH", l.bootBudget(), 100*time.Millisecond, func(ctx context.Context) error {
		_, err := l.nodes[n.Name].Read(ctx, "true")
		var connect *node.ConnectError
		if errors.As(err, &connect) && connect.Permanent {
			return wait.Hopeless(err)
		}
		if err == nil {
			return nil
		}
		state, stateErr := l.machines.State(ctx, n.Name)
		if stateErr == nil && state != machine.Running {
			return wait.Hopeless(fmt.Errorf("%s: its machine is %s: it ended while starting; see `labctl host exec -- virsh -c %s console %s-%s` and its log in %s",
				n.Name, state, l.uri, l.cluster.Name, n.Name, l.state.path("libvirt", "log")))
		}
		return err
	})
}
