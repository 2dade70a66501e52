package provision

import (
	"context"
	"errors"
	"k8slab/lab/event"
	"k8slab/lab/host"
	"k8slab/lab/image"
	"k8slab/lab/session"
	"k8slab/lab/state"
	"os"
)

// Open installs what this computer lacks, gets a libvirt daemon, and opens the lab there.
func Open(ctx context.Context, l state.Lab, events *event.Stream, o session.Options) (*session.Session, error) {
	if l.Cluster.Libvirt.URI == "auto" && !l.Exists() {
		_, why := host.Choose()
		step := events.Start("", "host", 0)
		step.EndWith(why)
	}
	if err := host.Install(ctx, l.URI, image.Packages(), events); err != nil {
		return nil, err
	}
	h, err := session.Connect(l)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, host.ErrStarting) {
		step := events.Start("", "libvirt", 0)
		o.Mutated("start libvirtd")
		h, err = startDaemon(ctx, l)
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
