package lab

import (
	"context"
	"os"

	"k8slab/lab/host"
)

// Autostart has the lab started when this computer starts, as it was made. It returns the path of the unit that does it.
func (l *Lab) Autostart(ctx context.Context) (string, error) {
	if !l.state.settled() {
		return "", ErrNotUp
	}
	id, err := l.state.id()
	if err != nil {
		return "", err
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	l.mutated("systemd unit for " + l.cluster.Name)
	return host.Autostart(ctx, cgroupName(l.cluster.Name, id), l.cluster.Name, []string{self, "--lab", l.cluster.Name, "up"})
}

// NoAutostart undoes Autostart; down does it too.
func (l *Lab) NoAutostart(ctx context.Context) error {
	if !l.state.exists() {
		return ErrNotUp
	}
	id, err := l.state.id()
	if err != nil {
		return err
	}
	return host.NoAutostart(ctx, cgroupName(l.cluster.Name, id))
}
