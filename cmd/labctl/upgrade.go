package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"k8slab/config"
	"k8slab/lab"
	"k8slab/lab/atomicfile"
	"k8slab/lab/symptom"
	"k8slab/lab/upgrade"
)

func (a *app) upgradeCommand() *cobra.Command {
	var o upgrade.Options
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "upgrade [VERSION]",
		Short: "Upgrade the cluster to another version of Kubernetes",
		Long: `Upgrade the cluster to another version of Kubernetes, in kubeadm's order: the first control plane, the other control planes one after another,
the workers. VERSION is by default that of an upgrade that was interrupted, or else kubernetes.version of cluster.yaml; "next" is what labctl has
pinned of the next minor version. At the end it is written into cluster.yaml.

Before anything changes it looks for what would stop it half-way, and refuses: an unhealthy cluster, kubelets too old or too new, flags and feature
gates that the new programs do not take, APIs that the version no longer serves, budgets that let no pod be evicted, full disks. --ignore leaves one
out. Then it saves a snapshot of etcd and the files of every node ("labctl undo list").

A control plane begins when every other member of etcd is healthy. A node is drained, and PodDisruptionBudgets are respected, before its kubelet is
replaced. etcd goes to 3.6.16 before 3.7, as its guide asks. Interrupted, or after a failure, run it again: it goes on where it ended.

Exit status: 0 the cluster has the version and is proven healthy, 1 not, or with --dry-run it would not begin.`,
		Example: `  labctl upgrade v1.37.2 --dry-run
  labctl upgrade v1.37.2`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(append([]string{"next"}, config.Pinned...), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			unknown := slices.IndexFunc(o.Ignore, func(id string) bool { _, known := symptom.Lookup(symptom.ID(id)); return !known })
			if unknown >= 0 {
				return usageError{fmt.Errorf("--ignore %s: no such cause; the output names those that stop it", o.Ignore[unknown])}
			}
			if o.Workers < 1 {
				return usageError{errors.New("--workers must be at least 1")}
			}
			var plan upgrade.Plan
			progress := *a
			if dryRun { // its result is the plan
				progress.output = "text"
			}
			err := progress.withEvents("upgrade", func(l *lab.Lab) (err error) {
				if o.Version, err = a.versionToUpgrade(l, args); err != nil {
					return err
				}
				if dryRun {
					o.Plan = &plan
					return l.Upgrade(cmd.Context(), o)
				}
				return a.upgrade(cmd.Context(), l, o)
			})
			if err != nil || !dryRun {
				return err
			}
			err = a.print(plan, func(w io.Writer) { printUpgrade(w, plan) })
			return errors.Join(err, plan.Blocked())
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what it would do and what would stop it, and change nothing of the cluster")
	cmd.Flags().IntVar(&o.Workers, "workers", 1, "upgrade this `number` of workers at once")
	cmd.Flags().StringSliceVar(&o.Ignore, "ignore", nil, "go on although this `cause` is found")
	return cmd
}

func (a *app) versionToUpgrade(l *lab.Lab, args []string) (string, error) {
	c, _, err := a.load()
	if err != nil {
		return "", err
	}
	begun, err := l.Closed().Upgrading()
	switch version := cmp.Or(append(args, "")...); {
	case err != nil:
		return "", err
	case version != "" && version != "next":
		return version, nil
	case begun != nil:
		return begun.To, nil
	case version == "":
		return c.Kubernetes.Version, nil
	}
	next := config.NextVersion(c.Kubernetes.Version)
	if next == "" {
		err = fmt.Errorf("labctl knows no version after %s; next: labctl upgrade VERSION, if there is one", c.Kubernetes.Version)
	}
	return next, err
}

// upgrade upgrades the cluster, and writes the version into cluster.yaml.
func (a *app) upgrade(ctx context.Context, l *lab.Lab, o upgrade.Options) error {
	if err := l.Upgrade(ctx, o); err != nil {
		return err
	}
	if a.labName != "" {
		return nil
	}
	text, err := os.ReadFile(a.file)
	if err != nil {
		return err
	}
	if c, _, err := config.Parse(a.file, text); err == nil && c.Kubernetes.Version == o.Version {
		return nil
	}
	info, err := os.Stat(a.file)
	if err == nil {
		text, err = config.WithVersion(text, o.Version)
	}
	if err == nil {
		err = atomicfile.Write(a.file, info.Mode().Perm(), text)
	}
	if err != nil {
		return fmt.Errorf("the cluster has %s; %s could not be changed: %w; next: write kubernetes.version: %[1]s there", o.Version, a.file, err)
	}
	l.Events().Start("", a.file, 0).EndWith("kubernetes.version is " + o.Version + " now")
	return nil
}

func printUpgrade(w io.Writer, p upgrade.Plan) {
	_, _ = fmt.Fprintf(w, "from %s to %s\n\n", p.From, p.To)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range p.Steps {
		action := s.Action
		if s.Done {
			action = "done: " + action
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\n", cmp.Or(s.Node, "all"), action)
	}
	_ = t.Flush()
	for _, f := range p.Findings {
		_, _ = fmt.Fprintf(w, "\n%s: %s %s: %s\n  %s\n", f.Level, f.Symptom, f.Node, f.Evidence[0].Text, f.Hint)
	}
}
