package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"k8slab/config"
	"k8slab/lab/diagnose/siterule"
	"k8slab/lab/event"
)

// siteRules reads the user's own rules. A file with problems is left out with a warning: a diagnosis goes on.
func (a *app) siteRules() *siterule.Set {
	files, err := siterule.Files()
	if err != nil {
		_, _ = fmt.Fprintln(a.stderr, "warning: your own rules are left out:", err)
	}
	rules, problems := siterule.Load(files)
	for _, p := range problems {
		_, _ = fmt.Fprintln(a.stderr, "warning:", event.OneLine(p.String())+"; the rules of this file are left out")
	}
	return rules
}

// testRules tries the rules of the files, or else of the user's own, on their own examples.
func (a *app) testRules(files []string) error {
	if len(files) == 0 {
		var err error
		if files, err = ownRuleFiles(); err != nil {
			return err
		}
	}
	rules, problems := siterule.Load(files)
	if len(problems) > 0 {
		return problems
	}
	tested := rules.Test()
	if err := a.print(tested, func(w io.Writer) { printTested(w, tested) }); err != nil {
		return err
	}
	for _, t := range tested {
		if !t.OK {
			return exitStatus(exitFailed)
		}
	}
	return nil
}

func ownRuleFiles() ([]string, error) {
	files, err := siterule.Files()
	if err == nil && len(files) == 0 {
		dir, _ := siterule.Dir() // Files has found it
		return nil, config.Problems{{File: dir, Message: "no file *.yaml here; write one, or name files: labctl diagnose --test-rules FILE"}}
	}
	return files, err
}

func printTested(w io.Writer, tested []siterule.Tested) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "RULE\tCAUSE\tEXAMPLES\tNOT\tRESULT")
	for _, one := range tested {
		result := "ok"
		switch {
		case !one.OK:
			result = "failed"
		case one.Examples+one.Not == 0:
			result = "no examples"
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%d of %d\t%d of %d\t%s\n", one.Rule, one.Cause, one.Examples-len(one.Missed), one.Examples,
			one.Not-len(one.Matched), one.Not, result)
	}
	_ = t.Flush()
	for _, one := range tested {
		for _, line := range one.Missed {
			_, _ = fmt.Fprintf(w, "%s: must match, and does not: %s\n", one.Rule, event.OneLine(line))
		}
		for _, line := range one.Matched {
			_, _ = fmt.Fprintf(w, "%s: must not match, and does: %s\n", one.Rule, event.OneLine(line))
		}
	}
}
