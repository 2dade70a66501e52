package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"k8slab/lab"
	"k8slab/lab/diagnose"
	"k8slab/lab/diagnose/siterule"
	"k8slab/lab/health"
)

func (a *app) diagnoseCommand() *cobra.Command {
	var d diagnosis
	cmd := &cobra.Command{
		Use:   "diagnose [NODE...]",
		Short: "Find what is wrong and how to fix it (any cluster, from its logs)",
		Long: `Check every node, the API server and etcd at the same time, and name the problems: first the causes, then their consequences, each with the node, the
evidence and the fix. It works while the API server is down or a node does not answer, and it never changes anything.

With --from it analyses logs instead: a bundle, a directory of logs, or any text – kubeadm's output, journals, etcd's logs,
kubectl's tables or a mix – from a cluster of any version and distribution. It needs no lab.
If something failed there that no known cause explains, the answer is undetermined: not healthy, but no failure.

With --all it diagnoses every lab of this user, 4 at a time, and prints a row for each. A lab has 30s (150s with emulated processors), all
of them together have 5m, or what --timeout says.

Causes, phrases and hints of your own are read from $XDG_CONFIG_HOME/k8slab/rules.d/*.yaml (~/.config/k8slab/rules.d). A file with problems
is left out with a warning. With --test-rules it diagnoses nothing, and tries the rules of these files, or of FILE..., on their own examples.

The output is text, json or html (one self-contained page), always redacted. A finding is a failure or a warning.

Exit status: 0 nothing fails, 1 something does (with --all: not all labs are healthy), 2 wrong usage or invalid rules, 130 interrupted.`,
		Example: `  labctl diagnose
  labctl diagnose cp2 w1 --since 30m
  labctl diagnose -o html >report.html
  labctl diagnose --bundle broken.tar.gz
  labctl diagnose --from broken.tar.gz
  labctl diagnose --all -o json
  labctl diagnose --test-rules home.yaml
  kubeadm join … 2>&1 | labctl diagnose --from - -o json`,
		ValidArgsFunction: a.diagnoseNodes,
		RunE: func(cmd *cobra.Command, args []string) error {
			d.Nodes = args
			d.named = cmd.Flags().Changed("config") || cmd.Flags().Changed("lab")
			d.timed = cmd.Flags().Changed("timeout")
			return a.diagnose(cmd.Context(), d)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&d.output, "output", "o", "text", "text, json or html")
	flags.StringVar(&d.from, "from", "", "analyse this bundle, directory of logs or text, or - for standard input, instead of the lab")
	flags.StringVar(&d.Bundle, "bundle", "", "also save the facts and logs, redacted, to this `FILE.tar.gz`, which --from can analyse")
	flags.BoolVar(&d.all, "all", false, "diagnose all labs of this user (labctl lab list)")
	flags.BoolVar(&d.testRules, "test-rules", false, "check files of rules, and try each rule on its examples")
	flags.BoolVar(&d.force, "force", false, "replace the file of --bundle if it exists")
	flags.DurationVar(&d.Since, "since", 0, "read journals since this long ago, for example 30m; 0 means since the last boot")
	flags.DurationVar(&d.timeout, "timeout", 0, "give up after this time; the default is 30s, five times as long where processors are emulated, "+
		"10m with --from, and 5m for all labs together with --all")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(reportOutputs, cobra.ShellCompDirectiveNoFileComp))
	cmd.PreRunE = func(*cobra.Command, []string) error {
		switch d.output {
		case "text", "json", "html":
			return nil
		}
		return usageError{fmt.Errorf("--output %q: use text, json or html", d.output)}
	}
	return cmd
}

var reportOutputs = []string{"text", "json", "html"}

// diagnosis is a call of `labctl diagnose`.
type diagnosis struct {
	health.DiagnoseOptions
	from, output          string
	force, all, testRules bool
	named                 bool // -c or --lab was given
	timed                 bool // --timeout was
	timeout               time.Duration
}

// limit is the time limit of the call.
func (a *app) limit(d diagnosis) time.Duration {
	switch {
	case d.timeout != 0:
		return d.timeout
	case d.from != "":
		return 10 * time.Minute
	case d.all:
		return allBudget
	}
	return a.patient(labBudget)
}

func (a *app) diagnose(ctx context.Context, d diagnosis) error {
	if err := d.check(); err != nil {
		return usageError{err}
	}
	a.output = d.output
	if d.testRules {
		return a.testRules(d.Nodes)
	}
	if err := newFile(d.Bundle, d.force); err != nil {
		return err
	}
	d.timeout, d.Rules = a.limit(d), a.siteRules()
	if d.all {
		return a.diagnoseAll(ctx, d.DiagnoseOptions, d.timeout)
	}
	return a.diagnoseOne(ctx, d)
}

// check returns everything that is wrong with the call at once.
func (d diagnosis) check() error {
	var errs []error
	one := d.named || d.from != "" || d.Bundle != "" || d.output == "html"
	if d.all && (one || d.testRules || len(d.Nodes) > 0) {
		errs = append(errs, errors.New("--all diagnoses all labs: it takes no NODE, -c, --lab, --from, --bundle, --test-rules or -o html"))
	}
	if d.testRules && (one || d.Since != 0) {
		errs = append(errs, errors.New("--test-rules diagnoses nothing: it takes files of rules, and no -c, --lab, --from, "+
			"--bundle, --since or -o html"))
	}
	if d.from != "" && (len(d.Nodes) > 0 || d.Bundle != "" || d.Since != 0) {
		errs = append(errs, errors.New("--from analyses existing text: it takes no NODE, --bundle or --since"))
	}
	if d.Since < 0 {
		errs = append(errs, fmt.Errorf("--since %s: it must not be negative", d.Since))
	}
	if d.timed && d.timeout <= 0 {
		errs = append(errs, fmt.Errorf("--timeout %s: it must be positive", d.timeout))
	}
	return errors.Join(errs...)
}

// patient scales a time limit for the machines of the lab of cluster.yaml, which need not exist.
func (a *app) patient(d time.Duration) time.Duration {
	c, _, err := a.load()
	if err != nil {
		return d
	}
	l, err := lab.New(c, a.labOptions(nil))
	if err != nil {
		return d
	}
	return d * time.Duration(l.TimeScale())
}

// diagnoseOne diagnoses the lab, or what was written down.
func (a *app) diagnoseOne(ctx context.Context, d diagnosis) error {
	r, err := a.diagnosed(ctx, d)
	if r.Source == "" { // nothing was judged
		return err
	}
	if err := errors.Join(err, a.showReport(r)); err != nil {
		return err
	}
	if r.Failed() {
		return exitStatus(exitFailed)
	}
	return nil
}

func (a *app) diagnosed(ctx context.Context, d diagnosis) (diagnose.Report, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d.timeout, fmt.Errorf("no result within %s (--timeout)", d.timeout))
	defer cancel()
	if d.from != "" {
		return fromFile(ctx, d.Rules, d.from, a.stdin)
	}
	return look(a, func(l *lab.Lab) (diagnose.Report, error) {
		a.warnOfDifferences(l)
		if err := d.Check(l.Closed()); err != nil { // also where there is no lab yet
			return diagnose.Report{}, err
		}
		return l.Diagnose(ctx, d.DiagnoseOptions)
	})
}

// fromFile also ends with ctx while it waits for standard input.
func fromFile(ctx context.Context, rules *siterule.Set, from string, stdin io.Reader) (diagnose.Report, error) {
	type result struct {
		report diagnose.Report
		err    error
	}
	done := make(chan result, 1)
	go func() {
		r, err := diagnose.FromWith(rules, from, stdin)
		done <- result{r, err}
	}()
	select {
	case r := <-done:
		return r.report, r.err
	case <-ctx.Done():
		return diagnose.Report{}, context.Cause(ctx)
	}
}

func (a *app) showReport(r diagnose.Report) error {
	switch a.output {
	case "json":
		return a.encodeReport(r)
	case "html":
		return diagnose.WriteHTML(a.stdout, r)
	}
	width, colour := terminalOf(a.stdout)
	return diagnose.WriteText(a.stdout, r, width, colour)
}

func (a *app) encodeReport(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false) // hints are read with grep as often as with jq
	return enc.Encode(v)
}

// terminalOf returns the width of w if it is a terminal, else 0, and whether to use colours.
func terminalOf(w io.Writer) (width int, colour bool) {
	if s, ok := w.(*screen); ok {
		w = s.to
	}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		width = 0
	}
	return width, os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// diagnoseNodes completes nodes of cluster.yaml that are not named yet.
func (a *app) diagnoseNodes(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	names, directive := a.nodeNames(cmd, nil, word)
	var left []string
	for _, name := range names {
		named := false
		for _, arg := range args {
			named = named || arg == name
		}
		if !named {
			left = append(left, name)
		}
	}
	return left, directive
}
