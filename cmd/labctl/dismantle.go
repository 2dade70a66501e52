package main

import (
	"github.com/spf13/cobra"

	"k8slab/lab"
)

func (a *app) dismantleCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dismantle",
		Short: "Take a cluster of machines that exist apart; everything in it is lost",
		Long: `Undo what kubeadm did on every machine of a cluster with machines: ssh: on the workers, then on one control plane after another.
Every object of the cluster is lost, and its certificates. A backup with a snapshot of etcd is made before (labctl undo). Programs, images and what
pods have put into directories of their machines stay, and cluster.yaml too: labctl up forms a new cluster.

It says what is lost, and asks for the cluster's name. Every machine must answer. After an interruption, run it again.

Exit status: 0 no machine is in a cluster, 1 failed, 2 wrong usage.`,
		Example: `  labctl dismantle
  labctl dismantle --name home --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withEvents("dismantle", func(l *lab.Lab) error { return l.Dismantle(cmd.Context()) })
		},
	}
	cmd.Flags().StringVar(&a.named, "name", "", "the cluster's `NAME`, with --yes instead of the question")
	return cmd
}
