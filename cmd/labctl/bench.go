package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"k8slab/lab/event"
	"k8slab/scenarios"
)

func (a *app) benchCommand() *cobra.Command {
	t := trial{verb: "bench", show: printBench, failed: notMeasured}
	cmd := &cobra.Command{
		Use:   "bench [NAME[@NODE]...]",
		Short: "Measure how well a command, or labctl itself, diagnoses and repairs faults",
		Long: `For each fault, or for all of them but those of upgrades, start from a healthy lab, inject the fault and wait for its effect. Then run COMMAND
twice: to name the cause, and to repair. It is measured as labctl is: whether the cause and the node are right and after which time, whether the lab is proven healthy again
and after which time, which data is lost, and how long etcd took no writes. What it leaves broken, labctl repairs before the next fault.
Without --with, labctl itself is measured.

COMMAND is run by "sh -c", as root on this computer, in the network of the lab. It is not told which fault there is. In its environment are
  LABCTL_PHASE       diagnose, then repair
  LABCTL_SECONDS     its time, after which it is ended
  KUBECONFIG         the administrator's kubeconfig
  LABCTL_NODES       a JSON file with the login to each node: name, role, address, port, user, key, known_hosts
  LABCTL_SSH_CONFIG  the same for ssh -F
  LABCTL_CLUSTER     cluster.yaml
In the phase diagnose it writes {"cause": "...", "node": "...", "evidence": "..."} to its standard output, or one line with the cause alone: one
that "labctl fault list -o json" has. Exit status 0 in the phase repair says that it has repaired.

Exit status: 0 all faults were measured, whatever the result, or do not apply here, 1 one could not be measured.`,
		Example: `  labctl bench missing-cni kubelet-stopped
  labctl bench --with ./my-doctor.sh missing-cni kubelet-stopped@cp2
  labctl bench --with 'python3 doctor.py' --results doctor.json`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: faultNames,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if t.tool.budget < time.Second {
				return usageError{errors.New("--budget must be at least 1s")}
			}
			if cmd.Flags().Changed("with") && t.tool.command == "" {
				return usageError{errors.New("--with needs a command; without --with labctl itself is measured")}
			}
			if t.anew && a.labName != "" {
				return usageError{errors.New("--anew removes the lab, and with it the description that --lab takes: name its file with -c")}
			}
			if len(args) == 0 {
				for _, f := range scenarios.All() {
					if f.Upgrade == "" {
						args = append(args, f.Name)
					}
				}
			}
			if t.rounds, err = roundsOf(args, ""); err != nil {
				return err
			}
			for _, p := range slices.Concat(t.rounds...) {
				if p.Fault.Upgrade != "" {
					return usageError{fmt.Errorf("%s is of an upgrade, which is labctl's own, so no other command can be measured by it; next: labctl fault run %[1]s", p.Fault.Name)}
				}
			}
			if err := errors.Join(t.files.check(), evidenceDir(t.evidence)); err != nil {
				return err
			}
			return a.try(cmd.Context(), t)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&t.tool.command, "with", "", "the `COMMAND` to measure, for sh -c; the default is labctl itself")
	flags.DurationVar(&t.tool.budget, "budget", 5*time.Minute, "how long COMMAND may take in each of its two phases")
	flags.BoolVar(&t.anew, "anew", false, "make a new lab when labctl cannot repair it; everything in the lab is lost")
	flags.StringVar(&t.evidence, "evidence", "", "keep a diagnosis bundle of each fault that was not recovered in this directory")
	t.files.flags(cmd)
	return cmd
}

// notMeasured tells whether a result says nothing about what is measured. A command that names or repairs nothing is measured all the same.
func notMeasured(r scenarios.Result) bool { return r.Class == scenarios.SetupFailed }

func printBench(w io.Writer, report scenarios.Report) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "FAULT\tNODE\tCAUSE\tON\tAFTER\tREPAIRED\tAFTER\tDATA LOST\tWRITE GAP\tKUBEADM ALONE")
	named, repaired, measured := 0, 0, 0
	for _, r := range report.Results {
		if r.Class == scenarios.SetupFailed || r.Class == scenarios.NotApplicable {
			_, _ = fmt.Fprintf(t, "%s\t%s\t–\t–\t–\t–\t–\t–\t–\t%s\n", r.Fault, cmp.Or(r.Node, "–"), r.Class)
			continue
		}
		measured++
		d := r.Detected
		if d.RightCause && d.RightNode {
			named++
		}
		if r.Repaired {
			repaired++
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.1fs\t%s\t%.1fs\t%s\t%.1fs\t%s\n", r.Fault, r.Node, right(d.RightCause), right(d.RightNode), r.ToCause,
			repairedBy(r), r.ToRecover, r.Data.Summary(), r.Data.WriteGap, kubeadmAlone(r.Fault))
	}
	_ = t.Flush()
	_, _ = fmt.Fprintf(w, "\n%s: of %d faults %d named, with the node, and %d repaired\n", report.Tool, measured, named, repaired)
	for _, r := range report.Results {
		if r.Reason != "" {
			_, _ = fmt.Fprintf(w, "%s: %s\n", r.Fault, event.OneLine(r.Reason))
		}
		if r.Restored {
			_, _ = fmt.Fprintf(w, "%s: the fault was taken back, and labctl brought the lab up again\n", r.Fault)
		}
	}
}

func right(is bool) string {
	if is {
		return "right"
	}
	return "wrong"
}

// repairedBy says whether the lab was repaired, and what a person had to do before.
func repairedBy(r scenarios.Result) string {
	switch {
	case !r.Repaired:
		return "no"
	case r.Person == scenarios.ByHint:
		return "by its hint"
	case r.Person == scenarios.ByHand:
		return "by hand"
	}
	return "yes"
}

// kubeadmAlone is what kubeadm alone does about a fault.
func kubeadmAlone(fault string) string {
	if f, known := scenarios.Lookup(fault); known {
		return f.WithoutLabctl()
	}
	return "–"
}
