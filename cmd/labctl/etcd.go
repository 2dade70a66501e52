package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"k8slab/config"
	"k8slab/lab"
	"k8slab/lab/etcd"
	"k8slab/lab/etcdadmin"
	"k8slab/lab/event"
)

func (a *app) etcdCommand() *cobra.Command {
	help := func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd := &cobra.Command{Use: "etcd", Short: "Show and repair the members of etcd, save and restore its data", Args: cobra.NoArgs, RunE: help}
	snapshot := &cobra.Command{Use: "snapshot", Short: "Save the data of etcd, or create a new cluster from it", Args: cobra.NoArgs, RunE: help}
	snapshot.AddCommand(append(forLabs(a.snapshotRestoreCommand()), a.snapshotSaveCommand())...)
	cmd.AddCommand(a.etcdMembersCommand(), a.cleanLearnersCommand(), snapshot)
	return cmd
}

func (a *app) etcdMembersCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "members",
		Short: "Show the members of etcd; exit 1 unless all are healthy voters",
		Long: `Show etcd's members: leader, voters and learners, the raft index of each, and what is wrong. While a learner catches up, it shows how fast.
Without a quorum it shows the member list that one of them has stored. Exit status 1 unless every member is a healthy voter.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := show(a, func(l *lab.Lab) (etcdadmin.Status, error) { return l.EtcdMembers(cmd.Context()) }, printMembers)
			if err == nil && !s.Healthy {
				err = exitStatus(exitFailed)
			}
			return err
		},
	}
}

func printMembers(w io.Writer, s etcdadmin.Status) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "ID\tNODE\tROLE\tSTARTED\tHEALTHY\tRAFT INDEX\tSIZE\tALARMS\tPEER URL")
	for _, m := range s.Members {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%.1f MiB\t%s\t%s\n", m.ID, cmp.Or(m.Node, "unknown"), m.Role, yesNo(m.Started),
			yesNo(m.Healthy), m.RaftIndex, float64(m.DBSize)/(1<<20), cmp.Or(strings.Join(m.Alarms, ","), "none"), m.PeerURL)
	}
	_ = t.Flush()
	for _, m := range s.Members {
		if m.Progress != "" {
			_, _ = fmt.Fprintln(w, "learning:", m.Progress)
		}
	}
	if s.Healthy {
		_, _ = fmt.Fprintln(w, "healthy")
		return
	}
	_, _ = fmt.Fprintln(w, "not healthy:")
	for _, p := range s.Problems {
		_, _ = fmt.Fprintln(w, "  "+event.OneLine(p))
	}
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func (a *app) cleanLearnersCommand() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "clean-learners",
		Short: "Remove etcd learners that a failed join left behind",
		Long: `Remove the learners that no join will promote. etcd takes one learner at a time, so each of them blocks the next control plane. It removes them one
by one, if the quorum allows it. It never removes a voter, nor a learner whose machine has a running join or does not answer.
Exit status 1 if a learner had to go but could not be removed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			verdicts, err := look(a, func(l *lab.Lab) ([]etcdadmin.Verdict, error) { return l.CleanLearners(cmd.Context(), dryRun) })
			if err != nil && len(verdicts) == 0 {
				return err
			}
			if printErr := a.print(verdicts, func(w io.Writer) { printVerdicts(w, verdicts, dryRun) }); printErr != nil || err != nil {
				return errors.Join(err, printErr)
			}
			if slices.ContainsFunc(verdicts, func(v etcdadmin.Verdict) bool { return v.Action == etcd.Stop }) {
				return exitStatus(exitFailed)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be done")
	return cmd
}

func printVerdicts(w io.Writer, verdicts []etcdadmin.Verdict, dryRun bool) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "ID\tNODE\tROLE\tACTION\tWHY")
	for _, v := range verdicts {
		role, action := "voter", string(v.Action)
		if v.Learner {
			role = "learner"
		}
		switch {
		case v.Removed:
			action = "removed"
		case v.Action == etcd.Remove && dryRun:
			action = "would remove"
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", v.ID, cmp.Or(v.Node, "unknown"), role, action, v.Reason)
	}
	_ = t.Flush()
}

func (a *app) snapshotSaveCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "save FILE",
		Short: "Save the data of etcd to a file; it contains every secret of the cluster",
		Long: `Save a snapshot of etcd's data, with its checksum verified, from the voter that is furthest ahead. One running voter is enough, without a
quorum. The file appears whole or not at all, and only its owner can read it: it contains every secret of the cluster.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := newFile(args[0], force); err != nil {
				return err
			}
			_, err := show(a, func(l *lab.Lab) (etcdadmin.Snapshot, error) { return l.SnapshotSave(cmd.Context(), args[0]) },
				func(w io.Writer, s etcdadmin.Snapshot) {
					_, _ = fmt.Fprintf(w, "%s: %d bytes from %s, %s\n", s.File, s.Size, s.Endpoint, s.Checksum)
				})
			return err
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace FILE if it exists")
	return cmd
}

func (a *app) snapshotRestoreCommand() *cobra.Command {
	var r etcdadmin.Restore
	var own bool
	cmd := &cobra.Command{
		Use:   "restore [FILE] --node NAME",
		Short: "Create a new etcd cluster of one member, from a snapshot or from the data of a node",
		Long: `Use it when etcd has lost its quorum for good. It makes a new etcd cluster of one member on one control plane, from a snapshot or, with --own-data,
from the data of that node's own etcd. Everything written since then is lost.
  labctl etcd snapshot restore before.db --node cp1
  labctl etcd snapshot restore --own-data --node cp1

It first stops the API server and etcd on every control plane that answers. It keeps the node's earlier data on the node, in another directory.
The other control planes are not in the new cluster: run "labctl up" next, which resets them and joins them again.
It refuses while etcd has a quorum, or while a machine that does not answer may be part of one. After an interruption, run it again.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				r.File = args[0]
			}
			if err := checkRestore(r, own); err != nil {
				return usageError{err}
			}
			return a.restore(cmd, r)
		},
	}
	cmd.Flags().StringVar(&r.Node, "node", "", "`NODE`, the control plane that gets the new cluster (required)")
	cmd.Flags().BoolVar(&own, "own-data", false, "restore from the data of the node's own etcd")
	cmd.Flags().BoolVar(&r.Force, "force", false, "restore even if etcd has a quorum; everything written since the snapshot is lost")
	_ = cmd.RegisterFlagCompletionFunc("node", a.controlPlaneNames)
	return cmd
}

// checkRestore returns everything that is wrong with the call at once.
func checkRestore(r etcdadmin.Restore, own bool) error {
	var errs []error
	if r.Node == "" {
		errs = append(errs, errors.New("--node is required: the control plane that gets the new cluster"))
	}
	if (r.File == "") != own {
		errs = append(errs, errors.New("give either a snapshot's FILE or --own-data"))
	}
	return errors.Join(errs...)
}

func (a *app) restore(cmd *cobra.Command, r etcdadmin.Restore) error {
	l, finish, log, err := a.watched("etcd-restore")
	if err != nil {
		return err
	}
	defer l.Close()
	err = l.SnapshotRestore(cmd.Context(), r)
	if err := errors.Join(err, finish()); err != nil {
		return fmt.Errorf("%w\nLog: %s", err, log)
	}
	return nil
}

// controlPlaneNames completes a control plane of cluster.yaml.
func (a *app) controlPlaneNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	c, err := a.asMade()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return config.Names(c.ControlPlanes()), cobra.ShellCompDirectiveNoFileComp
}
