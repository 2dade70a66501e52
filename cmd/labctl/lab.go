package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"k8slab/lab"
	"k8slab/lab/event"
	"k8slab/lab/health"
	"k8slab/lab/state"
)

// labCommand lists all labs of this user.
func (a *app) labCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "lab", Short: "List your labs", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(&cobra.Command{
		Use:   "list",
		Short: "List the labs of this user, and how many of their machines run",
		Long: `List all labs of this user. With --lab NAME every other command works on one of them, without its cluster.yaml:
  labctl --lab demo kubectl -- get nodes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			labs, err := health.List(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(labs, func(w io.Writer) { printLabs(w, labs) })
		},
	})
	return cmd
}

func printLabs(w io.Writer, labs []health.Entry) {
	if len(labs) == 0 {
		_, _ = fmt.Fprintln(w, "There is no lab. `labctl up` makes one from cluster.yaml.")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "LAB\tKUBERNETES\tMACHINES\tNETWORK\tMADE\tURI")
	for _, e := range labs {
		running := fmt.Sprintf("%d of %d run", e.Running, e.Machines)
		switch {
		case e.URI == "ssh":
			running = fmt.Sprintf("%d over SSH", e.Machines)
		case e.Kubernetes == "" && e.Problem == "":
			running = "none yet"
		case e.Problem != "":
			running = "unknown"
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", e.Name, cmp.Or(e.Kubernetes, "–"), running, cmp.Or(e.Network, "–"),
			e.Made.Local().Format(time.DateTime), cmp.Or(e.URI, "–"))
	}
	_ = t.Flush()
	for _, e := range labs {
		if e.Problem != "" {
			_, _ = fmt.Fprintf(w, "%s: %s\n", e.Name, event.OneLine(e.Problem))
		}
	}
}

// labNames completes the name of a lab.
func labNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	names, err := state.Names()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// resetCommand takes a node out of the cluster, and with --remove out of the lab.
func (a *app) resetCommand() *cobra.Command {
	var remove bool
	cmd := a.nodeCommand("reset", "Remove a node from the cluster; with --remove its machine too",
		`Remove a node from the cluster: its etcd member, what kubeadm did on the machine, and its Node object. `+"`labctl up` or `labctl join`"+` bring it back.

With --remove it also deletes the machine and its disk, even if the machine does not answer. Use it for a node that cluster.yaml no longer has, or
now describes differently; `+"`labctl up`"+` makes the machine of a node that the file has.`,
		func(l *lab.Lab, ctx context.Context, name string) error {
			if remove {
				return l.Remove(ctx, name)
			}
			return l.Reset(ctx, name)
		})
	cmd.Flags().BoolVar(&remove, "remove", false, "also delete the node's machine and disk")
	return cmd
}
