package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"k8slab/config"
	"k8slab/lab/onboard"
)

// onboardOptions are the flags of labctl onboard.
type onboardOptions struct {
	dryRun, skipValidation, autoFix, report, rollback, status, resume bool

	kubeconfig, context string // both "" is the lab of cluster.yaml
	image, role         string
}

// elsewhere tells whether the node joins another cluster than the lab's.
func (o onboardOptions) elsewhere() bool { return o.kubeconfig != "" || o.context != "" }

func (a *app) onboardCommand() *cobra.Command {
	var o onboardOptions
	var phases []string
	for _, p := range onboard.Phases() {
		phases = append(phases, string(p.ID))
	}
	cmd := &cobra.Command{
		Use:   "onboard NODE",
		Short: "Add a node to a running cluster in nine phases, or remove it again",
		Long: `Add a node to a running cluster, in nine phases: ` + strings.Join(phases, ", ") + `.
In the lab, NODE is a node of cluster.yaml with onboard: true; labctl makes its machine and joins it. With machines: ssh, NODE is any node of
cluster.yaml, and labctl joins its machine. With --kubeconfig or --context, NODE is any
machine that joins another cluster by itself; cluster.yaml (-c) then needs only its onboard section.

Each change is recorded before it is made. After an interruption or a failure continue with --resume, which verifies what was completed,
or undo everything with --rollback. To watch from another terminal, use --status.

Exit status: 0 done, 1 failed at a phase or a step of the rollback, 2 wrong usage or configuration, 130 interrupted.`,
		Example: `  labctl onboard w3 --report
  labctl onboard w3 --status
  labctl onboard w3 --resume
  labctl onboard w3 --rollback
  labctl onboard node7 --kubeconfig ~/.kube/config --context prod --dry-run`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.onboardNodes,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags().Changed); err != nil {
				return usageError{err}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.onboard(cmd, args[0], o) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.dryRun, "dry-run", false, "only show what would be done, also with --rollback or --resume; nothing is changed")
	flags.BoolVar(&o.skipValidation, "skip-validation", false, "skip the pre-validation; the state records that")
	flags.BoolVar(&o.autoFix, "auto-fix", false, "when the pre-validation fails, make safe repairs and validate again (only in a lab)")
	flags.BoolVar(&o.report, "report", false, "write a report at the end, as Markdown and HTML, beside the log")
	flags.BoolVar(&o.rollback, "rollback", false, "undo the onboarding, the newest change first, and verify each change; asks first")
	flags.BoolVar(&o.status, "status", false, "show the state of the onboarding, and change nothing")
	flags.BoolVar(&o.resume, "resume", false, "continue an onboarding that was interrupted or failed, or re-check and fix a completed one")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "the kubeconfig `FILE` of another cluster; the default is the lab's")
	flags.StringVar(&o.context, "context", "", "a context of the kubeconfig; without --kubeconfig, of the one that kubectl uses")
	flags.StringVar(&o.role, "role", "", "the node's role in another cluster: worker (the default) or control-plane")
	flags.StringVar(&o.image, "image", "", "the labnode image for test pods; the default is the one on the lab's nodes")
	_ = cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions([]string{"worker", "control-plane"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// contradictions are pairs of flags that exclude each other.
var contradictions = [][2]string{
	{"status", "dry-run"}, {"status", "skip-validation"}, {"status", "auto-fix"}, {"status", "rollback"}, {"status", "resume"},
	{"rollback", "resume"}, {"rollback", "skip-validation"}, {"rollback", "auto-fix"}, {"skip-validation", "auto-fix"},
	{"dry-run", "auto-fix"}, {"dry-run", "report"}, {"kubeconfig", "auto-fix"}, {"context", "auto-fix"},
}

// check returns everything that is wrong with the flags at once.
func (o onboardOptions) check(given func(flag string) bool) error {
	var errs []error
	for _, pair := range contradictions {
		if given(pair[0]) && given(pair[1]) {
			errs = append(errs, fmt.Errorf("--%s and --%s contradict each other", pair[0], pair[1]))
		}
	}
	if given("role") && !o.elsewhere() {
		errs = append(errs, errors.New("--role is for another cluster (--kubeconfig); the lab's roles are in cluster.yaml"))
	}
	if given("role") && o.role != string(config.Worker) && o.role != string(config.ControlPlane) {
		errs = append(errs, fmt.Errorf("--role %q: use %s or %s", o.role, config.Worker, config.ControlPlane))
	}
	return errors.Join(errs...)
}

// onboardNodes completes nodes that can be onboarded.
func (a *app) onboardNodes(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	c, _, err := a.load()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return onboardable(c), cobra.ShellCompDirectiveNoFileComp
}

// onboardable are the names of the nodes that can be onboarded.
func onboardable(c *config.Cluster) (names []string) {
	for _, n := range c.Nodes {
		if n.Onboard || c.OverSSH() {
			names = append(names, n.Name)
		}
	}
	return names
}

// onboardedNode is the node of cluster.yaml to onboard: of machines that exist, any.
func onboardedNode(c *config.Cluster, name string) (config.Node, error) {
	n, ok := c.Node(name)
	if ok && (n.Onboard || c.OverSSH()) {
		return n, nil
	}
	if c.OverSSH() {
		return n, usageError{config.Unknown("node", name, "cluster.yaml has", config.Names(c.Nodes))}
	}
	have := "no node has that"
	if names := onboardable(c); len(names) > 0 {
		have = "those that have it: " + strings.Join(names, ", ")
	}
	return n, usageError{fmt.Errorf("cluster.yaml has no node %q with onboard: true; %s", name, have)}
}
