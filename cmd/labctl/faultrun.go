package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"k8slab/lab"
	"k8slab/lab/event"
	"k8slab/scenarios"
)

func (a *app) faultRunCommand() *cobra.Command {
	var on, evidence string
	var junit junitFile
	var consent breaking
	cmd := &cobra.Command{
		Use:   "run NAME[@NODE]...",
		Short: "Inject faults, diagnose and recover each, and prove the lab healthy after it",
		Long: `For each fault, start from a healthy lab: inject it, wait for its effect, diagnose it, recover, and prove that the lab is as healthy as
before: apart from what the fault itself affects, no Node, certificate, etcd member or workload data was lost, and no machine restarted.
NAME@w1+NAME@w2 injects two faults at the same time. What a killed run left in the lab is undone first.

Exit status: 0 all passed or do not apply here, 1 one failed.`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: faultNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			var rounds []scenarios.Round
			for _, text := range args {
				r, err := roundOf(text, on)
				if err != nil {
					return err
				}
				rounds = append(rounds, r)
			}
			placed := slices.Concat(rounds...)
			if err := errors.Join(a.mayBreak(consent, placed...), junit.check()); err != nil {
				return err
			}
			if err := evidenceDir(evidence); err != nil {
				return err
			}
			steps := faultSteps(placed...)
			return a.withExperiments(cmd.Context(), "fault-run", steps, junit, func(l *lab.Lab, injected scenarios.Record) (results []scenarios.Result, err error) {
				d := driver{a, l}
				if err := d.restoreLeft(cmd.Context(), injected); err != nil {
					for _, r := range rounds {
						results = append(results, r.NotBegun(err))
					}
					return results, err
				}
				for _, r := range rounds {
					results = append(results, playRound(cmd.Context(), d, r, scenarios.Options{Evidence: evidence, Record: injected}))
					if err := context.Cause(cmd.Context()); err != nil {
						return results, err
					}
				}
				return results, nil
			})
		},
	}
	cmd.Flags().StringVar(&on, "node", "", "the node for faults given without one; the default is the last node of a role that the fault is for")
	cmd.Flags().StringVar(&evidence, "evidence", "", "keep a diagnosis bundle of each failed experiment in this directory")
	junit.flags(cmd)
	consent.flags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("node", a.nodeNames)
	return cmd
}

// roundOf parses NAME[@NODE][+NAME[@NODE]]…; node is the default.
func roundOf(text, node string) (scenarios.Round, error) {
	r, err := scenarios.ParseRound(text)
	if err != nil {
		return nil, usageError{err}
	}
	for i := range r {
		r[i].Node = cmp.Or(r[i].Node, node)
	}
	return r, nil
}

// evidenceDir makes the directory that --evidence names.
func evidenceDir(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("--evidence: %w; name a directory that you can write to", err)
	}
	return nil
}

// withExperiments prints the results of experiments; a failed one is exit status 1.
func (a *app) withExperiments(ctx context.Context, verb string, steps []string, junit junitFile,
	do func(*lab.Lab, scenarios.Record) ([]scenarios.Result, error),
) error {
	quiet := *a
	quiet.output = "text" // events go to stderr, the results to stdout
	var results []scenarios.Result
	err := quiet.withFaults(ctx, verb, steps, func(l *lab.Lab, injected scenarios.Record) (err error) {
		results, err = do(l, injected)
		return err
	})
	if results != nil {
		err = errors.Join(err, a.print(results, func(w io.Writer) { printResults(w, results) }), junit.write(verb, results))
	}
	if err != nil {
		return err
	}
	for _, r := range results {
		if r.Err() != nil {
			return exitStatus(exitFailed)
		}
	}
	return nil
}

func printResults(w io.Writer, results []scenarios.Result) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "FAULT\tNODE\tRESULT\tDIAGNOSIS\tEFFECT\tNAMED\tRECOVERED\tALL\tREASON")
	for _, r := range results {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.1fs\t%.1fs\t%.1fs\t%.1fs\t%s\n",
			r.Fault, r.Node, r.Class, cmp.Or(string(r.Symptom), "nothing"), r.ToEffect, r.ToCause, r.ToRecover, r.Seconds, event.OneLine(r.Reason))
	}
	_ = t.Flush()
}
