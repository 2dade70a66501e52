package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"k8slab/lab"
	"k8slab/lab/state"
	"k8slab/scenarios"
)

// record is the record of the faults that are in the lab. `labctl down` removes it.
func (a *app) record() (scenarios.Record, error) {
	c, err := a.cluster()
	if err != nil {
		return scenarios.Record{}, err
	}
	root, err := state.Root()
	return scenarios.Record{Path: filepath.Join(root, c.Name, "faults.json")}, err
}

// faultsThere are the faults on record.
func (a *app) faultsThere() ([]scenarios.Injected, error) {
	injected, err := a.record()
	if err != nil {
		return nil, err
	}
	return injected.Faults()
}

// withFaults is withEvents for commands that inject or restore faults. Only one can work at a time. steps are what is done, for who is asked
// before a cluster that labctl did not make is changed.
func (a *app) withFaults(ctx context.Context, verb string, steps []string, do func(*lab.Lab, scenarios.Record) error) error {
	return a.withEvents(verb, func(l *lab.Lab) error {
		command := "labctl " + strings.ReplaceAll(verb, "-", " ")
		release, err := l.LockFaults(command)
		if err != nil {
			return err
		}
		defer release()
		if err := l.BeforeFaults(ctx, command, steps); err != nil {
			return err
		}
		if c := l.Closed(); !c.Cluster.OverSSH() {
			if err := c.CheckMade(); err != nil {
				return err
			}
		}
		injected, err := a.record()
		if err != nil {
			return err
		}
		return do(l, injected)
	})
}

func faultOf(name string) (scenarios.Fault, error) {
	f, known := scenarios.Lookup(name)
	if !known {
		return f, usageError{scenarios.Unknown(name)}
	}
	return f, nil
}

// restore restores faults, brings the lab up again, and removes the faults from the record.
func (d driver) restore(ctx context.Context, injected scenarios.Record, faults []scenarios.Injected) error {
	var errs []error
	var listed []scenarios.Fault
	for _, i := range slices.Backward(faults) {
		if f, known := scenarios.Lookup(i.Fault); known {
			listed = append(listed, f)
		}
		step := d.lab.Events().Start(i.Node, "restore "+nameOf(i), 0)
		errs = append(errs, step.End(undo(ctx, d, i)))
	}
	step := d.lab.Events().Start("", "repair and up", 0)
	back := errors.Join(scenarios.BringBack(ctx, d), scenarios.EndUpgrade(ctx, d, listed...))
	if err := errors.Join(append(errs, step.End(back))...); err != nil {
		return err
	}
	return injected.Forget(faults...)
}

// restoreLeft undoes what killed experiments left in the lab.
func (d driver) restoreLeft(ctx context.Context, injected scenarios.Record) error {
	left, err := injected.Left()
	if err != nil || len(left) == 0 {
		return err
	}
	return d.restore(ctx, injected, left)
}

// nameOf is the fault's name, or what was damaged.
func nameOf(i scenarios.Injected) string {
	if i.Damage.Kind != "" {
		return i.Damage.String()
	}
	return i.Fault
}

// undo restores one fault. Another version of labctl may have injected one that this version does not know.
func undo(ctx context.Context, d scenarios.Driver, i scenarios.Injected) error {
	if i.Damage.Kind != "" {
		return i.Damage.Undo(ctx, d)
	}
	f, err := faultOf(i.Fault)
	if err != nil || f.Restore == nil {
		return err
	}
	target, err := scenarios.TargetOf(ctx, d, f, i.Node)
	if err != nil {
		return err
	}
	return f.Restore(ctx, target)
}
