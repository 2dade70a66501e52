package provision

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8slab/config"
	"k8slab/lab/event"
	"k8slab/lab/host"
	"k8slab/lab/image"
	"k8slab/lab/node"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// stockBudget bounds boot to SSH with a stock image: cloud-init is Python in four stages, which an emulated machine takes minutes for.
const stockBudget = 15 * time.Minute

// provisionBudget bounds what makes a node of such a machine: 1.2 GB come over SSH, and some thirty packages are installed.
const provisionBudget = 30 * time.Minute

// CheckBase refuses a stock image that the lab's machines cannot boot.
func CheckBase(l state.Lab) error {
	base := l.Cluster.Image.Base
	if base == "" {
		return nil
	}
	if l.URI == host.Containers {
		return errors.New("cluster.yaml has image.base, which virtual machines boot, and the lab's machines are containers on this computer; " +
			"set libvirt.uri: qemu:///system, or remove image.base")
	}
	size, err := image.BaseSize(base)
	if err != nil {
		return err
	}
	for _, n := range l.Cluster.Members() {
		if disk := l.Cluster.Resource(n.Role).Disk; size > uint64(disk)<<30 {
			return fmt.Errorf("image.base: the disk in %s has %.1f GiB and the one of %s would have %d; set resources.*.disk of the %s to more",
				base, float64(size)/(1<<30), n.Name, disk, n.Role)
		}
	}
	return nil
}

// bundle returns what makes nodes of the lab's machines, after making it if the cache does not have it. Several may ask at once.
func (m *Maker) bundle(ctx context.Context) (image.Bundle, error) {
	m.bundling.Lock()
	defer m.bundling.Unlock()
	if m.bundled.Archive != "" {
		return m.bundled, nil
	}
	img, err := buildImage(ctx, m.Session)
	if err != nil {
		return image.Bundle{}, err
	}
	b, err := img.BuildBundle(ctx, m.Events)
	if err == nil {
		err = m.UsesImage("bundle", filepath.Dir(b.Archive))
	}
	if err == nil {
		m.bundled = b
	}
	return b, err
}

// provision makes a node of a machine with a stock image, unless it is one. A machine keeps the bundle that it was made a node with.
func (m *Maker) provision(ctx context.Context, n config.Node) error {
	s := m.Session
	if s.Cluster.Image.Base == "" {
		return nil
	}
	if done, err := bundleInstalled(ctx, s.Nodes[n.Name]); err != nil || done {
		return err
	}
	b, err := m.bundle(ctx)
	if err != nil {
		return err
	}
	step := s.Events.Start(n.Name, "provision", provisionBudget)
	ctx, cancel := context.WithTimeoutCause(ctx, provisionBudget, fmt.Errorf("the %s budget of provisioning ran out", provisionBudget))
	defer cancel()
	p := bundleInstall{machine: s.Nodes[n.Name], bundle: b, step: step}
	if err := p.run(ctx, state.MachineID(s.ID, n.Name), s.Cluster.Network.Gateway().String(), b.Hash); err != nil {
		return step.End(fmt.Errorf("%w\nnext: labctl up, which provisions it again, from the start", err))
	}
	return step.End(nil)
}

// withConsole shows what a machine with a stock image did instead of answering.
func withConsole(s *session.Session, n config.Node, err error) error {
	if err == nil || s.Cluster.Image.Base == "" {
		return err
	}
	return fmt.Errorf("%w\nnext: look at the end of its console, whether it booted and what cloud-init made of its disk cidata:\n%s", err, s.Console(n.Name))
}

// bundleInstalled tells whether a bundle was installed on the machine to its end.
func bundleInstalled(ctx context.Context, machine session.Runner) (bool, error) {
	err := machine.Run(ctx, node.Command{Argv: []string{"test", "-e", image.BundleMark}, ReadOnly: true})
	var exit *node.ExitError
	if errors.As(err, &exit) {
		return false, nil
	}
	return err == nil, err
}

// bundleInstall is the making of one node. Each part can be repeated, whatever an earlier one that was interrupted left.
type bundleInstall struct {
	machine session.Runner
	bundle  image.Bundle
	step    *event.Step
}

// run gives the bundle's install script its arguments.
func (p *bundleInstall) run(ctx context.Context, arguments ...string) error {
	p.step.Progress("waiting for cloud-init")
	err := p.machine.Run(ctx, node.Command{Argv: []string{"cloud-init", "status", "--wait"}, ReadOnly: true})
	var exit *node.ExitError
	switch {
	case errors.As(err, &exit): // a part of the image's own may have failed: what a node needs is seen to in what follows
		p.step.Progress("cloud-init reports a failure, see /var/log/cloud-init.log there")
	case err != nil:
		return err
	}
	if err := p.unpack(ctx); err != nil {
		return err
	}
	return p.machine.Run(ctx, node.Command{Argv: exclusively(append([]string{image.BundleInstall}, arguments...)...), Stdout: progressLines(p.step)})
}

// exclusively has the command wait for what an interrupted one left at work on the machine, apt for example: a lost connection does not end it.
func exclusively(argv ...string) []string {
	return append([]string{"flock", "/run/k8slab-provision.lock"}, argv...)
}

// unpack sends the bundle through SSH into tar: a copy there would take its 1.2 GB twice.
func (p *bundleInstall) unpack(ctx context.Context) error {
	f, err := os.Open(p.bundle.Archive)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return p.machine.Run(ctx, node.Command{
		// Directories that are there stay as they are, links to directories too.
		Argv: exclusively("tar", "--extract", "--file", "-", "--directory", "/", "--numeric-owner", "--xattrs", "--xattrs-include=*",
			"--keep-directory-symlink", "--no-overwrite-dir"),
		Stdin: &tenthsReader{from: f, size: info.Size(), step: p.step},
	})
}

// tenthsReader shows with each tenth how much of a file was read.
type tenthsReader struct {
	from       io.Reader
	size, done int64
	tenths     int64
	step       *event.Step
}

func (c *tenthsReader) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	c.done += int64(n)
	if tenths := c.done * 10 / max(c.size, 1); tenths > c.tenths {
		c.tenths = tenths
		c.step.Progress("sent %d of %d MiB", c.done>>20, c.size>>20)
	}
	return n, err
}

// progressLines is output whose lines are progress.
func progressLines(step *event.Step) *node.Lines {
	return &node.Lines{Each: func(line []byte) error {
		step.Progress("%s", line)
		return nil
	}}
}
