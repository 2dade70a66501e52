package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"k8slab/lab/event"
	"k8slab/scenarios"
)

// soakDamage is `labctl soak --damage`.
func (a *app) soakDamage(ctx context.Context, o soakOptions) error {
	var s scenarios.DamageSoaked
	err := a.inSoak(ctx, o, func(d driver, options scenarios.Options) error {
		play := func(n int) scenarios.Damaged { return playDamage(ctx, d, o.seed, n, options) }
		s = scenarios.SoakDamage(ctx, o.seed, o.first, o.rounds, o.within, play)
		if !s.Unrestored() || o.replays == 0 {
			return nil
		}
		return s.Shorten(ctx, o.replays, func() error { return anew(ctx, d, o.anew) }, play)
	})
	if len(s.Rounds) > 0 {
		var results []scenarios.Result
		for _, r := range s.Rounds {
			results = append(results, r.Result())
		}
		err = errors.Join(err, a.print(s, func(w io.Writer) { printDamageSoak(w, s) }), o.junit.write("soak", results))
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(s.Rounds, scenarios.Damaged.Missed) {
		return exitStatus(exitFailed)
	}
	return nil
}

// playDamage runs a round as a step of its own.
func playDamage(ctx context.Context, d driver, seed uint64, n int, o scenarios.Options) scenarios.Damaged {
	step := d.lab.Events().Start("", "round "+strconv.Itoa(n), 0)
	o.Progress = func(text string) { step.Progress("%s", text) }
	o.Patience = d.lab.TimeScale()
	round := scenarios.RunDamage(ctx, d, seed, n, o)
	_ = step.End(round.Result().Err()) // it is in the result
	return round
}

func printDamageSoak(w io.Writer, s scenarios.DamageSoaked) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "ROUND\tNODE\tDAMAGE\tDIAGNOSIS\tNAMED\tRECOVERY\tHEALED\tBY")
	for _, r := range s.Rounds {
		_, _ = fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%.1fs\t%s\t%.1fs\t%s\n",
			r.Round, cmp.Or(r.Node, "–"), r.Damage, cmp.Or(string(r.Named), string(r.Class)), r.ToName,
			cmp.Or(string(r.Healed), "–"), r.ToHeal, cmp.Or(r.By, "–"))
	}
	_ = t.Flush()
	printMisses(w, s)
	printScore(w, s)
	if !s.Unrestored() {
		return
	}
	if s.Reproduced {
		_, _ = fmt.Fprintf(w, "shortest sequence after which the lab could not be restored, after %d replayed rounds:\n", len(s.Replayed))
	} else {
		_, _ = fmt.Fprintf(w, "the lab could not be restored once, and could in %d replayed rounds; the last round was:\n", len(s.Replayed))
		s.Shortest = []int{s.Rounds[len(s.Rounds)-1].Round}
	}
	for _, n := range s.Shortest {
		_, _ = fmt.Fprintf(w, "  labctl soak --damage --seed %d --first %d --rounds 1\n", s.Seed, n)
	}
}

// printMisses explains each round that was not named or not healed: what was damaged, and what was said.
func printMisses(w io.Writer, s scenarios.DamageSoaked) {
	for _, r := range s.Rounds {
		if !r.Missed() {
			continue
		}
		_, _ = fmt.Fprintf(w, "\nround %d: %s on %s\n", r.Round, r.Damage, cmp.Or(r.Node, "the cluster"))
		line := func(label, text string) {
			if text != "" {
				_, _ = fmt.Fprintf(w, "  %-8s  %s\n", label, event.OneLine(event.Redact(text)))
			}
		}
		var of []string
		for _, c := range r.Components {
			of = append(of, string(c))
		}
		line("of", strings.Join(of, ", "))
		line("said", cmp.Or(strings.Join(r.Said, "; "), "nothing"))
		line("reason", r.Reason)
	}
}

func printScore(w io.Writer, s scenarios.DamageSoaked) {
	c := s.Score
	_, _ = fmt.Fprintf(w, "\nseed %d, rounds %d to %d: %d rounds, %d harmless, %d not applicable, %d could not be set up\n",
		s.Seed, s.First, s.First+c.Rounds-1, c.Rounds, c.Harmless, c.NotApplicable, c.SetupFailed)
	_, _ = fmt.Fprintf(w, "named %d of %d (%.1f %%), %d misnamed, %d silent\n",
		c.Named, c.Named+c.Misnamed+c.Silent, 100*c.NamedShare, c.Misnamed, c.Silent)
	_, _ = fmt.Fprintf(w, "healed %d of %d (%.1f %%), %d dead ends, %d lost something\n",
		c.Healed, c.Healed+c.DeadEnds+c.Lost, 100*c.HealedShare, c.DeadEnds, c.Lost)
}
