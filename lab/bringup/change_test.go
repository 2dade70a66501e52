package bringup

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/labtest"
	"k8slab/lab/machine"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// listed are machines of which nothing but a list is to be had. It has none: nobody but labctl made one.
type listed struct{ session.Machines }

func (listed) List(context.Context) ([]machine.Machine, error) { return nil, nil }

func (listed) State(context.Context, string) (machine.State, error) {
	return "", errors.New("no state")
}

// What a machine will get is checked before the node that it replaces is removed. Without such a machine nothing is.
func TestPruneChecksOptionsFirst(t *testing.T) {
	for want, edit := range map[string]func(*config.Cluster){
		"no labnode is given": func(c *config.Cluster) { c.Nodes[3].Disks = config.List[int]{7} },
		"no state":            func(c *config.Cluster) { c.Nodes = c.Nodes[:3] },
	} {
		l := labtest.Closed(t, labtest.WithOptions)
		if err := l.Settle(l.Cluster.Members()...); err != nil {
			t.Fatal(err)
		}
		c := *l.Described
		c.Nodes = slices.Clone(c.Nodes)
		edit(&c)
		now, err := state.Read(&c)
		if err != nil {
			t.Fatal(err)
		}
		s := labtest.Of(now)
		s.Machines, s.Libvirt = listed{}, machine.Open(machine.Config{})
		if _, err := Prune(t.Context(), s); err == nil || !strings.Contains(err.Error(), want) || len(s.Leaving()) != 1 {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
