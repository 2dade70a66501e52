package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8slab/lab/host"
	"k8slab/lab/image"
)

// Doctor checks whether this computer can carry the lab; it changes nothing.
func (l *Lab) Doctor(ctx context.Context) ([]host.Check, error) {
	plan := host.Plan{
		URI: l.uri, Own: l.ownDaemon(),
		Build:    !image.Compiled(l.cluster.Kubernetes.Version, l.cluster.Kubernetes.Source),
		Packages: image.Packages(),
	}
	if !l.state.exists() {
		plan.Network = l.cluster.Network.CIDR
	}
	return host.Examine(ctx, plan), nil
}

// CheckHost refuses to make a lab that this computer is certain not to carry, with everything that is in its way.
func (l *Lab) CheckHost(ctx context.Context) error {
	if l.state.exists() {
		return nil
	}
	checks, err := l.Doctor(ctx)
	if err != nil {
		return err
	}
	var obstacles []string
	for _, c := range checks {
		if c.Result == host.Fails {
			obstacles = append(obstacles, fmt.Sprintf("\n  %s: %s; %s; next: %s", c.ID, c.Seen, c.Why, c.Do))
		}
	}
	if len(obstacles) == 0 {
		return nil
	}
	return errors.New("this computer cannot carry the lab yet:" + strings.Join(obstacles, ""))
}
