package scenarios

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"k8slab/lab/symptom"
	"k8slab/lab/wait"
)

// leaveFault recovers the lab from the faults, until it is healthy.
func (e *experiment) leaveFault(ctx context.Context) error {
	if e.options.Tool != nil {
		return e.repairWithTool(ctx)
	}
	for _, f := range e.faults {
		if !f.Stops() {
			continue
		}
		if len(f.Recover) > 0 {
			e.step("refuse")
			if err := f.refused(ctx); err != nil {
				return err
			}
		}
		if err := e.act(ctx, f); err != nil {
			return err
		}
	}
	begun := time.Now()
	if err := e.recover(ctx); err != nil {
		return err
	}
	return e.settle(ctx, begun)
}

// settle waits until the recovery that began then has led to a healthy lab without the effects, and removes what the faults may leave.
func (e *experiment) settle(ctx context.Context, begun time.Time) error {
	e.step("healthy after")
	if err := e.target.await(ctx, "a healthy lab", healthyBudget, 300*time.Millisecond, func(ctx context.Context) error { return healthy(ctx, e.target) }); err != nil {
		return err
	}
	if err := e.awaitEffectGone(ctx); err != nil {
		return err
	}
	e.result.ToRecover = time.Since(begun).Seconds()
	return e.restore(ctx)
}

// diagnoseAgain waits until the diagnosis finds nothing that fails.
func (e *experiment) diagnoseAgain(ctx context.Context) error {
	e.step("diagnose again")
	return e.target.await(ctx, "the diagnosis to find nothing that fails", nameBudget, time.Second, func(ctx context.Context) error {
		first, err := diagnosed(ctx, e.target)
		if err == nil && first.Level == symptom.Fail {
			err = fmt.Errorf("%s on %s: %s", first.Symptom, first.Node, first.Meaning)
		}
		return err
	})
}

// awaitEffectGone waits until the effects are gone, before Restore removes anything.
func (e *experiment) awaitEffectGone(ctx context.Context) error {
	for _, f := range e.faults {
		if f.Outside || f.Once || f.Effect == nil {
			continue
		}
		e.step("wait until the effect is gone")
		err := e.target.await(ctx, "the effect of "+f.Name+" to be gone", goneBudget, 300*time.Millisecond, func(ctx context.Context) error {
			err := f.Effect(ctx, f.target)
			if err == nil {
				return errors.New("it is still there, although the lab looks healthy")
			}
			if _, gone := errors.AsType[absence](err); gone {
				return nil
			}
			return err // the cluster cannot tell
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// recover runs the commands that recover from the faults. With several, one recovery may have to wait for another.
func (e *experiment) recover(ctx context.Context) error {
	for pending := e.faults; len(pending) > 0; {
		var left []placed
		var errs []error
		for _, f := range pending {
			if err := e.end(ctx, f); err != nil {
				left, errs = append(left, f), append(errs, err)
			}
		}
		if len(left) == len(pending) {
			return errors.Join(errs...)
		}
		pending = left
	}
	return nil
}

func (e *experiment) end(ctx context.Context, f placed) error {
	for n, args := range f.Calls(f.target.Node) {
		for i, a := range args {
			if a == File {
				args[i] = filepath.Join(e.dir, f.Name)
			}
		}
		e.did("labctl " + strings.Join(f.Calls(f.target.Node)[n], " "))
		if _, err := f.target.Labctl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// did is a step of the recovery.
func (e *experiment) did(command string) {
	e.step(command)
	e.result.Recovery = append(e.result.Recovery, command)
}

// refused checks that labctl refuses the recovery because of the symptom.
func (f placed) refused(ctx context.Context) error {
	for _, args := range f.Calls(f.target.Node) {
		_, err := f.target.Labctl(ctx, args...)
		if err == nil {
			return fmt.Errorf("labctl %s should have been refused", strings.Join(args, " "))
		}
		if !strings.Contains(err.Error(), string(f.Symptom)) {
			return fmt.Errorf("labctl %s was refused, but not for %s: %w", strings.Join(args, " "), f.Symptom, err)
		}
	}
	return nil
}

// act does what only a person may: the commands of the hint, as they are written there. The fault's own script does what no command can.
func (e *experiment) act(ctx context.Context, f placed) error {
	if f.ByHand != "" {
		e.result.Person = ByHand
		e.did("(" + f.ByHand + ")")
		if err := f.Restore(ctx, f.target); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
		return nil
	}
	commands := f.Remedy.Commands(e.named.Hint)
	if len(commands) == 0 {
		return fmt.Errorf("the hint of %s on %s has no command of the remedy %s: %s", e.named.Symptom,
			cmp.Or(e.named.Node, "the cluster"), f.Remedy.Text, e.named.Hint)
	}
	e.result.Person = ByHint
	for _, c := range commands {
		e.did(c.String())
		if err := f.target.follow(ctx, e.named.Node, c); err != nil {
			return fmt.Errorf("the hint of %s: %s: %w", e.named.Symptom, c, err)
		}
	}
	return nil
}

// follow runs a command of a hint where it belongs: on this computer, on a control plane, or on the finding's node.
func (t Target) follow(ctx context.Context, node string, c symptom.Command) (err error) {
	switch {
	case c.Argv[0] == "labctl":
		_, err = t.Labctl(ctx, c.Argv[1:]...)
	case c.Argv[0] == "kubectl":
		_, err = t.kubectl(ctx, c.Argv[1:]...)
	case c.ControlPlane:
		_, err = t.Run(ctx, t.ControlPlane, c.Argv...)
	case node == "":
		err = errors.New("the finding does not say on which node")
	default:
		_, err = t.Run(ctx, node, c.Argv...)
	}
	return err
}

func (e *experiment) restore(ctx context.Context) error {
	var errs []error
	for _, f := range e.faults {
		if f.Restore == nil {
			continue
		}
		if err := f.Restore(ctx, f.target); err != nil {
			errs = append(errs, fmt.Errorf("restore %s: %w", f.Name, err))
		}
	}
	return errors.Join(errs...)
}

// rescue saves the evidence of an experiment that failed and brings the lab back, so that the next one can begin. After Ctrl-C it leaves the
// faults in the lab and in the record.
func (e *experiment) rescue(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	e.saveEvidence(ctx, e.result.Fault+"-"+e.result.Node)
	e.step("take the fault back and bring the lab up again")
	err := errors.Join(e.restore(ctx), BringBack(ctx, e.target), EndUpgrade(ctx, e.target, e.faults[0].Fault))
	e.result.Restored = err == nil
	if err == nil {
		err = e.options.Record.Forget(e.written...)
	}
	return errors.Join(err, e.forget(ctx))
}

// saveEvidence saves a diagnosis bundle, if there is a directory for evidence.
func (e *experiment) saveEvidence(ctx context.Context, of string) {
	if e.options.Evidence == "" {
		return
	}
	e.step("save evidence")
	name := fmt.Sprintf("%s-%s.tar.gz", of, e.result.Began.Format("20060102T150405"))
	_, _ = e.target.Labctl(ctx, "diagnose", "--bundle", filepath.Join(e.options.Evidence, name)) // says 1 for a broken lab
}

// BringBack makes a lab healthy after its faults were restored. `repair` handles members, etcd's members and pods' sandboxes; `up` does the
// rest, such as starting machines, and proves that the lab is healthy.
func BringBack(ctx context.Context, d Driver) error {
	_, _ = d.Labctl(ctx, "repair")
	_, err := d.Labctl(ctx, "up")
	if err == nil {
		return nil
	}
	// In a cluster that exists up looks once, and pods that were repaired may not have started.
	if wait.For(ctx, "a healthy lab", goneBudget, time.Second, func(ctx context.Context) error { return healthy(ctx, Target{Driver: d}) }) == nil {
		return nil
	}
	return fmt.Errorf("the lab did not come back: %w", err)
}
