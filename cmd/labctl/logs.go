package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"k8slab/config"
	"k8slab/lab/node"
)

// knownUnits are the services that people look for on a node.
var knownUnits = []string{"containerd", "keepalived", "kubelet", "ssh", "systemd-networkd"}

// journal is what `labctl logs` shows.
type journal struct {
	unit   string
	since  time.Duration
	lines  int
	follow bool
}

func (a *app) logsCommand() *cobra.Command {
	var j journal
	cmd := &cobra.Command{
		Use:   "logs NODE",
		Short: "Show the journal of a node",
		Example: `  labctl logs w1 --unit kubelet --since 10m
  labctl logs w1 --unit containerd -n 50 -f`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.nodeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if j.since < 0 || j.lines < 0 {
				return usageError{errors.New("--since and --lines must not be negative")}
			}
			return a.onNode(args[0], func(n *node.Node) error {
				ctx := cmd.Context()
				if j.unit != "" {
					if err := checkUnit(ctx, n, j.unit); err != nil {
						return err
					}
				}
				err := n.Run(ctx, node.Command{Argv: j.argv(), Stdout: a.stdout, Stderr: a.stderr, ReadOnly: true})
				if j.follow && errors.Is(context.Cause(ctx), errInterrupted) {
					return exitStatus(exitInterrupted) // this is how one ends it
				}
				return err
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&j.unit, "unit", "", "only this systemd unit, for example kubelet or containerd")
	flags.DurationVar(&j.since, "since", 0, "only what is newer than this, for example 10m")
	flags.IntVarP(&j.lines, "lines", "n", 0, "only this many lines, the last ones")
	flags.BoolVarP(&j.follow, "follow", "f", false, "wait for new lines and show them, until Ctrl-C")
	_ = cmd.RegisterFlagCompletionFunc("unit", cobra.FixedCompletions(knownUnits, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (j journal) argv() []string {
	argv := []string{"journalctl", "--no-pager", "--output=short-iso"}
	if j.unit != "" {
		argv = append(argv, "--unit="+j.unit)
	}
	if j.since > 0 {
		argv = append(argv, fmt.Sprintf("--since=-%ds", int(j.since.Seconds()))) // by the node's own clock
	}
	if j.lines > 0 {
		argv = append(argv, "--lines="+strconv.Itoa(j.lines))
	}
	if j.follow {
		argv = append(argv, "--follow")
	}
	return argv
}

// reader runs commands that change nothing. *node.Node is one.
type reader interface {
	Name() string
	Read(ctx context.Context, argv ...string) (string, error)
}

// checkUnit refuses a unit that the node never had. journalctl would show no entries and no error.
func checkUnit(ctx context.Context, n reader, unit string) error {
	var exit *node.ExitError
	_, err := n.Read(ctx, "systemctl", "cat", "--", unit)
	if !errors.As(err, &exit) {
		return err
	}
	// A transient unit that has ended is only in the journal.
	out, err := n.Read(ctx, "journalctl", "--quiet", "--no-pager", "--lines=1", "--unit="+unit)
	if err != nil && !errors.As(err, &exit) || out != "" {
		return err
	}
	return fmt.Errorf("%s has no unit %q%s; `labctl ssh %[1]s systemctl list-units` lists them", n.Name(), unit, config.DidYouMean(unit, knownUnits))
}
