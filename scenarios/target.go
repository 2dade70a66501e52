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

// healthy returns nil if `labctl status` says that the cluster is healthy.
func healthy(ctx context.Context, t Target) error {
	s, err := survey(ctx, t)
	return errors.Join(err, s.unhealthy)
}

// surveyed is what `labctl status` says.
type surveyed struct {
	members   []Member // but those to be onboarded later
	unhealthy error
}

func survey(ctx context.Context, d Driver) (s surveyed, err error) {
	out, statusErr := d.Labctl(ctx, "status", "-o", "json") // exit status 1 says that it is not healthy
	var status struct {
		Problems []string
		Nodes    []struct {
			Member
			Note string
		}
	}
	if err := json.Unmarshal([]byte(out), &status); err != nil {
		return s, errors.Join(statusErr, err)
	}
	if s.unhealthy = statusErr; statusErr != nil && len(status.Problems) > 0 {
		s.unhealthy = errors.New(strings.Join(status.Problems, "; "))
	}
	for _, n := range status.Nodes {
		if n.Note == "" {
			s.members = append(s.members, n.Member)
		}
	}
	return s, nil
}

// patiently is a time scaled for the lab's machines.
func (t Target) patiently(d time.Duration) time.Duration {
	return d * time.Duration(max(t.patience, 1))
}

// await is wait.For with scaled times: frequent checks would themselves load an emulated machine.
func (t Target) await(ctx context.Context, what string, budget, interval time.Duration, condition func(context.Context) error) error {
	return wait.For(ctx, what, t.patiently(budget), t.patiently(interval), condition)
}

var errNotApplicable = errors.New("not applicable")

// TargetOf is the fault's target in the lab: the node, or the last node of a role that the fault is for.
func TargetOf(ctx context.Context, d Driver, f Fault, node string) (Target, error) {
	t, err := look(ctx, d)
	if err == nil && f.Upgrade != "" {
		t.Next, err = nextVersion(ctx, t)
	}
	if err != nil {
		return t, err
	}
	return t.of(f, node)
}

// of is the target of the fault among the members: see TargetOf.
func (t Target) of(f Fault, node string) (Target, error) {
	t.Node = node
	for _, m := range t.Members {
		if node == "" && f.For(m.Role) {
			t.Node = m.Name
		}
	}
	return t.complete(f)
}

// look finds the members of the lab.
func look(ctx context.Context, d Driver) (Target, error) {
	s, err := survey(ctx, d)
	return Target{Driver: d, Members: s.members}, err
}

// complete fills in what follows from the node. The error says why the fault is not for it.
func (t Target) complete(f Fault) (Target, error) {
	var role config.Role
	for _, m := range t.Members {
		if m.Name == t.Node {
			t.Address, role = m.Address, m.Role
		} else if m.Role == config.ControlPlane {
			t.ControlPlane = cmp.Or(t.ControlPlane, m.Name)
		}
	}
	switch {
	case t.Node == "":
		return t, fmt.Errorf("%w: %s is for a %s, and the lab has none", errNotApplicable, f.Name, f.Roles[0])
	case role == "":
		return t, t.unknownNode()
	case !f.For(role):
		return t, fmt.Errorf("%w: %s is for a %s, and %s is not one", errNotApplicable, f.Name, f.Roles[0], t.Node)
	}
	if f.Outside && t.ControlPlane == "" {
		return t, fmt.Errorf("%w: %s begins with a reset of %s, the only control plane", errNotApplicable, f.Name, t.Node)
	}
	t.ControlPlane = cmp.Or(t.ControlPlane, t.Node)
	if f.Applies != nil {
		if why := f.Applies(t); why != "" {
			return t, fmt.Errorf("%w: %s", errNotApplicable, why)
		}
	}
	return t, nil
}

func (t Target) unknownNode() error {
	var names []string
	for _, m := range t.Members {
		names = append(names, m.Name)
	}
	return config.Unknown("node", t.Node, "the lab has", names)
}

func (t Target) role(node string) config.Role {
	for _, m := range t.Members {
		if m.Name == node {
			return m.Role
		}
	}
	return ""
}

// beside is the target with a control plane that is none of the nodes, where there is one.
func (t Target) beside(nodes []string) Target {
	for _, m := range t.Members {
		if m.Role == config.ControlPlane && !slices.Contains(nodes, m.Name) {
			t.ControlPlane = m.Name
			break
		}
	}
	return t
}
