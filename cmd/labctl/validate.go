package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"k8slab/lab"
	"k8slab/lab/diagnose"
	"k8slab/lab/event"
	"k8slab/lab/guard"
	"k8slab/lab/health"
	"k8slab/lab/image"
	"k8slab/lab/validate"
)

// validateLimit bounds a validation. It is more than the budgets of test pods, volumes and their removal together.
const validateLimit = 5 * time.Minute

// validated is an area and its checks, for one node, or for all nodes with "".
type validated struct {
	area   validate.Area
	checks func(c *validate.Cluster, node string) []validate.Check
}

var validatedAreas = []validated{
	{validate.AreaCluster, func(c *validate.Cluster, _ string) []validate.Check {
		return append(c.ClusterChecks(), c.CapacityChecks(0, 0)...)
	}},
	{validate.AreaNetwork, (*validate.Cluster).NetworkChecks},
	{validate.AreaStorage, (*validate.Cluster).StorageChecks},
	{validate.AreaGitOps, func(c *validate.Cluster, _ string) []validate.Check { return c.GitOpsChecks() }},
	{validate.AreaMonitoring, (*validate.Cluster).MonitoringChecks},
	{validate.AreaSecurity, (*validate.Cluster).SecurityChecks},
}

// validation says which cluster to check, and how.
type validation struct {
	kubeconfig, context string // both "" is the lab of cluster.yaml
	image, node         string
}

func (a *app) validateCommand() *cobra.Command {
	var v validation
	var areas []string
	for _, one := range validatedAreas {
		areas = append(areas, string(one.area))
	}
	cmd := &cobra.Command{
		Use:   "validate [" + strings.Join(areas, "|") + "]",
		Short: "Check a running cluster area by area (the lab, or any other cluster)",
		Long: `Run the checks of one area, or of all, on the lab's cluster or with --kubeconfig on any other. It tests network and storage with pods and a
claim, in a temporary namespace. A check of something that the cluster does not have is not applicable.

Exit status: 0 nothing failed, 1 something did, 2 wrong usage, 130 interrupted.`,
		Example: `  labctl validate
  labctl validate network --node w2
  labctl validate storage --kubeconfig ~/.kube/config --context prod --image registry.example/labnode:1`,
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: areas,
		RunE: func(cmd *cobra.Command, args []string) error {
			findings, err := a.validate(cmd.Context(), v, args)
			if err != nil {
				return err
			}
			if err := a.print(findings, func(w io.Writer) { printFindings(w, findings) }); err != nil {
				return err
			}
			if slices.ContainsFunc(findings, func(f validate.Finding) bool { return f.Status == validate.Failed }) {
				return exitStatus(exitFailed)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&v.node, "node", "", "check this node and its connections to the others; the default is every node")
	flags.StringVar(&v.kubeconfig, "kubeconfig", "", "the kubeconfig `FILE` of another cluster; the default is the lab's")
	flags.StringVar(&v.context, "context", "", "a context of the kubeconfig; without --kubeconfig, of the one that kubectl uses")
	flags.StringVar(&v.image, "image", "", "the labnode image for test pods; the default is the one on the lab's nodes")
	return cmd
}

// validate runs the checks of the areas, or of all areas if none is given.
func (a *app) validate(ctx context.Context, v validation, areas []string) ([]validate.Finding, error) {
	c, done, err := a.validatedCluster(ctx, v, areas)
	if err != nil {
		return nil, err
	}
	defer done()
	var checks []validate.Check
	for _, one := range validatedAreas {
		if len(areas) == 0 || slices.Contains(areas, string(one.area)) {
			checks = append(checks, one.checks(c, v.node)...)
		}
	}
	limit := validateLimit * time.Duration(max(1, c.Patience))
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the validation's %s budget ran out", limit))
	defer cancel()
	findings := validate.Run(limited, checks)
	for i, f := range findings { // a detail may be a pod's last words
		findings[i].Detail = event.Redact(f.Detail)
	}
	return findings, ctx.Err()
}

// validatedCluster opens the cluster. In a lab, its machines are asked too; done closes these connections.
func (a *app) validatedCluster(ctx context.Context, v validation, areas []string) (c *validate.Cluster, done func(), err error) {
	if v.kubeconfig != "" || v.context != "" {
		c, err := validate.Open(v.kubeconfig, v.context, v.image, nil)
		return c, func() {}, err
	}
	l, err := a.lab()
	if err != nil {
		return nil, nil, err
	}
	closing := func() {}
	if l.Closed().Cluster.OverSSH() {
		err = a.confirmTrials(ctx, l.Name(), areas)
	}
	if err == nil {
		c, closing, err = labCluster(ctx, l, cmp.Or(v.image, image.ProbeImage), nil)
	}
	if err != nil {
		l.Close()
		return nil, nil, err
	}
	return c, func() { closing(); l.Close() }, nil
}

// confirmTrials asks before areas are checked with pods in a cluster that labctl did not make.
func (a *app) confirmTrials(ctx context.Context, cluster string, areas []string) error {
	tries := func(area validate.Area) bool { return len(areas) == 0 || slices.Contains(areas, string(area)) }
	if !tries(validate.AreaNetwork) && !tries(validate.AreaStorage) {
		return nil
	}
	return a.confirmChange(ctx, guard.Change{Verb: "labctl validate", Cluster: cluster, Steps: []string{
		"make a temporary namespace with test pods and a claim, and remove it at the end (kubectl create namespace, kubectl delete namespace)"}})
}

// labCluster opens the lab's cluster, whose machines are asked directly until the lab is closed.
func labCluster(ctx context.Context, l *lab.Lab, image string, mutated func(what string) error) (c *validate.Cluster, closing func(), err error) {
	kubeconfig, closing, err := l.Kubeconfig(ctx)
	if err != nil {
		return nil, nil, err
	}
	c, err = validate.Open(kubeconfig, "", image, mutated)
	if err != nil {
		closing()
		return nil, nil, err
	}
	c.Patience, c.Dial = l.TimeScale(), l.Dial
	c.Diagnose = func(ctx context.Context) (diagnose.Report, error) {
		return l.Diagnose(ctx, health.DiagnoseOptions{Brief: true})
	}
	return c, closing, nil
}

// findingsWidth is the width of the table of findings. It fits every terminal.
const findingsWidth = 80

// printFindings writes a line for each finding, then the details of those that did not pass.
func printFindings(w io.Writer, findings []validate.Finding) {
	const statusWidth, areaWidth = len(validate.NotApplicable), len(validate.AreaMonitoring)
	line := func(status, area, check string) {
		head := fmt.Sprintf("%-*s  %-*s  ", statusWidth, status, areaWidth, area)
		writeWrapped(w, head, check)
	}
	line("STATUS", "AREA", "CHECK")
	for _, f := range findings {
		line(string(f.Status), string(f.Area), f.Check)
	}
	for _, f := range findings {
		if f.Status == validate.Passed {
			continue
		}
		_, _ = fmt.Fprintln(w)
		writeWrapped(w, "", fmt.Sprintf("%s: %s: %s", f.Status, f.Area, f.Check))
		writeWrapped(w, "  ", f.Detail)
		if f.Next != "" {
			writeWrapped(w, "  next: ", f.Next)
		}
	}
}

// writeWrapped writes a text after a head, and indents its further lines to the end of the head.
func writeWrapped(w io.Writer, head, text string) {
	room := findingsWidth - event.Columns(head)
	line := ""
	flush := func() {
		_, _ = fmt.Fprintln(w, strings.TrimRight(head+line, " "))
		head, line = strings.Repeat(" ", event.Columns(head)), ""
	}
	for _, word := range strings.Fields(text) {
		if line != "" && event.Columns(line)+1+event.Columns(word) > room {
			flush()
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	flush()
}
