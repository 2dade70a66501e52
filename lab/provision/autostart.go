package provision

import (
	"context"
	"os"

	"k8slab/lab/host"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// Autostart has the lab started when this computer starts, as it was made. It returns the path of the unit that does it.
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
