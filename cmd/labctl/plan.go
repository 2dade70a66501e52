package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"k8slab/lab"
	"k8slab/lab/bringup"
	"k8slab/lab/event"
	"k8slab/lab/provision"
	"k8slab/lab/state"
)

func (a *app) planCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "plan",
		Short: "Print what up would do, and which steps are done",
		Long: `Print the steps of labctl up in order, and mark those that are done in the existing lab. Nothing is changed.
The first column has the names for labctl up --until STEP, which stops after that step.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.plan(cmd.Context(), bringup.StageProof) },
	}
}

// plan prints the plan up to a stage.
func (a *app) plan(ctx context.Context, until bringup.Stage) error {
	described, err := a.cluster()
	if err != nil {
		return err
	}
	l, err := lab.New(described, lab.Options{})
	if err != nil {
		return err
	}
	defer l.Close()
	changed := l.Closed().Differences
	steps, unseen := l.Plan(ctx)
	last := slices.Index(bringup.Stages(), until)
	steps = slices.DeleteFunc(steps, func(s bringup.Step) bool { return slices.Index(bringup.Stages(), s.Stage) > last })
	refused := l.Closed().CheckDescribed(true)
	plan := struct {
		Changed []state.Difference `json:"changed,omitempty"`
		Steps   []bringup.Step     `json:"steps"`
		Unseen  string             `json:"unseen,omitempty"` // why not all that is done is known
	}{Changed: changed, Steps: steps}
	if unseen != nil {
		plan.Unseen = event.Redact(unseen.Error())
	}
	err = a.print(plan, func(w io.Writer) {
		printDifferences(w, changed)
		if refused != nil {
			_, _ = fmt.Fprintln(w, "up refuses until what cannot change in place is resolved. Without that:")
		}
		printPlan(w, steps, unseen == nil)
	})
	if unseen != nil {
		_, _ = fmt.Fprintln(a.stderr, "warning: what of it is done is not known:", unseen)
	}
	return errors.Join(err, provision.CheckSize(l.Closed()))
}

// printPlan marks the steps that are done, if anything of the lab exists, and those of which it is not known.
func printPlan(w io.Writer, steps []bringup.Step, known bool) {
	begun := known && slices.ContainsFunc(steps, func(s bringup.Step) bool { return s.Done })
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range steps {
		what := s.Action
		if s.After != "" {
			what += " (after " + s.After + ")"
		}
		switch {
		case s.Done:
			what = "done: " + s.Action
		case begun:
			what = "to do: " + what
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\n", s.Stage, s.Node, what)
	}
	_ = t.Flush()
}
