package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"k8slab/lab"
	"k8slab/lab/event"
	"k8slab/lab/repair"
)

func (a *app) repairCommand() *cobra.Command {
	var dryRun, watch bool
	upTo := repair.Restart
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "Apply safe repairs; for everything else, explain why not and what to do",
		Long: `Apply safe repairs; for everything else, explain why not and what to do. It repairs containerd, kubelet and the pod network's
configuration on each node, a Node that was deleted under its kubelet, learners that no join will promote, nodes that are in no cluster, and
what kubeadm made: certificates, kubeconfigs, manifests, add-ons.

A node that still fails is repaired by more and more, one step after another: containerd and kubelet are restarted, then its machine. With
--up-to rejoin the node is then reset and joins again, with --up-to recreate its machine is deleted with the disk and made anew. A step that
could cost etcd's quorum or the only control plane is not taken. With --watch, and with machines: ssh, no machine is restarted unless --up-to
says so.

It ends when the repairs have taken effect: a diagnosis finds nothing more, and the proof of "labctl up" holds. It does not wait for what it
did not repair. Repairs are printed on stdout, progress on stderr; -o json prints the list of repairs (with --watch, one list for each check).

Exit status: 0 nothing is left and the cluster is healthy, 1 something is left.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := a.load()
			own := err == nil && c.OverSSH()                     // machines on which others may count
			if !cmd.Flags().Changed("up-to") && (watch || own) { // or a machine that no restart heals would be restarted for ever
				upTo = repair.Services
			}
			if own && upTo == repair.Recreate {
				return usageError{errors.New("--up-to recreate: labctl did not make these machines (machines: ssh), so it makes none anew")}
			}
			if watch {
				return a.repairs(true, func(l *lab.Lab) ([]repair.Repaired, error) {
					return nil, repairWatch(cmd.Context(), l, every, upTo, a.tellRepairs)
				})
			}
			return a.repairs(false, func(l *lab.Lab) ([]repair.Repaired, error) { return l.Repair(cmd.Context(), dryRun, upTo) })
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be repaired")
	cmd.Flags().Var((*rungFlag)(&upTo), "up-to", "how far to go on a node that still fails: restart, rejoin or recreate its machine")
	cmd.Flags().BoolVar(&watch, "watch", false, "keep repairing until interrupted")
	cmd.Flags().DurationVar(&every, "every", 10*time.Second, "pause between two checks with --watch")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "watch")
	_ = cmd.RegisterFlagCompletionFunc("up-to", cobra.FixedCompletions(limitNames(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func limitNames() (names []string) {
	for _, g := range repair.Limits {
		names = append(names, g.String())
	}
	return names
}

// rungFlag is the highest rung of the ladder that a repair may take.
type rungFlag repair.Rung

func (f *rungFlag) String() string { return repair.Rung(*f).String() }
func (f *rungFlag) Type() string   { return "rung" }
func (f *rungFlag) Set(text string) error {
	g, err := repair.ParseRung(text)
	if err == nil {
		*f = rungFlag(g)
	}
	return err
}

// repairWatch repairs again and again until ctx ends, and tells of what each look found; every is the pause between two.
func repairWatch(ctx context.Context, l *lab.Lab, every time.Duration, upTo repair.Rung, tell func([]repair.Repaired, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if found, err := l.Repair(ctx, false, upTo); ctx.Err() == nil {
			tell(found, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// repairs shows the events of repairs on stderr and then the results on stdout. With --watch the results come between events, so events are
// plain lines then.
func (a *app) repairs(watch bool, do func(*lab.Lab) ([]repair.Repaired, error)) error {
	progress := *a
	progress.output, progress.verbose = "text", a.verbose || watch
	var found []repair.Repaired
	began := false
	err := progress.withEvents("repair", func(l *lab.Lab) (err error) {
		began = true
		if found, err = do(l); err == nil {
			err = leftError(found)
		}
		return err
	})
	if watch || !began {
		return err
	}
	return errors.Join(a.printRepairs(found, err), err)
}

// tellRepairs shows the result of one round of --watch, unless it found nothing.
func (a *app) tellRepairs(found []repair.Repaired, err error) {
	if len(found) > 0 {
		err = errors.Join(a.printRepairs(found, err), err)
	}
	if err != nil {
		_, _ = fmt.Fprintln(a.stderr, "labctl:", event.Redact(err.Error()))
	}
}

// printRepairs writes the result. Without repairs the text says so, unless an error says more.
func (a *app) printRepairs(found []repair.Repaired, err error) error {
	if found == nil {
		found = []repair.Repaired{} // a list in JSON, too
	}
	return a.print(found, func(w io.Writer) {
		width, _ := terminalOf(w)
		switch {
		case len(found) > 0:
			_, _ = io.WriteString(w, repairsText(found, width))
		case err == nil:
			_, _ = fmt.Fprintln(w, "nothing to repair")
		}
	})
}

// leftError names what was not repaired.
func leftError(found []repair.Repaired) error {
	var left []string
	for _, f := range found {
		switch {
		case f.Left == "":
		case f.Node == "":
			left = append(left, f.Symptom)
		default:
			left = append(left, f.Symptom+" on "+f.Node)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("not repaired (needs a person): %s", strings.Join(left, ", "))
}

// repairsText is every repair in full, in lines of at most width columns; 0 is no limit.
func repairsText(found []repair.Repaired, width int) string {
	const indent, gutter, usual, least = 2, 12, 80, 30
	if width <= 0 {
		width = usual
	}
	var b strings.Builder
	paragraph := func(margin int, label, text string, commands bool) {
		commands = commands && strings.Count(text, "`")%2 == 0
		for _, line := range event.Fold(event.OneLine(event.Redact(text)), max(width, least)-margin, commands) {
			b.WriteString(strings.TrimRight(fmt.Sprintf("%-*s%s", margin, label, line), " ") + "\n")
			label = ""
		}
	}
	for i, f := range found {
		if i > 0 {
			b.WriteString("\n")
		}
		title := f.Symptom
		if f.Node != "" {
			title += " on " + f.Node
		}
		became, what, text := "repaired", "did", f.Did
		switch {
		case f.Left != "":
			became, what, text = "not repaired (needs a person)", "next", f.Left
		case f.Would != "":
			became, what, text = "would be repaired", "fix", f.Would
		}
		paragraph(0, "", title+": "+became, false)
		paragraph(gutter, strings.Repeat(" ", indent)+"evidence", f.Evidence, false)
		paragraph(gutter, strings.Repeat(" ", indent)+what, text, true)
	}
	return b.String()
}
