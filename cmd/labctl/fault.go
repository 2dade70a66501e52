package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"k8slab/lab"
	"k8slab/scenarios"
)

func (a *app) faultCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fault",
		Short: "Break the lab as clusters break in real life, and recover it",
		Long: `Break the lab as clusters break in real life, and recover it. inject leaves the fault in place for you to look at; run makes a whole experiment:
a healthy lab, the fault, its effect, the diagnosis that names it, the recovery, and the proof that the lab is as healthy as before and lost nothing.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.faultListCommand(), a.faultInjectCommand(), a.faultRestoreCommand(), a.faultRunCommand())
	return cmd
}

// faultNames completes names of faults.
func faultNames(_ *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	for _, f := range scenarios.All() {
		if !slices.Contains(args, f.Name) {
			names = append(names, f.Name+"\t"+f.Story)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) faultInjectCommand() *cobra.Command {
	var on string
	var consent breaking
	cmd := &cobra.Command{
		Use:   "inject NAME",
		Short: "Inject a fault and leave it in place, to inspect, diagnose and undo",
		Long: `Inject a fault and leave it in place, to inspect, diagnose and undo. A fault that blocks joins resets its node first. The command ends when the
fault has taken effect.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: faultNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := faultOf(args[0])
			if err != nil {
				return err
			}
			placed := scenarios.Placement{Fault: f, Node: on}
			if err := a.mayBreak(consent, placed); err != nil {
				return err
			}
			return a.withFaults(cmd.Context(), "fault-inject", faultSteps(placed), func(l *lab.Lab, injected scenarios.Record) error {
				target, err := scenarios.TargetOf(cmd.Context(), driver{a, l}, f, on)
				if err != nil {
					return err
				}
				if err := injected.Add(scenarios.Injected{Fault: f.Name, Node: target.Node, Time: time.Now().UTC()}); err != nil {
					return err
				}
				step := l.Events().Start(target.Node, f.Name, 0)
				if err := step.End(f.Make(cmd.Context(), target, l.TimeScale(), func(text string) { step.Progress("%s", text) })); err != nil {
					return resumableError{fmt.Errorf("%w\nnext: labctl fault restore", err), "undo the incomplete fault with labctl fault restore"}
				}
				_, _ = fmt.Fprintln(a.stderr, advice(f, target.Node))
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&on, "node", "", "the node to inject it on; the default is the last node of a role that the fault is for")
	_ = cmd.RegisterFlagCompletionFunc("node", a.nodeNames)
	consent.flags(cmd)
	return cmd
}

// advice says what to do with an injected fault.
func advice(f scenarios.Fault, node string) string {
	end := quoted(f.Calls(node))
	switch {
	case len(f.Recover) == 0:
		return "Look with `labctl diagnose`, which says how to end it; `labctl fault restore` undoes the fault"
	case f.Stops():
		return "Look with `labctl diagnose`; " + end + " is refused until you have done what it says; `labctl fault restore` undoes the fault"
	}
	return "Look with `labctl diagnose`; end it with " + end + "; `labctl fault restore` undoes the fault, or the rest of it"
}

func quoted(calls [][]string) string {
	var commands []string
	for _, c := range calls {
		commands = append(commands, "`labctl "+strings.Join(c, " ")+"`")
	}
	return strings.Join(commands, " and ")
}

func (a *app) faultRestoreCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "restore",
		Short: "Undo the injected faults, repair what they did, and bring the lab up again",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			steps := []string{"undo the injected faults", "labctl repair"}
			if c, _, err := a.load(); err == nil && c.OverSSH() { // nobody is asked about nothing
				if left, err := a.faultsThere(); err == nil && len(left) == 0 {
					_, _ = fmt.Fprintln(a.stderr, "no fault was injected")
					return nil
				}
			}
			return a.withFaults(cmd.Context(), "fault-restore", steps, func(l *lab.Lab, injected scenarios.Record) error {
				faults, err := injected.Faults()
				if err != nil {
					return err
				}
				if len(faults) == 0 {
					_, _ = fmt.Fprintln(a.stderr, "no fault was injected")
					return nil
				}
				return driver{a, l}.restore(cmd.Context(), injected, faults)
			})
		},
	}
}
