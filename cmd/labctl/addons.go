package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"k8slab/lab"
	"k8slab/lab/addon"
)

func (a *app) addonsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "addons",
		Short: "List the add-ons, or install some of them",
		Long: `List all add-ons, and show which of them cluster.yaml lists (addons:) and which are installed. "labctl up" installs those of
cluster.yaml.`,
		Args: cobra.NoArgs,
		RunE: a.listAddons,
	}
	cmd.AddCommand(
		&cobra.Command{Use: "list", Short: "List the add-ons", Args: cobra.NoArgs, RunE: a.listAddons},
		&cobra.Command{
			Use:   "install NAME...",
			Short: "Install add-ons, and those they need, into the running cluster",
			Long: `Install add-ons, and those they need, into the running cluster, and wait until they are ready. It first builds the images that the cache lacks
(minutes of compiling), and imports them on every node that lacks them. It verifies add-ons that are already installed.

Nodes that join later get the images only of add-ons that cluster.yaml lists: list them there too.`,
			Example:           "  labctl addons install metrics-server prometheus",
			Args:              cobra.MinimumNArgs(1),
			ValidArgsFunction: addonNames,
			RunE: func(cmd *cobra.Command, args []string) error {
				if _, err := addon.Resolve(args); err != nil {
					return usageError{err}
				}
				return a.withEvents("addons-install", func(l *lab.Lab) error { return l.InstallAddons(cmd.Context(), args) })
			},
		},
	)
	return cmd
}

func (a *app) listAddons(cmd *cobra.Command, _ []string) error {
	_, err := show(a, func(l *lab.Lab) ([]addon.Status, error) { return l.Addons(cmd.Context()) }, printAddons)
	return err
}

// addonNames completes names of add-ons that are not given yet.
func addonNames(_ *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	for _, a := range addon.All() {
		if !slices.Contains(args, a.Name) {
			names = append(names, a.Name+"\t"+a.Purpose)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func printAddons(w io.Writer, all []addon.Status) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "ADD-ON\tCLUSTER.YAML\tINSTALLED\tPODS READY\tPURPOSE")
	for _, s := range all {
		pods := "-"
		if s.Want > 0 { // sops has none
			pods = fmt.Sprintf("%d of %d", s.Ready, s.Want)
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", s.Name, yesNo(s.Wanted), yesNo(s.Installed), pods, s.Purpose)
	}
	_ = t.Flush()
}
