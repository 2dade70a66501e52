package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"k8slab/lab"
	"k8slab/scenarios"
)

// breaking is the flag --i-break: the name of the cluster that a person wants to break, although labctl did not make it.
type breaking struct{ name string }

func (b *breaking) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&b.name, "i-break", "", "with machines: ssh, the `NAME` of the cluster that you want to break")
}

// mayBreak refuses faults in a cluster that labctl did not make, unless the person names it and the faults are for such a cluster.
func (a *app) mayBreak(b breaking, faults ...scenarios.Placement) error {
	c, _, err := a.load()
	if err != nil {
		return err
	}
	if b.name != "" && b.name != c.Name {
		return usageError{fmt.Errorf("--i-break names %s, and not this cluster; next: if you want to break it, --i-break %s", b.name, c.Name)}
	}
	if !c.OverSSH() {
		return nil
	}
	if b.name == "" {
		return usageError{fmt.Errorf("labctl did not make %s, and a fault breaks it; next: if you want that, --i-break %[1]s", c.Name)}
	}
	var errs []error
	for _, f := range faults {
		if why := f.Fault.LabsOnly(); why != "" {
			errs = append(errs, fmt.Errorf("%s is only for labs: %s", f.Fault.Name, why))
		}
	}
	if len(errs) > 0 {
		return usageError{fmt.Errorf("%w\nlabctl fault list names those for %s", errors.Join(errs...), c.Name)}
	}
	return nil
}

// faultSteps say what the faults do and how they end, for who is asked before.
func faultSteps(faults ...scenarios.Placement) (steps []string) {
	for _, p := range faults {
		node := p.Node
		if node == "" {
			node = "the last " + string(p.Fault.Roles[len(p.Fault.Roles)-1])
		}
		if p.Fault.Outside {
			steps = append(steps, fmt.Sprintf("take %s out of the cluster (labctl reset), and join it again in the end", node))
		}
		steps = append(steps, fmt.Sprintf("break %s: %s: %s", node, p.Fault.Name, p.Fault.Story))
		end := "end it"
		if len(p.Fault.Recover) > 0 {
			end += " with " + quoted(p.Fault.Calls(node))
		}
		steps = append(steps, end+"; labctl fault restore takes it back at any time")
	}
	return steps
}

// noFaultLeft refuses to forget a cluster that stays while there are faults in it, because the record that takes them back would go too.
func (a *app) noFaultLeft(l *lab.Lab) error {
	if !l.Closed().Cluster.OverSSH() {
		return nil
	}
	left, err := a.faultsThere()
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%s is still in %s (%s); next: labctl fault restore", nameOf(left[0]), l.Name(), left[0].Node)
	}
	return err
}
