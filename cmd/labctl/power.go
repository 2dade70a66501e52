package main

import (
	"context"

	"github.com/spf13/cobra"

	"k8slab/lab"
)

// powerCommand switches machines off, or pauses and resumes them.
func (a *app) powerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "power",
		Short: "Switch a node's machine off (`up` starts it), or pause and resume it",
		Long: `Switch the machine of a node off, or pause and resume it. There is no "power on": labctl up starts a machine
that is off, and verifies the rest of the lab.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	verb := func(name, short string, do func(*lab.Lab, context.Context, string) error) {
		cmd.AddCommand(&cobra.Command{
			Use:               name + " NODE",
			Short:             short,
			Args:              cobra.ExactArgs(1),
			ValidArgsFunction: a.nodeNames,
			RunE: func(cmd *cobra.Command, args []string) error {
				return a.withEvents("power-"+name, func(l *lab.Lab) error { return do(l, cmd.Context(), args[0]) })
			},
		})
	}
	verb("off", "Pull the plug (labctl up starts the machine again)", (*lab.Lab).PowerOff)
	verb("pause", "Stop the machine's processors, as if the computer slept", (*lab.Lab).Pause)
	verb("resume", "Continue a paused machine", (*lab.Lab).Resume)
	return cmd
}
