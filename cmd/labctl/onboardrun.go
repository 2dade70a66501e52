package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"k8slab/lab/event"
	"k8slab/lab/machine"
	"k8slab/lab/metrics"
	"k8slab/lab/onboard"
	"k8slab/lab/onboard/report"
	"k8slab/lab/repair"
)

func (a *app) onboard(cmd *cobra.Command, node string, o onboardOptions) error {
	s, err := a.site(cmd, node, o)
	if err != nil {
		return err
	}
	defer s.close()
	ctx := cmd.Context()
	switch {
	case o.status:
		return a.onboardStatus(s, o)
	case o.rollback && o.dryRun:
		return a.undoable(s)
	case o.dryRun:
		return a.onboardPlan(ctx, s, o)
	case o.rollback:
		if err := a.confirm(ctx, s); err != nil {
			return errors.Join(err, s.Events.Close())
		}
		err = s.engine.Rollback(ctx)
	default:
		err = s.onboard(ctx, o)
	}
	return a.ended(ctx, s, o, errors.Join(err, s.Events.Close()))
}

// onboard runs the phases. With --auto-fix a failed pre-validation is repaired and repeated once.
func (s *site) onboard(ctx context.Context, o onboardOptions) error {
	err := s.engine.Run(ctx, onboard.Options{Resume: o.resume, SkipValidation: o.skipValidation})
	if err == nil || !o.autoFix || ctx.Err() != nil || !s.preFailed() {
		return err
	}
	if fixed := s.fix(ctx); fixed != nil {
		return fmt.Errorf("%w\nthe repair (--auto-fix): %w", err, fixed)
	}
	return s.engine.Run(ctx, onboard.Options{Resume: true})
}

// preFailed tells whether it is the pre-validation that failed.
func (s *site) preFailed() bool {
	view, err := s.Store.Status()
	return err == nil && view.State != nil && view.CurrentPhase == onboard.PreValidation && view.PhaseStatus[onboard.PreValidation] == onboard.Failed
}

// fix makes the safe repairs, in the lab and on the node's machine if that runs. The next validation says what is left.
func (s *site) fix(ctx context.Context) error {
	if _, err := s.lab.Repair(ctx, false, repair.Services); err != nil {
		return err
	}
	state, admitted, err := s.lab.Machine(ctx, s.Target.Node)
	if err != nil || state != machine.Running || !admitted {
		return err
	}
	_, err = s.lab.Preflight(ctx, s.Target.Node, true)
	return err
}

// ended shows the result, writes the report, and says how to go on.
func (a *app) ended(ctx context.Context, s *site, o onboardOptions, err error) error {
	if view, looked := s.Store.Status(); looked == nil && view.State != nil && a.output == "text" {
		_ = view.WriteText(a.stdout)
	}
	if o.report {
		err = errors.Join(err, a.onboardReport(s))
	}
	if warning := s.writeMetrics(context.WithoutCancel(ctx)); warning != nil {
		_, _ = fmt.Fprintln(a.stderr, "warning: the onboarding's metrics are not on the node:", warning)
	}
	if a.verbose {
		for _, c := range s.changes() {
			_, _ = fmt.Fprintln(a.stderr, "changed:", c)
		}
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%w\nLog: %s", err, s.log)
	if ctx.Err() == nil {
		return err
	}
	how := fmt.Sprintf("continue with labctl onboard %s --resume, or undo what was done with --rollback", s.Target.Node)
	if o.rollback {
		how = fmt.Sprintf("continue with labctl onboard %s --rollback", s.Target.Node)
	}
	return resumableError{err, how}
}

// metricsBudget bounds the copy of a small file to the node.
const metricsBudget = 10 * time.Second

// writeMetrics copies the onboarding's metrics to the lab's node, if the node is reachable.
func (s *site) writeMetrics(ctx context.Context) error {
	if s.lab == nil || s.lab.Closed().Cluster.OverSSH() { // a lab's nodes have a node_exporter that reads them
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, metricsBudget)
	defer cancel()
	view, err := s.Store.Status()
	if err != nil || view.State == nil {
		return err
	}
	state, admitted, err := s.lab.Machine(ctx, s.Target.Node)
	if err != nil || state != machine.Running || !admitted {
		return err
	}
	all := &metrics.Set{}
	report.AddMetrics(all, view.State)
	return s.lab.WriteOnboardingMetrics(ctx, s.Target.Node, all)
}

func (a *app) onboardStatus(s *site, o onboardOptions) error {
	view, err := s.Store.Status()
	if err != nil {
		return err
	}
	var failed error
	err = a.print(view, func(w io.Writer) { failed = view.WriteText(w) })
	if err := errors.Join(err, failed); err != nil || !o.report {
		return err
	}
	return a.onboardReport(s)
}

func (a *app) onboardPlan(ctx context.Context, s *site, o onboardOptions) error {
	plan, err := s.engine.Plan(ctx, onboard.Options{Resume: o.resume, SkipValidation: o.skipValidation})
	if plan == nil {
		return err
	}
	return errors.Join(a.print(plan, func(w io.Writer) { printOnboardPlan(w, plan) }), err)
}

func printOnboardPlan(w io.Writer, plan []onboard.Planned) {
	for i, p := range plan {
		_, _ = fmt.Fprintf(w, "%d. %s: %s\n", i+1, p.Phase, p.Purpose)
		if p.Note != "" {
			_, _ = fmt.Fprintf(w, "   %s\n", event.OneLine(p.Note))
		}
		for _, step := range p.Steps {
			_, _ = fmt.Fprintf(w, "   - %s\n", event.OneLine(step))
		}
	}
	_, _ = fmt.Fprintln(w, "nothing was changed (--dry-run)")
}

// undoable lists what a rollback would do.
func (a *app) undoable(s *site) error {
	changes, err := s.engine.Undoable()
	if err != nil {
		return err
	}
	return a.print(changes, func(w io.Writer) {
		printUndoable(w, changes)
		_, _ = fmt.Fprintln(w, "nothing was changed (--dry-run)")
	})
}

func printUndoable(w io.Writer, changes []onboard.Change) {
	if len(changes) == 0 {
		_, _ = fmt.Fprintln(w, "no change is left to undo; the onboarding is closed as rolled back")
	}
	for i, c := range changes {
		done := ""
		if c.Status == onboard.Intended {
			done = " (if it was made)"
		}
		_, _ = fmt.Fprintf(w, "%d. %s: %s%s\n", i+1, c.Phase, event.OneLine(c.Undo), done)
	}
}

var errNotConfirmed = errors.New("nothing was rolled back")

// confirm shows what a rollback will do and asks a person, unless --yes has answered.
func (a *app) confirm(ctx context.Context, s *site) error {
	changes, err := s.engine.Undoable()
	if err != nil {
		return err
	}
	printUndoable(a.stderr, changes)
	yes, err := a.ask(ctx, fmt.Sprintf("Roll back the onboarding of %s in %s?", s.Target.Node, s.Target.Cluster), a.yes)
	if err == nil && !yes {
		err = errNotConfirmed
	}
	return err
}

// onboardReport writes the report beside the logs, and says where.
func (a *app) onboardReport(s *site) error {
	view, err := s.Store.Status()
	if err != nil {
		return err
	}
	record, err := s.Seen.Read()
	if err != nil { // the state tells the most of it
		_, _ = fmt.Fprintln(a.stderr, "warning:", err)
	}
	dir := s.Dir
	if s.log != "" {
		dir = filepath.Dir(s.log)
	}
	paths, err := report.Write(dir, report.Input{State: view.State, Findings: record.Findings, Before: record.Before, After: record.After, Log: s.log})
	for _, path := range paths {
		_, _ = fmt.Fprintln(a.stderr, "report:", path)
	}
	return err
}
