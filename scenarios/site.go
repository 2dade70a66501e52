package scenarios

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/wait"
)

// healthy is nil when `labctl status` proves the cluster healthy.
func healthy(ctx context.Context, s Site) error {
	out, err := s.Labctl(ctx, "status", "-o", "json")
	if err == nil {
		return nil
	}
	var status struct{ Problems []string }
	if json.Unmarshal([]byte(out), &status) == nil && len(status.Problems) > 0 {
		return errors.New(strings.Join(status.Problems, "; "))
	}
	return err
}

// patiently is a time as it is in the lab.
func (s Site) patiently(d time.Duration) time.Duration { return d * time.Duration(max(s.patience, 1)) }

// await is wait.For with the times as they are in the lab: looking too often at an emulated machine would be what loads it.
func (s Site) await(ctx context.Context, what string, budget, interval time.Duration, condition func(context.Context) error) error {
	return wait.For(ctx, what, s.patiently(budget), s.patiently(interval), condition)
}

var errNotApplicable = errors.New("not applicable")

// SiteOf is where the fault can be made in the lab: on the node, or on the last one of a role that it is for.
func SiteOf(ctx context.Context, h Hands, f Fault, node string) (Site, error) {
	s, err := look(ctx, h)
	if err != nil {
		return s, err
	}
	s.Node = node
	for _, m := range s.Members {
		if node == "" && f.For(m.Role) {
			s.Node = m.Name
		}
	}
	return s.complete(f)
}

// look finds the members of the lab.
func look(ctx context.Context, h Hands) (Site, error) {
	out, statusErr := h.Labctl(ctx, "status", "-o", "json") // exit status 1 says that it is not healthy
	var status struct {
		Nodes []struct {
			Member
			Note string
		}
	}
	if err := json.Unmarshal([]byte(out), &status); err != nil {
		return Site{}, errors.Join(statusErr, err)
	}
	s := Site{Hands: h}
	for _, n := range status.Nodes {
		if n.Note == "" { // not one to be onboarded later
			s.Members = append(s.Members, n.Member)
		}
	}
	return s, nil
}

// complete fills in what follows from the node, and says why the fault is not for it.
func (s Site) complete(f Fault) (Site, error) {
	var role config.Role
	for _, m := range s.Members {
		if m.Name == s.Node {
			s.Address, role = m.Address, m.Role
		} else if m.Role == config.ControlPlane {
			s.ControlPlane = cmp.Or(s.ControlPlane, m.Name)
		}
	}
	switch {
	case s.Node == "":
		return s, fmt.Errorf("%w: %s is for a %s, and the lab has none", errNotApplicable, f.Name, f.Roles[0])
	case role == "":
		return s, s.unknownNode()
	case !f.For(role):
		return s, fmt.Errorf("%w: %s is for a %s, and %s is not one", errNotApplicable, f.Name, f.Roles[0], s.Node)
	}
	if f.Outside && s.ControlPlane == "" {
		return s, fmt.Errorf("%w: %s begins with a reset of %s, the only control plane", errNotApplicable, f.Name, s.Node)
	}
	s.ControlPlane = cmp.Or(s.ControlPlane, s.Node)
	if f.Applies != nil {
		if why := f.Applies(s); why != "" {
			return s, fmt.Errorf("%w: %s", errNotApplicable, why)
		}
	}
	return s, nil
}

func (s Site) unknownNode() error {
	var names []string
	for _, m := range s.Members {
		names = append(names, m.Name)
	}
	return config.Unknown("node", s.Node, "the lab has", names)
}

func (s Site) role(node string) config.Role {
	for _, m := range s.Members {
		if m.Name == node {
			return m.Role
		}
	}
	return ""
}

// beside is the site with a control plane that is none of the nodes, where there is one.
func (s Site) beside(nodes []string) Site {
	for _, m := range s.Members {
		if m.Role == config.ControlPlane && !slices.Contains(nodes, m.Name) {
			s.ControlPlane = m.Name
			break
		}
	}
	return s
}
