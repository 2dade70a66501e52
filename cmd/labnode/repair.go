package main

import (
	"slices"

	"github.com/spf13/cobra"

	"k8slab/lab/join"
)

func (a *app) repairCommand() *cobra.Command {
	var output string
	var dryRun, verbose bool
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "Repair what is safe to repair on a node that has joined",
		Long: `Find problems on a node that has joined a cluster, and repair what is safe to repair: containerd, kubelet and its unit, the
pod network's configuration, swap, kernel modules, sysctls. It never touches certificates, kubeconfigs or etcd data.

Exit status: 0 all well, or repaired; 1 something is left; 3 something could be repaired (--dry-run).`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			checks := join.RepairMember(cmd.Context(), join.Local(), dryRun)
			write := func() error { return writeChecks(a.stdout, checks, verbose) }
			if output == "json" {
				write = func() error { return writeJSON(a.stdout, checks) }
			}
			if err := write(); err != nil {
				return err
			}
			left := func(r join.Result) bool {
				return slices.ContainsFunc(checks, func(c join.Check) bool { return c.Result == r })
			}
			switch {
			case left(join.Blocked):
				return exitStatus(exitFailed)
			case left(join.Fixable):
				return exitStatus(exitFixable)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be repaired")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "also show the checks that passed")
	outputFlag(cmd, &output)
	return cmd
}

// formerly is the command under the name that it had before, which help does not show.
func formerly(name string, cmd *cobra.Command) *cobra.Command {
	cmd.Use, cmd.Hidden = name, true
	return cmd
}
