package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"k8slab/config"
	"k8slab/lab"
	"k8slab/lab/diagnose"
	"k8slab/lab/event"
	"k8slab/lab/health"
	"k8slab/lab/state"
)

const (
	labsAtOnce = 4               // diagnosed by --all
	allBudget  = 5 * time.Minute // of --all
	labBudget  = 30 * time.Second
)

// diagnosedLab is one lab of `labctl diagnose --all`: its report, or why there is none.
type diagnosedLab struct {
	Name   string           `json:"name"`
	Report *diagnose.Report `json:"report,omitempty"`
	Error  string           `json:"error,omitempty"`
	took   time.Duration
}

// diagnoseAll diagnoses every lab of this user.
func (a *app) diagnoseAll(ctx context.Context, o health.DiagnoseOptions, limit time.Duration) error {
	names, err := state.Names()
	if err != nil {
		return err
	}
	if len(names) == 0 { // no news are no good news
		return errors.New("this user has no lab; run as the user who made them, or set XDG_STATE_HOME")
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no result within %s (--timeout, of all labs)", limit))
	defer cancel()
	all := eachLab(limited, names, func(ctx context.Context, name string) (diagnose.Report, error) { return a.diagnoseMade(ctx, name, o) })
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := a.printAll(all); err != nil {
		return err
	}
	for _, one := range all {
		if one.Report == nil || !one.Report.Healthy {
			return exitStatus(exitFailed)
		}
	}
	return nil
}

// eachLab asks for a report of each lab, of a few at once. It returns them in the order of the names.
func eachLab(ctx context.Context, names []string, ask func(ctx context.Context, name string) (diagnose.Report, error)) []diagnosedLab {
	all := make([]diagnosedLab, len(names))
	var group errgroup.Group
	group.SetLimit(labsAtOnce)
	for i, name := range names {
		group.Go(func() error {
			began := time.Now()
			one := diagnosedLab{Name: name}
			err := context.Cause(ctx)
			if err == nil {
				var r diagnose.Report
				if r, err = ask(ctx, name); err == nil {
					one.Report = &r
				}
			}
			if err != nil {
				one.Error = event.Redact(err.Error())
			}
			one.took = time.Since(began)
			all[i] = one
			return nil
		})
	}
	_ = group.Wait() // no function returns an error: each has its row
	return all
}

// diagnoseMade diagnoses a lab as it was made. It asks nobody for a password or a host key: several labs would ask at once.
func (a *app) diagnoseMade(ctx context.Context, name string, o health.DiagnoseOptions) (diagnose.Report, error) {
	path, err := state.MadeWith(name)
	if err != nil {
		return diagnose.Report{}, err
	}
	c, _, err := config.Load(path)
	if err != nil {
		return diagnose.Report{}, err
	}
	opts := a.labOptions(nil)
	opts.Login.Ask, opts.Login.Password, opts.Login.Passphrase = nil, nil, nil
	l, err := lab.New(c, opts)
	if err != nil {
		return diagnose.Report{}, err
	}
	defer l.Close()
	limit := labBudget * time.Duration(l.TimeScale())
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no result within %s", limit))
	defer cancel()
	return l.Diagnose(ctx, o)
}

func (a *app) printAll(all []diagnosedLab) error {
	if a.output == "json" {
		return a.encodeReport(all)
	}
	return a.print(all, func(w io.Writer) { printDiagnosedLabs(w, all) })
}

func printDiagnosedLabs(w io.Writer, all []diagnosedLab) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "NAME\tNODES\tHEALTHY\tWORST FINDING\tTIME")
	for _, one := range all {
		nodes, healthy, worst := "–", "unknown", "–"
		if r := one.Report; r != nil {
			nodes, healthy, worst = fmt.Sprintf("%d of %d", r.Reached(), len(r.Nodes)), yesNo(r.Healthy), cmp.Or(r.Worst(), "none")
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", one.Name, nodes, healthy, worst, one.took.Round(100*time.Millisecond))
	}
	_ = t.Flush()
	for _, one := range all {
		if one.Error != "" {
			_, _ = fmt.Fprintf(w, "%s: %s\n", one.Name, event.OneLine(one.Error))
		}
	}
}
