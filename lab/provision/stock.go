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

// stockBudget bounds boot to SSH with a stock image: on an emulated machine, cloud-init's four stages take minutes.
const stockBudget = 15 * time.Minute

// provisionBudget bounds the installation of the bundle: 1.2 GB are sent over SSH, and some thirty packages are installed.
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

// bundle returns the bundle with a node's programs, which it builds if the cache does not have it. It can be called concurrently.
func (m *Maker) bundle(ctx context.Context) (image.Bundle, error) {
	m.bundling.Lock()
	defer m.bundling.Unlock()
	if m.bundled.Archive != "" {
		return m.bundled, nil
	}
	img, err := NodeImage(ctx, m.Session)
	if err != nil {
		return image.Bundle{}, err
	}
	b, err := img.BuildBundle(ctx, m.Cluster.Image.Distribution, m.Events)
	if err == nil {
		err = m.UsesImage("bundle", filepath.Dir(b.Archive))
	}
	if err == nil {
		m.bundled = b
	}
	return b, err
}

// provision installs the bundle on a machine with a stock image, unless one is installed: a machine keeps its bundle.
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

// withConsole adds to the error the end of the console of a machine with a stock image, which did not answer.
func withConsole(s *session.Session, n config.Node, err error) error {
	if err == nil || s.Cluster.Image.Base == "" {
		return err
	}
	return fmt.Errorf("%w\nnext: see at the end of its console whether it booted, and what cloud-init did with its disk cidata:\n%s", err, s.Console(n.Name))
}

// bundleInstalled tells whether a bundle was installed completely on the machine.
func bundleInstalled(ctx context.Context, machine session.Runner) (bool, error) {
	err := machine.Run(ctx, node.Command{Argv: []string{"test", "-e", image.BundleMark}, ReadOnly: true})
	var exit *node.ExitError
	if errors.As(err, &exit) {
		return false, nil
	}
	return err == nil, err
}

// bundleInstall installs the bundle on one machine. Each part can be repeated after an interruption.
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
	case errors.As(err, &exit): // a module of the image may have failed; the bundle brings what a node needs
		p.step.Progress("cloud-init reports a failure, see /var/log/cloud-init.log there")
	case err != nil:
		return err
	}
	if err := p.unpack(ctx); err != nil {
		return err
	}
	return p.machine.Run(ctx, node.Command{Argv: exclusively(append([]string{image.BundleInstall}, arguments...)...), Stdout: progressLines(p.step)})
}

// exclusively makes the command wait for one that an interrupted run left running on the machine, such as apt: a lost connection does not
// end it.
func exclusively(argv ...string) []string {
	return append([]string{"flock", "/run/k8slab-provision.lock"}, argv...)
}

// unpack streams the bundle over SSH into tar: a copy on the machine would need its 1.2 GB twice.
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
		// Existing directories, and links to directories, stay as they are.
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

// progressLines shows each line of output as progress.
func progressLines(step *event.Step) *node.Lines {
	return &node.Lines{Each: func(line []byte) error {
		step.Progress("%s", line)
		return nil
	}}
}
