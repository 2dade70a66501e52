package provision

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8slab/lab/host"
	"k8slab/lab/image"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// Doctor checks whether this computer can carry the lab; it changes nothing.
func Doctor(ctx context.Context, l state.Lab) ([]host.Check, error) {
	plan := host.Plan{
		URI: l.URI, Own: session.OwnDaemon(l),
		Build:    !image.Compiled(l.Cluster.Kubernetes.Version, l.Cluster.Kubernetes.Source),
		Packages: image.Packages(),
	}
	if !l.Exists() {
		plan.Network = l.Cluster.Network.CIDR
	}
	return host.Examine(ctx, plan), nil
}

// CheckHost refuses to make a lab that this computer is certain not to carry, with everything that is in its way.
func CheckHost(ctx context.Context, l state.Lab) error {
	if l.Exists() {
		return nil
	}
	checks, err := Doctor(ctx, l)
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
