package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"k8slab/lab"
	"k8slab/lab/provision"
)

// snapshotCommand is about whole labs; snapshots of etcd alone are under `labctl etcd snapshot`.
func (a *app) snapshotCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Save and restore the whole lab (virtual machines only)",
		Long: `Save and restore the whole lab at one moment: memory and disks of all its virtual machines, saved while all are paused. A restored lab continues with
corrected clocks, and is proven healthy. Snapshots are kept beside the machines' disks and deleted with them. libvirt
cannot do this for containers.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	verb := func(name, short string, complete bool, do func(*lab.Lab, context.Context, string) error) {
		c := &cobra.Command{
			Use: name + " NAME", Short: short, Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return a.withEvents("snapshot-"+name, func(l *lab.Lab) error { return do(l, cmd.Context(), args[0]) })
			},
		}
		if complete {
			c.ValidArgsFunction = a.snapshotNames
		}
		cmd.AddCommand(c)
	}
	verb("save", "Save the lab as it is now", false, (*lab.Lab).LabSnapshotSave)
	verb("restore", "Restore the lab from a snapshot; what happened since is lost", true, (*lab.Lab).LabSnapshotRestore)
	verb("delete", "Delete a snapshot", true, (*lab.Lab).LabSnapshotDelete)
	cmd.AddCommand(&cobra.Command{
		Use: "list", Short: "List the snapshots of the lab, the oldest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := show(a, func(l *lab.Lab) ([]provision.Snapshot, error) { return l.LabSnapshots(cmd.Context()) }, printLabSnapshots)
			return err
		},
	})
	return cmd
}

// snapshotNames completes names of snapshots.
func (a *app) snapshotNames(cmd *cobra.Command, _ []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	// A lab that cannot be asked has nothing to offer.
	all, _ := look(a, func(l *lab.Lab) ([]provision.Snapshot, error) { return l.LabSnapshots(cmd.Context()) })
	for _, s := range all {
		names = append(names, s.Name+"\t"+s.Time.Local().Format(time.DateTime))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func printLabSnapshots(w io.Writer, all []provision.Snapshot) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "NAME\tSAVED\tNODES")
	for _, s := range all {
		nodes := strings.Join(s.Nodes, " ")
		if len(s.Missing) > 0 {
			nodes += "; cannot be restored without " + strings.Join(s.Missing, " ")
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\n", s.Name, s.Time.Local().Format(time.DateTime), nodes)
	}
	_ = t.Flush()
}
