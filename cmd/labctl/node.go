package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"k8slab/lab"
	"k8slab/lab/state"
)

func (a *app) joinCommand() *cobra.Command {
	return a.nodeCommand("join", "Join a node to the cluster, and remove what blocks the join",
		`Join a node to the cluster. Its machine must be running. It reports what blocks the join as soon as it knows, and removes it where that is
safe: leftovers of an earlier join on the machine, a stale etcd member, the Node object of the same machine. It does not change a healthy member.`,
		(*lab.Lab).Join)
}

func (a *app) rejoinCommand() *cobra.Command {
	return a.nodeCommand("rejoin", "Reset a node and join it again",
		"Reset a node, whatever state it is in, and join it again. It removes a control plane's etcd member only if the others keep a quorum.",
		(*lab.Lab).Rejoin)
}

func (a *app) nodeCommand(verb, short, long string, do func(*lab.Lab, context.Context, string) error) *cobra.Command {
	return &cobra.Command{
		Use:               verb + " NODE",
		Short:             short,
		Long:              long + "\n\nExit status: 0 done, 1 failed, with its first cause.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.nodeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withEvents(verb, func(l *lab.Lab) error { return do(l, cmd.Context(), args[0]) })
		},
	}
}

// withEvents works on the lab, and shows and logs the events. An error says where the log is.
func (a *app) withEvents(verb string, do func(*lab.Lab) error) error {
	l, finish, log, err := a.watched(verb)
	if err != nil {
		return err
	}
	defer l.Close()
	a.warnOfDifferences(l)
	err = do(l)
	err = errors.Join(err, finish())
	if err == nil || errors.Is(err, state.ErrNotUp) { // nothing was begun
		return err
	}
	return fmt.Errorf("%w\nLog: %s", err, log)
}
