package provision

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"k8slab/lab/event"
	"k8slab/lab/host"
	"k8slab/lab/image"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// Doctor checks whether this computer can carry the lab; it changes nothing.
func Doctor(ctx context.Context, l state.Lab) []host.Check {
	plan := host.Plan{
		URI: l.URI, Own: session.OwnDaemon(l), Uplink: session.HasUplink(l),
		Build:    l.Cluster.Image.From == "" && !image.Compiled(l.Cluster.Kubernetes.Version, l.Cluster.Kubernetes.Source),
		Packages: image.Packages(l.Cluster.Image.From),
	}
	if !l.Exists() {
		plan.Network = l.Cluster.Network.CIDR
	}
	return host.Examine(ctx, plan)
}

// Check refuses what up cannot do, before anything is opened: changes of cluster.yaml, an image that does not serve, a lab that is too large
// or of two moments, and a computer that cannot carry it. With prune, nodes may leave.
func Check(ctx context.Context, l state.Lab, o session.Options, prune bool) error {
	errs := []error{l.CheckDescribed(prune), CheckBase(l), CheckSize(l), CheckWhole(l)}
	if !l.Exists() {
		_, err := o.LabnodeBinary()
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return CheckHost(ctx, l)
}

// CheckHost refuses to make a lab that this computer cannot carry, and lists every reason.
func CheckHost(ctx context.Context, l state.Lab) error {
	if l.Exists() {
		return nil
	}
	var obstacles []string
	for _, c := range Doctor(ctx, l) {
		if c.Result == host.Fails {
			obstacles = append(obstacles, fmt.Sprintf("\n  %s: %s; %s; next: %s", c.ID, c.Seen, c.Why, c.Do))
		}
	}
	if len(obstacles) == 0 {
		return nil
	}
	return errors.New("this computer cannot carry the lab yet:" + strings.Join(obstacles, ""))
}

// Open installs what this computer lacks, gets a libvirt daemon, and opens the lab there.
func Open(ctx context.Context, l state.Lab, events *event.Stream, o session.Options) (*session.Session, error) {
	if l.Cluster.Libvirt.URI == "auto" && !l.Exists() {
		_, why := host.Choose()
		step := events.Start("", "host", 0)
		step.EndWith(why)
	}
	if err := host.Install(ctx, l.URI, image.Packages(l.Cluster.Image.From), events); err != nil {
		return nil, err
	}
	if l.Cluster.Kubernetes.Floats() { // it is not made yet
		c, err := image.Settle(ctx, l.Cluster, events)
		if err != nil {
			return nil, err
		}
		l.Cluster, l.After = c, c
	}
	h, err := session.Connect(l)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, host.ErrStarting) {
		step := events.Start("", "libvirt", 0)
		if err = o.Mutated("start libvirtd"); err == nil {
			h, err = startDaemon(ctx, l)
		}
		_ = step.End(err)
	}
	if err != nil {
		return nil, err
	}
	return session.Open(l, h, events, o)
}

func startDaemon(ctx context.Context, l state.Lab) (*host.Host, error) {
	id, err := l.ID()
	if err != nil {
		return nil, err
	}
	return host.Ensure(ctx, session.DaemonDir(l), session.Scope(l, id))
}

// Autostart starts the lab whenever this computer starts. It returns the path of the systemd unit that does it.
func Autostart(ctx context.Context, l state.Lab) (string, error) {
	if !l.Settled() {
		return "", state.ErrNotUp
	}
	id, err := l.ID()
	if err != nil {
		return "", err
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return host.Autostart(ctx, session.CgroupName(l.Cluster.Name, id), l.Cluster.Name, []string{self, "--lab", l.Cluster.Name, "up"})
}

// NoAutostart undoes Autostart; down does it too.
func NoAutostart(ctx context.Context, l state.Lab) error {
	if !l.Exists() {
		return state.ErrNotUp
	}
	id, err := l.ID()
	if err != nil {
		return err
	}
	return host.NoAutostart(ctx, session.CgroupName(l.Cluster.Name, id))
}
