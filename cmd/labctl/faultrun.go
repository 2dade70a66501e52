package main

import (
	"errors"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"k8slab/scenarios"
)

func (a *app) faultRunCommand() *cobra.Command {
	var on string
	var consent breaking
	t := trial{verb: "fault-run", show: func(w io.Writer, r scenarios.Report) { printResults(w, r.Results) }, failed: notPassed}
	cmd := &cobra.Command{
		Use:   "run NAME[@NODE]...",
		Short: "Inject faults, diagnose and recover each, and prove the lab healthy after it",
		Long: `For each fault, start from a healthy lab: inject it, wait for its effect, diagnose it, recover, and prove that the lab is as healthy as
before: apart from what the fault itself affects, no Node, certificate, etcd member or workload data was lost, and no machine restarted.
NAME@w1+NAME@w2 injects two faults at the same time. What a killed run left in the lab is undone first.

Exit status: 0 all passed or do not apply here, 1 one failed or could not be set up.`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: faultNames,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if t.rounds, err = roundsOf(args, on); err != nil {
				return err
			}
			placed := slices.Concat(t.rounds...)
			if err := errors.Join(a.mayBreak(consent, placed...), t.files.check()); err != nil {
				return err
			}
			if err := evidenceDir(t.evidence); err != nil {
				return err
			}
			t.steps = faultSteps(placed...)
			return a.try(cmd.Context(), t)
		},
	}
	cmd.Flags().StringVar(&on, "node", "", "the node for faults given without one; the default is the last node of a role that the fault is for")
	cmd.Flags().StringVar(&t.evidence, "evidence", "", "keep a diagnosis bundle of each failed experiment in this directory")
	t.files.flags(cmd)
	consent.flags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("node", a.nodeNames)
	return cmd
}

// notPassed tells whether an experiment failed or could not be set up.
func notPassed(r scenarios.Result) bool { return r.Err() != nil }
