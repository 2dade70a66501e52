package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"k8slab/lab"
	"k8slab/lab/backup"
	"k8slab/lab/event"
)

func (a *app) undoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "undo",
		Short: "List backups, and put files of nodes back as they were",
		Long: `Before labctl changes machines that it did not make, it saves their Kubernetes files, and the data of etcd, on this computer.
Without a command, this lists those backups.
  labctl undo show 20260102T150405-repair         # which files differ now
  labctl undo restore 20260102T150405-repair w1   # put them back on w1, after a question

It never restores the data of etcd, because everything written since would be lost: labctl etcd snapshot restore --help`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.undoList() },
	}
	list := &cobra.Command{
		Use: "list", Short: "List the backups, the newest first", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.undoList() },
	}
	show := &cobra.Command{
		Use: "show ID [NODE]", Short: "Show which files of the nodes differ from a backup",
		Args: cobra.RangeArgs(1, 2), ValidArgsFunction: a.backupIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := show(a, func(l *lab.Lab) (backup.Comparison, error) { return l.UndoDiff(cmd.Context(), args[0], args[1:]) }, printComparison)
			if err == nil && slices.ContainsFunc(c.Nodes, func(n backup.NodeChanges) bool { return n.Error != "" }) {
				err = exitStatus(exitFailed)
			}
			return err
		},
	}
	cmd.AddCommand(list, show, a.undoRestoreCommand())
	return cmd
}

// backupIDs completes the ID of a backup.
func (a *app) backupIDs(_ *cobra.Command, args []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return a.nodeNames(nil, nil, "")
	}
	all, _ := look(a, func(l *lab.Lab) ([]backup.Backup, error) { return backup.List(l.Closed().Dir) })
	for _, b := range all {
		ids = append(ids, b.ID)
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// undoList prints the backups that can be read, also when another one cannot.
func (a *app) undoList() error {
	all := []backup.Backup{} // a list in JSON, too
	_, err := look(a, func(l *lab.Lab) (_ struct{}, err error) {
		if err = l.Closed().CheckMade(); err == nil || l.Closed().Cluster.OverSSH() {
			var found []backup.Backup
			found, err = backup.List(l.Closed().Dir)
			all = append(all, found...)
		}
		return struct{}{}, err
	})
	if err != nil && len(all) == 0 {
		return err
	}
	return errors.Join(a.print(all, func(w io.Writer) { printBackups(w, all) }), err)
}

func printBackups(w io.Writer, all []backup.Backup) {
	if len(all) == 0 {
		_, _ = fmt.Fprintln(w, "There is no backup. labctl makes one before it changes machines that it did not make.")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "ID\tTIME\tVERB\tWHO\tNODES\tSIZE\tETCD REVISION")
	for _, b := range all {
		revision := "none"
		if b.Etcd != nil {
			revision = fmt.Sprint(b.Etcd.Revision)
		}
		var nodes []string
		for _, n := range b.Nodes {
			if n.Error != "" {
				nodes = append(nodes, "("+n.Name+")")
				continue
			}
			nodes = append(nodes, n.Name)
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%.1f MiB\t%s\n", b.ID, b.Time.Local().Format(time.DateTime), b.Verb, b.Who,
			strings.Join(nodes, " "), float64(b.Size())/(1<<20), revision)
	}
	_ = t.Flush()
}

func printComparison(w io.Writer, c backup.Comparison) {
	for _, n := range c.Nodes {
		switch {
		case n.Error != "":
			_, _ = fmt.Fprintf(w, "%s: unknown: %s\n", n.Node, event.OneLine(n.Error))
		case len(n.Changes) == 0:
			_, _ = fmt.Fprintf(w, "%s: no file differs from backup %s\n", n.Node, c.Backup.ID)
		default:
			_, _ = fmt.Fprintf(w, "%s: its archive is %s\n", n.Node, c.Backup.Archive(n.Node))
		}
		for _, change := range n.Changes {
			_, _ = fmt.Fprintf(w, "  %-7s  %s%s\n", change.Kind, change.Path, inBrackets(change.Detail))
		}
	}
	if c.Backup.Etcd != nil {
		_, _ = fmt.Fprintf(w, "etcd at revision %d: %s; restoring it loses what was written since: labctl etcd snapshot restore --help\n",
			c.Backup.Etcd.Revision, c.Backup.Etcd.File)
	}
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// undoOptions are the flags of undo restore.
type undoOptions struct{ dryRun, removeNew bool }

func (a *app) undoRestoreCommand() *cobra.Command {
	var o undoOptions
	cmd := &cobra.Command{
		Use:   "restore ID [NODE...]",
		Short: "Put the files of nodes back from a backup, after a question",
		Long: `Put the files of the nodes back from a backup, with owner and mode: of all its nodes, or of those that are named. It shows each file,
and how to do the same by hand, and asks. What is there now is saved first, so that this can be undone too. kubelet is restarted if one of its files changed.
Files that are new since stay, unless --remove-new is given. The data of etcd is not touched.`,
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.backupIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.undoRestore(cmd.Context(), args[0], args[1:], o)
		},
	}
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "only show what would be done")
	cmd.Flags().BoolVar(&o.removeNew, "remove-new", false, "also remove files that are new since the backup")
	return cmd
}

func (a *app) undoRestore(ctx context.Context, id string, names []string, o undoOptions) error {
	c, err := look(a, func(l *lab.Lab) (backup.Comparison, error) { return l.UndoDiff(ctx, id, names) })
	if err != nil {
		return err
	}
	wanted, left, err := choose(c, o.removeNew)
	if err != nil {
		return err
	}
	shown := &screen{to: a.stderr}
	printUndo(shown, wanted, left)
	if len(wanted.Nodes) == 0 || o.dryRun {
		return nil
	}
	yes, err := a.ask(ctx, "Do this?", a.yes)
	if err == nil && !yes {
		err = errors.New("nothing was changed")
	}
	if err != nil {
		return err
	}
	progress := *a
	progress.output = "text"
	var done []backup.Restored
	err = progress.withEvents("undo", func(l *lab.Lab) (err error) {
		done, err = l.Undo(ctx, wanted)
		return err
	})
	return errors.Join(a.print(done, func(w io.Writer) { printRestored(w, done) }), err)
}

// choose are the changes that are to be undone, and the new files that stay. It is an error if a node does not answer.
func choose(c backup.Comparison, removeNew bool) (wanted backup.Comparison, left []string, err error) {
	wanted.Backup = c.Backup
	for _, n := range c.Nodes {
		if n.Error != "" {
			return wanted, nil, fmt.Errorf("%s; nothing was changed; next: name the nodes to restore, without %s: labctl undo restore %s NODE",
				n.Error, n.Node, c.Backup.ID)
		}
		one := backup.NodeChanges{Node: n.Node}
		for _, change := range n.Changes {
			if change.Kind == backup.New && !removeNew {
				left = append(left, n.Node+": "+change.Path)
				continue
			}
			one.Changes = append(one.Changes, change)
		}
		if len(one.Changes) > 0 {
			wanted.Nodes = append(wanted.Nodes, one)
		}
	}
	return wanted, left, nil
}

// printUndo shows each file, and what does the same by hand.
func printUndo(w io.Writer, c backup.Comparison, left []string) {
	for _, n := range c.Nodes {
		archive := n.Node + ".tar.gz"
		_, _ = fmt.Fprintf(w, "%s; by hand: labctl cp %s %s:/root/, and on %[1]s in /root:\n", n.Node, c.Backup.Archive(n.Node), n.Node)
		var paths []string
		for _, change := range n.Changes {
			paths = append(paths, change.Path)
			by := fmt.Sprintf("tar -xpzf %s -C / --no-recursion %s", archive, change.Path[1:])
			if change.Kind == backup.New {
				by = "rm -d " + change.Path
			}
			_, _ = fmt.Fprintf(w, "  %-7s  %s%s\n             %s\n", change.Kind, change.Path, inBrackets(change.Detail), by)
		}
		run, next := backup.Reload(paths)
		for _, argv := range run {
			_, _ = fmt.Fprintf(w, "  then     %s\n", strings.Join(argv, " "))
		}
		for _, argv := range next {
			_, _ = fmt.Fprintf(w, "  left to you: %s\n", strings.Join(argv, " "))
		}
	}
	if len(c.Nodes) == 0 {
		_, _ = fmt.Fprintf(w, "no file is to be put back from backup %s\n", c.Backup.ID)
	}
	for _, path := range left {
		_, _ = fmt.Fprintf(w, "new, and stays without --remove-new: %s\n", path)
	}
}

func printRestored(w io.Writer, done []backup.Restored) {
	for _, r := range done {
		_, _ = fmt.Fprintf(w, "%s: put back %d, removed %d; then: %s\n", r.Node, len(r.Files), len(r.Removed),
			cmp.Or(strings.Join(r.Did, ", "), "nothing"))
		for _, next := range r.Next {
			_, _ = fmt.Fprintf(w, "%s: next, when its pods may: labctl ssh %[1]s %s\n", r.Node, next)
		}
	}
}
