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
	"k8slab/lab/health"
)

func (a *app) diagnoseCommand() *cobra.Command {
	var o health.DiagnoseOptions
	var from, output string
	var force bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "diagnose [NODE...]",
		Short: "Find what is wrong and how to fix it (any cluster, from its logs)",
		Long: `Check every node, the API server and etcd at the same time, and name the problems: first the causes, then their consequences, each with the node, the
evidence and the fix. It works while the API server is down or a node does not answer, and it never changes anything.

With --from it analyses logs instead: a bundle, a directory of logs, or any text – kubeadm's output, journals, etcd's logs,
kubectl's tables or a mix – from a cluster of any version and distribution. It needs no lab.
If something failed there that no known cause explains, the answer is undetermined: not healthy, but no failure.

The output is text, json or html (one self-contained page), always redacted. A finding is a failure or a warning.

Exit status: 0 nothing fails, 1 something does, 2 wrong usage, 130 interrupted.`,
		Example: `  labctl diagnose
  labctl diagnose cp2 w1 --since 30m
  labctl diagnose -o html >report.html
  labctl diagnose --bundle broken.tar.gz
  labctl diagnose --from broken.tar.gz
  kubeadm join … 2>&1 | labctl diagnose --from - -o json`,
		ValidArgsFunction: a.diagnoseNodes,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Nodes = args
			switch {
			case cmd.Flags().Changed("timeout"):
			case from != "":
				timeout = 10 * time.Minute
			default:
				timeout = a.patient(30 * time.Second)
			}
			if err := checkDiagnose(o, from, timeout); err != nil {
				return usageError{err}
			}
			if err := newFile(o.Bundle, force); err != nil {
				return err
			}
			r, err := a.diagnosed(cmd.Context(), o, from, timeout)
			if r.Source == "" { // nothing was judged
				return err
			}
			if err := errors.Join(err, a.showReport(r, output)); err != nil {
				return err
			}
			if r.Failed() {
				return exitStatus(exitFailed)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&output, "output", "o", "text", "text, json or html")
	flags.StringVar(&from, "from", "", "analyse this bundle, directory of logs or text, or - for standard input, instead of the lab")
	flags.StringVar(&o.Bundle, "bundle", "", "also save the facts and logs, redacted, to this `FILE.tar.gz`, which --from can analyse")
	flags.BoolVar(&force, "force", false, "replace the file of --bundle if it exists")
	flags.DurationVar(&o.Since, "since", 0, "read journals since this long ago, for example 30m; 0 means since the last boot")
	flags.DurationVar(&timeout, "timeout", 0, "give up after this time; the default is 30s, five times as long where processors are emulated, and 10m with --from")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(reportOutputs, cobra.ShellCompDirectiveNoFileComp))
	cmd.PreRunE = func(*cobra.Command, []string) error {
		switch output {
		case "text", "json", "html":
			return nil
		}
		return usageError{fmt.Errorf("--output %q: use text, json or html", output)}
	}
	return cmd
}

var reportOutputs = []string{"text", "json", "html"}

// checkDiagnose returns everything that is wrong with the call at once.
func checkDiagnose(o health.DiagnoseOptions, from string, timeout time.Duration) error {
	var errs []error
	if from != "" && (len(o.Nodes) > 0 || o.Bundle != "" || o.Since != 0) {
		errs = append(errs, errors.New("--from analyses existing text: it takes no NODE, --bundle or --since"))
	}
	if o.Since < 0 {
		errs = append(errs, fmt.Errorf("--since %s: it must not be negative", o.Since))
	}
	if timeout <= 0 {
		errs = append(errs, fmt.Errorf("--timeout %s: it must be positive", timeout))
	}
	return errors.Join(errs...)
}

// patient scales a time limit for the machines of the lab of cluster.yaml, which need not exist.
func (a *app) patient(d time.Duration) time.Duration {
	c, _, err := a.load()
	if err != nil {
		return d
	}
	l, err := lab.New(c, lab.Options{})
	if err != nil {
		return d
	}
	return d * time.Duration(l.TimeScale())
}

func (a *app) diagnosed(ctx context.Context, o health.DiagnoseOptions, from string, timeout time.Duration) (diagnose.Report, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no result within %s (--timeout)", timeout))
	defer cancel()
	if from != "" {
		return fromFile(ctx, from, a.stdin)
	}
	return look(a, func(l *lab.Lab) (diagnose.Report, error) {
		a.warnOfDifferences(l)
		return l.Diagnose(ctx, o)
	})
}

// fromFile also ends with ctx while it waits for standard input.
func fromFile(ctx context.Context, from string, stdin io.Reader) (diagnose.Report, error) {
	type result struct {
		report diagnose.Report
		err    error
	}
	done := make(chan result, 1)
	go func() {
		r, err := diagnose.From(from, stdin)
		done <- result{r, err}
	}()
	select {
	case r := <-done:
		return r.report, r.err
	case <-ctx.Done():
		return diagnose.Report{}, context.Cause(ctx)
	}
}

func (a *app) showReport(r diagnose.Report, output string) error {
	switch output {
	case "json":
		enc := json.NewEncoder(a.stdout)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false) // hints are read with grep as often as with jq
		return enc.Encode(r)
	case "html":
		return diagnose.WriteHTML(a.stdout, r)
	}
	width, colour := terminalOf(a.stdout)
	return diagnose.WriteText(a.stdout, r, width, colour)
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
