package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"k8slab/lab"
)

// nodeCommands act on one node's membership.
func (a *app) nodeCommands() []*cobra.Command {
	return []*cobra.Command{
		a.nodeCommand("join", "Get a node into the cluster: check, clear what is in the way, join, prove",
			`Get a node whose machine runs into the cluster. What is in the way is named as soon as it is known and removed where that is safe: what an
earlier join left on the machine, a stale etcd member, a Node of its name that is its own. A healthy member is left as it is.`,
			(*lab.Lab).Join),
		a.nodeCommand("rejoin", "Reset a node and join it again", "Reset a node, whatever state it is in, and join it again. The etcd member of a control plane leaves only while the others keep a quorum.",
			(*lab.Lab).Rejoin),
		a.resetCommand(),
		a.repairCommand(),
	}
}

func (a *app) nodeCommand(verb, short, long string, do func(*lab.Lab, context.Context, string) error) *cobra.Command {
	return &cobra.Command{
		Use:               verb + " NODE",
		Short:             short,
		Long:              long + "\n\nExit status: 0 done, 1 not, with the first cause.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.nodeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withEvents(verb, func(l *lab.Lab) error { return do(l, cmd.Context(), args[0]) })
		},
	}
}

// withEvents does something to the lab with its events shown and logged; a failure says where the log is.
func (a *app) withEvents(verb string, do func(*lab.Lab) error) error {
	l, finish, log, err := a.watched(verb)
	if err != nil {
		return err
	}
	defer l.Close()
	a.warnOfDifferences(l)
	err = do(l)
	if err := errors.Join(err, finish()); err != nil {
		return fmt.Errorf("%w\nLog: %s", err, log)
	}
	return nil
}

// leftOf names what a repair left.
func leftOf(found []lab.Repaired) (left []string) {
	for _, f := range found {
		switch {
		case f.Left == "":
		case f.Node == "":
			left = append(left, f.Symptom)
		default:
			left = append(left, f.Symptom+" on "+f.Node)
		}
	}
	return left
}

func (a *app) repairCommand() *cobra.Command {
	var dryRun, watch bool
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "Make the repairs that are safe, one event each",
		Long: `Make the repairs that are safe, and say of everything else why it is left and what to do: containerd, kubelet and the pod network's
configuration on each node, a Node that was deleted under its kubelet, learners that no join will promote, nodes that are in no cluster.

Exit status: 0 nothing is left, 1 something is.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withEvents("repair", func(l *lab.Lab) error {
				if watch {
					return l.RepairWatch(cmd.Context(), every)
				}
				found, err := l.Repair(cmd.Context(), dryRun)
				switch left := leftOf(found); {
				case len(left) > 0:
					err = errors.Join(fmt.Errorf("left, because it cannot be repaired safely: %s", strings.Join(left, ", ")), err)
				case err == nil && len(found) == 0:
					_, _ = fmt.Fprintln(a.stderr, "nothing to repair")
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be repaired")
	cmd.Flags().BoolVar(&watch, "watch", false, "go on until interrupted")
	cmd.Flags().DurationVar(&every, "every", 10*time.Second, "pause between two looks with --watch")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "watch")
	return cmd
}
