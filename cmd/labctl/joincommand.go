package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
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
			l, err := a.lab()
			if err != nil {
				return err
			}
			defer l.Close()
			c, err := l.JoinCommand(cmd.Context(), controlPlane)
			if err != nil {
				return err
			}
			return a.print(c, func(w io.Writer) { _, _ = fmt.Fprintln(w, c.Command) })
		},
	}
	cmd.Flags().BoolVar(&controlPlane, "control-plane", false, "print the command for a control plane")
	return cmd
}
