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

func (a *app) joinCommand() *cobra.Command {
	return a.nodeCommand("join", "Join a node to the cluster, and remove what blocks the join",
		`Join a node to the cluster. Its machine must be running. What blocks the join is reported as soon as it is known, and removed where that is
safe: leftovers of an earlier join on the machine, a stale etcd member, the Node object of the same machine. A healthy member is left as it is.`,
		(*lab.Lab).Join)
}

func (a *app) rejoinCommand() *cobra.Command {
	return a.nodeCommand("rejoin", "Reset a node and join it again",
		"Reset a node, whatever state it is in, and join it again. The etcd member of a control plane leaves only while the others keep a quorum.",
		(*lab.Lab).Rejoin)
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
	err = errors.Join(err, finish())
	if err == nil || errors.Is(err, lab.ErrNotUp) { // nothing was begun
		return err
	}
	return fmt.Errorf("%w\nLog: %s", err, log)
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
		Short: "Apply safe repairs; for everything else, explain why not and what to do",
		Long: `Apply safe repairs; for everything else, explain why not and what to do. It repairs containerd, kubelet and the configuration of the pod network
on each node, a Node object that was deleted while its kubelet runs, etcd learners that no join will promote, and nodes that are in no cluster.

Exit status: 0 everything is repaired, 1 something is not.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withEvents("repair", func(l *lab.Lab) error {
				if watch {
					return l.RepairWatch(cmd.Context(), every)
				}
				found, err := l.Repair(cmd.Context(), dryRun)
				switch left := leftOf(found); {
				case len(left) > 0:
					err = errors.Join(fmt.Errorf("not repaired (needs a person): %s", strings.Join(left, ", ")), err)
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
