package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"k8slab/lab"
	"k8slab/lab/cluster"
)

func (a *app) joinCommandCommand() *cobra.Command {
	var controlPlane bool
	cmd := &cobra.Command{
		Use:   "join-command",
		Short: "Print a kubeadm join command for a machine outside the lab",
		Long: `Make a bootstrap token that is valid for 30 minutes and print the kubeadm join command with it; the cluster's CA is pinned. For a control
plane it also uploads the certificates, and the command has their key. The command is a secret. While a control plane joins with it, run no other
command of labctl that joins one or cleans learners: the lab cannot see that join.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := show(a, func(l *lab.Lab) (cluster.JoinCommand, error) { return l.JoinCommand(cmd.Context(), controlPlane) },
				func(w io.Writer, c cluster.JoinCommand) { _, _ = fmt.Fprintln(w, c.Command) })
			return err
		},
	}
	cmd.Flags().BoolVar(&controlPlane, "control-plane", false, "print the command for a control plane")
	return cmd
}
