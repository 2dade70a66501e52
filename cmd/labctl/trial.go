package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"k8slab/lab"
	"k8slab/lab/event"
	"k8slab/lab/state"
	"k8slab/scenarios"
)

// trial is the experiments that a command makes, one after the other, and what becomes of their results.
type trial struct {
	verb     string
	steps    []string // for who is asked before a cluster that labctl did not make is changed
	rounds   []scenarios.Round
	evidence string // directory, or ""
	files    resultFiles
	tool     outsider
	anew     bool // make a new lab where labctl cannot bring it back
	show     func(io.Writer, scenarios.Report)
	failed   func(scenarios.Result) bool // makes the exit status 1
}

// try makes the experiments and prints the report, also of those that were made before an interruption.
func (a *app) try(ctx context.Context, t trial) error {
	quiet := *a
	quiet.output = "text" // events go to stderr, the results to stdout
	report := scenarios.Report{Schema: scenarios.ReportSchema, Tool: cmp.Or(t.tool.command, "labctl")}
	err := quiet.withFaults(ctx, t.verb, t.steps, func(l *lab.Lab, injected scenarios.Record) error {
		return t.play(ctx, driver{a, l}, injected, &report)
	})
	if report.Results != nil {
		err = errors.Join(err, a.print(report, func(w io.Writer) { t.show(w, report) }), t.files.write(t.verb, report))
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(report.Results, t.failed) {
		return exitStatus(exitFailed)
	}
	return nil
}

func (t trial) play(ctx context.Context, d driver, injected scenarios.Record, report *scenarios.Report) error {
	report.Lab.Name, report.Lab.Machines = d.lab.Name(), machinesOf(d.lab.Closed())
	report.Versions.Labctl = thisBuild().Version + " " + thisBuild().Commit
	if err := d.restoreLeft(ctx, injected); err != nil {
		for _, r := range t.rounds {
			report.Results = append(report.Results, r.NotBegun(err))
		}
		return err
	}
	if err := scenarios.Describe(ctx, d, report); err != nil { // each experiment says that the lab is not healthy
		_, _ = fmt.Fprintln(d.app.stderr, "warning: the report lacks versions:", event.OneLine(err.Error()))
	}
	for _, r := range t.rounds {
		report.Results = append(report.Results, t.one(ctx, d, r, scenarios.Options{Evidence: t.evidence, Record: injected}))
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if left, err := injected.Left(); t.anew && (err != nil || len(left) > 0) {
			if err := anew(ctx, d, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// one makes one experiment, with the tool if there is one.
func (t trial) one(ctx context.Context, d driver, r scenarios.Round, o scenarios.Options) scenarios.Result {
	if t.tool.command != "" {
		tool, closing, err := t.tool.open(ctx, d, filepath.Join(filepath.Dir(o.Record.Path), "bench"))
		if err != nil {
			return r.NotBegun(err)
		}
		defer closing()
		o.Tool = tool
	}
	result := playRound(ctx, d, r, o)
	result.Reason, result.Detected.Evidence = event.Redact(result.Reason), event.Redact(result.Detected.Evidence) // others may have written them
	return result
}

// machinesOf says what the lab's machines are.
func machinesOf(l state.Lab) string {
	switch {
	case l.Cluster.OverSSH():
		return "ssh"
	case strings.HasPrefix(l.URI, "lxc:"):
		return "containers"
	}
	return "virtual-machines"
}

// playRound runs the experiment of a round as a step of its own.
func playRound(ctx context.Context, d driver, r scenarios.Round, o scenarios.Options) scenarios.Result {
	step := d.lab.Events().Start("", r.String(), 0)
	o.Progress = func(text string) { step.Progress("%s", text) }
	o.Patience = d.lab.TimeScale()
	result := r.Run(ctx, d, o)
	_ = step.End(result.Err()) // it is in the result
	return result
}

// anew prepares a lab for a sequence: a new one, or the present one brought up again, since the failed round may have left it broken.
func anew(ctx context.Context, d driver, fresh bool) error {
	if fresh {
		if _, err := d.Labctl(ctx, "down"); err != nil {
			return err
		}
	}
	_, err := d.Labctl(ctx, "up")
	return err
}

// roundsOf parses each NAME[@NODE][+NAME[@NODE]]…; node is the default.
func roundsOf(args []string, node string) (rounds []scenarios.Round, err error) {
	for _, text := range args {
		r, err := scenarios.ParseRound(text)
		if err != nil {
			return nil, usageError{err}
		}
		for i := range r {
			r[i].Node = cmp.Or(r[i].Node, node)
		}
		rounds = append(rounds, r)
	}
	return rounds, nil
}

// evidenceDir makes the directory that --evidence names.
func evidenceDir(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("--evidence: %w; name a directory that you can write to", err)
	}
	return nil
}

func printResults(w io.Writer, results []scenarios.Result) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "FAULT\tNODE\tRESULT\tDIAGNOSIS\tEFFECT\tNAMED\tRECOVERED\tALL\tREASON")
	for _, r := range results {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.1fs\t%.1fs\t%.1fs\t%.1fs\t%s\n",
			r.Fault, r.Node, r.Class, cmp.Or(string(r.Detected.Cause), "nothing"), r.ToEffect, r.ToCause, r.ToRecover, r.Seconds, event.OneLine(r.Reason))
	}
	_ = t.Flush()
}
