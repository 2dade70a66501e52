package provision

import (
	"errors"
	"fmt"

	"k8slab/config"
	"k8slab/lab/event"
	"k8slab/lab/host"
	"k8slab/lab/state"
)

// CheckSize refuses to make a lab that this computer is too small for, and to give machines of one a size that does not fit.
func CheckSize(l state.Lab) error {
	nodes := l.Cluster.Members()
	if l.Exists() {
		nodes = l.Resizing()
	}
	_, err := checkSize(l, nodes)
	return err
}

// WarnSize is CheckSize for machines that a lab lacks. It also shows a warning when memory is short.
func WarnSize(l state.Lab, events *event.Stream, absent []config.Node) error {
	warning, err := checkSize(l, absent)
	if warning != "" {
		events.Start("", "memory", 0).EndWith(warning)
	}
	return err
}

// checkSize refuses to make machines that this computer is too small for.
func checkSize(l state.Lab, absent []config.Node) (warning string, err error) {
	if len(absent) == 0 {
		return "", nil
	}
	has, err := host.Measure()
	if err != nil {
		return "", err
	}
	return tooLarge(l.Cluster, l.URI, absent, has)
}

// tooLarge says which of the absent machines do not fit. All machines together may have more processors than the computer. Containers may
// also have more memory together, because they share it; virtual machines may not, because each keeps its memory.
func tooLarge(c *config.Cluster, uri string, absent []config.Node, has host.Size) (warning string, err error) {
	var problems []error
	for _, role := range []config.Role{config.ControlPlane, config.Worker} {
		made := false
		for _, n := range absent {
			made = made || n.Role == role
		}
		if !made {
			continue
		}
		r, key := c.Resource(role), role.ResourcesKey()
		if r.CPUs > has.CPUs {
			problems = append(problems, fmt.Errorf("%s.cpus: a machine has at most this computer's %d CPUs, not %d; next: reduce %s.cpus", key, has.CPUs, r.CPUs, key))
		}
		if r.Memory > has.Memory {
			problems = append(problems, fmt.Errorf("%s.memory: a machine has at most this computer's %d MiB, not %d; next: reduce %s.memory", key, has.Memory, r.Memory, key))
		}
	}
	all := 0
	for _, n := range c.Members() {
		all += c.Resource(n.Role).Memory
	}
	if len(problems) > 0 || all <= has.Memory {
		return "", errors.Join(problems...)
	}
	next := fmt.Sprintf("reduce %s.memory (%d) or %s.memory (%d), or have fewer nodes",
		config.ControlPlane.ResourcesKey(), c.Resources.ControlPlane.Memory, config.Worker.ResourcesKey(), c.Resources.Worker.Memory)
	if uri == host.Containers {
		return fmt.Sprintf("warning: the %d containers may use %d MiB together, and this computer has %d, which they share; if it runs out, %s",
			len(c.Members()), all, has.Memory, next), nil
	}
	return "", fmt.Errorf("the %d virtual machines need %d MiB of memory together, and this computer has %d; next: %s", len(c.Members()), all, has.Memory, next)
}
