package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"k8slab/config"
	"k8slab/lab"
	"k8slab/lab/bringup"
	"k8slab/lab/health"
	"k8slab/lab/provision"
	"k8slab/lab/state"
)

func (a *app) upCommand() *cobra.Command {
	var until, from, podNetwork string
	var keep, dryRun, prune bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring the lab from any state to a proven healthy cluster",
		Long: `Make the machines, form the cluster and prove it healthy. Installs missing packages on Debian and Ubuntu (as root) and builds the node image first if needed.
It verifies what exists and does not make it again: after an interruption, run it again. A failed lab stays as it is, so that you can inspect it.

If you have edited cluster.yaml, it applies the changes: new nodes join, machines get another size one after another. Nodes that the file no longer
has are drained and removed, after a question or with --prune. What cannot change in place it refuses before it touches anything, and says what to do.
  labctl up --dry-run      # what it would do
  labctl up --prune        # also remove nodes, without a question

With machines: ssh it forms a cluster of machines that are in none, or joins those that are not in theirs: it checks every machine, shows what it
will do, and asks. It installs nothing but the pod network that --pod-network names. A cluster that is whole it proves healthy, and changes nothing.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c, _, err := a.load(); err == nil && c.OverSSH() {
				if until != "" || from != "" {
					return usageError{errors.New("--until and --from are about machines that labctl makes; with machines: ssh there are none")}
				}
				return a.form(cmd.Context(), podNetwork, dryRun)
			}
			if podNetwork != "" {
				return usageError{errors.New("--pod-network is for machines: ssh; a lab has a pod network")}
			}
			stage, err := bringup.ParseStage(until)
			switch {
			case err != nil:
				return usageError{err}
			case dryRun && from != "":
				return usageError{errors.New("--dry-run looks at the lab as it is: it takes no --from")}
			case dryRun:
				return a.plan(cmd.Context(), stage)
			}
			l, finish, log, err := a.watched("up")
			if err != nil {
				return err
			}
			defer l.Close()
			if os.Geteuid() != 0 && stage != bringup.StageImage {
				err = a.buildAsRoot(cmd, l)
			}
			if err == nil && !prune {
				prune, err = a.mayPrune(cmd.Context(), l)
			}
			restored := true
			if err == nil && from != "" {
				if err = l.Closed().CheckDescribed(prune); err == nil {
					err = l.LabSnapshotRestore(cmd.Context(), from)
				}
				restored = err == nil
			}
			if err == nil && prune && len(l.Closed().Leaving()) > 0 {
				err = l.Prune(cmd.Context())
			}
			if err == nil {
				err = l.Up(cmd.Context(), stage)
			}
			if err := errors.Join(err, finish()); err != nil {
				return a.afterFailure(cmd, l, err, log, keep || !restored) // with the lab its snapshots would go
			}
			a.reportChanges(l, stage)
			return nil
		},
	}
	var stages []string
	for _, s := range bringup.Stages() {
		stages = append(stages, string(s))
	}
	cmd.Flags().StringVar(&until, "until", "", "stop after this `step` of the plan: "+strings.Join(stages, ", "))
	_ = cmd.RegisterFlagCompletionFunc("until", cobra.FixedCompletions(stages, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().StringVar(&from, "from", "", "restore this `snapshot` of the lab first (labctl snapshot list)")
	_ = cmd.RegisterFlagCompletionFunc("from", a.snapshotNames)
	cmd.Flags().StringVar(&podNetwork, "pod-network", "", "with machines: ssh, the manifest `FILE` of the pod network for a cluster that is formed")
	cmd.Flags().BoolVar(&prune, "prune", false, "remove nodes that cluster.yaml no longer has, or describes as other machines, without a question")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what up would do in the existing lab, and change nothing")
	cmd.Flags().BoolVar(&keep, "keep", true, "keep a failed lab as it is; --keep=false removes it")
	return cmd
}

// mayPrune asks whether the nodes that have to leave may be removed. Nobody is asked where there is none, or where up refuses anyway.
func (a *app) mayPrune(ctx context.Context, l *lab.Lab) (bool, error) {
	closed := l.Closed()
	leaving := closed.Leaving()
	if len(leaving) == 0 || closed.CheckDescribed(true) != nil || !a.terminal() {
		return false, nil
	}
	printDifferences(a.stderr, closed.Differences)
	return a.asked(ctx, fmt.Sprintf("Remove %s, with machine and disk?", strings.Join(config.Names(leaving), ", ")))
}

// buildAsRoot builds the images of an unprivileged user's lab, after the checks whether the lab can be made.
func (a *app) buildAsRoot(cmd *cobra.Command, l *lab.Lab) error {
	if err := provision.CheckHost(cmd.Context(), l.Closed()); err != nil {
		return err
	}
	_, err := a.asRoot(cmd, "up", "--until", string(bringup.StageImage))
	return err
}

// afterFailure keeps or removes a lab that up could not bring up, and says which. It always keeps a lab that up did not change.
func (a *app) afterFailure(cmd *cobra.Command, l *lab.Lab, err error, log string, keep bool) error {
	var locked *state.LockedError
	var changed *state.ChangedError
	switch {
	case errors.As(err, &locked), errors.As(err, &changed):
		return err
	case len(l.Changes()) == 0:
		return fmt.Errorf("%w\nNothing was changed. Log: %s", err, log)
	case keep || cmd.Context().Err() != nil:
		return fmt.Errorf("%w\nThe lab is left as it is. Log: %s. Try `labctl status`, or `labctl up` again; `labctl down` removes it", err, log)
	}
	if downErr := a.down(cmd, false); downErr != nil {
		return errors.Join(err, downErr)
	}
	return fmt.Errorf("%w\nThe lab was removed (--keep=false). Log: %s", err, log)
}

// reportChanges says how much up changed in an existing lab.
func (a *app) reportChanges(l *lab.Lab, until bringup.Stage) {
	changes := l.Changes()
	if len(changes) == 0 {
		_, _ = fmt.Fprintln(a.stderr, "verified: healthy, nothing changed")
		return
	}
	if a.verbose {
		for _, c := range changes {
			_, _ = fmt.Fprintln(a.stderr, "changed:", c)
		}
	}
	if until == bringup.StageProof {
		_, _ = fmt.Fprint(a.stderr, whatNext(a.self(l)))
	}
}

// whatNext says what to do with a lab that is up; self is the command line that calls labctl for it.
func whatNext(self string) string {
	return fmt.Sprintf(`Use it:    %[1]s kubectl get pods -A
           export KUBECONFIG=$(%[1]s kubeconfig --path)
Break it:  %[1]s fault run missing-cni    (all faults: %[1]s fault list)
Remove it: %[1]s down
`, self)
}

// self is the part of the command line that names labctl and the lab.
func (a *app) self(l *lab.Lab) string {
	if a.labName == "" && a.file == defaultFile {
		return os.Args[0]
	}
	return os.Args[0] + " --lab " + l.Name()
}

func (a *app) downCommand() *cobra.Command {
	var adopted bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Remove everything that the lab made on this computer",
		Long:  "Remove the lab's machines, disks, network, keys and its libvirt daemon. The node image stays in the cache (`labctl image prune`).",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.down(cmd, adopted) },
	}
	cmd.Flags().BoolVar(&adopted, "adopted", false, "also remove machines that vagrant made; without it, down removes nothing while they exist")
	return cmd
}

func (a *app) down(cmd *cobra.Command, adopted bool) error {
	l, finish, log, err := a.watched("down")
	if err != nil {
		return err
	}
	defer l.Close()
	if err = a.noFaultLeft(l); err == nil {
		err = l.Down(cmd.Context(), adopted)
	}
	if err := errors.Join(err, finish()); err != nil {
		return fmt.Errorf("%w\nLog: %s. Run `labctl down` again to go on", err, log)
	}
	return nil
}

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the lab's machines, nodes and etcd members; exit 1 unless it is healthy",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := show(a, func(l *lab.Lab) (health.Status, error) { return l.Status(cmd.Context()) }, printStatus)
			if err == nil && !s.Healthy {
				err = exitStatus(exitFailed)
			}
			return err
		},
	}
}

func printStatus(w io.Writer, s health.Status) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "NODE\tROLE\tIP\tMACHINE\tREADY\tETCD\t")
	for _, n := range s.Nodes {
		etcd := n.Etcd
		if etcd != "none" && !n.Started {
			etcd += ", not started"
		}
		note := n.Note
		if n.Maker != "" {
			note = "made by " + string(n.Maker)
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", n.Name, n.Role, n.IP, n.Machine, yesNo(n.Ready), etcd, note)
	}
	_ = t.Flush()
	if s.Libvirt != "" {
		_, _ = fmt.Fprintln(w, "libvirt:", s.Libvirt)
	}
	if s.Healthy {
		_, _ = fmt.Fprintln(w, "healthy")
	} else {
		_, _ = fmt.Fprintln(w, "not healthy:")
	}
	for _, p := range s.Problems {
		_, _ = fmt.Fprintln(w, "  "+strings.ReplaceAll(p, "\n", "\n    "))
	}
	for _, warning := range s.Warnings {
		_, _ = fmt.Fprintln(w, "warning:", warning)
	}
	printDifferences(w, s.Changed)
}

// printDifferences says what of cluster.yaml is not applied to the existing lab, and how to apply it.
func printDifferences(w io.Writer, changed []state.Difference) {
	if len(changed) == 0 {
		return
	}
	_, _ = fmt.Fprintln(w, "cluster.yaml differs from what the lab was made with:")
	for _, d := range changed {
		_, _ = fmt.Fprintln(w, "  "+d.String())
	}
}
