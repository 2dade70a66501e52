package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"k8slab/lab"
	"k8slab/scenarios"
)

// soakOptions are the flags of `labctl soak`.
type soakOptions struct {
	seed                   uint64
	first, rounds, replays int
	anew, damage           bool
	within                 time.Duration
	evidence               string
	junit                  junitFile
}

func (a *app) soakCommand() *cobra.Command {
	var o soakOptions
	cmd := &cobra.Command{
		Use:   "soak",
		Short: "Inject random faults until the lab does not recover from one",
		Long: `Inject random faults into the healthy lab, on random nodes, sometimes two at a time, until the lab does not recover from a round. The draw depends
only on the seed and the number of the round, so a run can be continued (--first) and repeated. When a round fails, it replays shorter sequences
of the rounds to find the shortest one that still fails.

With --damage it breaks something that nobody has listed: a random file, unit, system object, image, disk or port. The diagnosis must point
at it, and "labctl repair --up-to recreate" must lead to a healthy lab that lost nothing. It goes on after a miss, undoes what labctl could
not put back, and prints the score. It ends early only when the lab cannot be restored.

Exit status: 0 the lab recovered from all rounds, 1 it did not recover from one, or one could not be set up; with --damage also when the
diagnosis did not point at it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.rounds < 1 || o.first < 1 || o.replays < 0 || o.within < 0 {
				return usageError{errors.New("--rounds and --first must be at least 1, --replays and --within at least 0")}
			}
			if o.within > 0 && !o.damage {
				return usageError{errors.New("--within is for --damage: without it, --rounds says how long the soak takes")}
			}
			if o.anew && a.labName != "" {
				return usageError{errors.New("--anew removes the lab, and with it the description that --lab takes: name its file with -c")}
			}
			if !cmd.Flags().Changed("seed") {
				o.seed = rand.Uint64()
			}
			if err := errors.Join(o.junit.check(), evidenceDir(o.evidence)); err != nil {
				return err
			}
			if o.damage {
				return a.soakDamage(cmd.Context(), o)
			}
			return a.soak(cmd.Context(), o)
		},
	}
	cmd.Flags().Uint64Var(&o.seed, "seed", 0, "the seed of the draw; the default is a random one, which is printed")
	cmd.Flags().IntVar(&o.rounds, "rounds", 20, "how many rounds to play")
	cmd.Flags().IntVar(&o.first, "first", 1, "number of the first round, to go on with a seed")
	cmd.Flags().IntVar(&o.replays, "replays", 20, "replay at most this many rounds to find the shortest failing sequence")
	cmd.Flags().BoolVar(&o.damage, "damage", false, "break random files, units, objects, images, disks and ports instead of injecting faults")
	cmd.Flags().DurationVar(&o.within, "within", 0, "with --damage, begin no round later than this; the default is no limit")
	cmd.Flags().BoolVar(&o.anew, "anew", false, "recreate the lab before each replayed sequence, so that earlier rounds have no influence; everything in the lab is lost")
	cmd.Flags().StringVar(&o.evidence, "evidence", "", "keep a diagnosis bundle of each failed round in this directory")
	o.junit.flags(cmd)
	return cmd
}

// inSoak tells of the seed, undoes what a killed experiment left in the lab, and soaks it.
func (a *app) inSoak(ctx context.Context, o soakOptions, do func(driver, scenarios.Options) error) error {
	_, _ = fmt.Fprintf(a.stderr, "seed %d\n", o.seed)
	quiet := *a
	quiet.output = "text" // events go to stderr, the results to stdout
	return quiet.withFaults(ctx, "soak", nil, func(l *lab.Lab, injected scenarios.Record) error {
		d := driver{a, l}
		if err := d.restoreLeft(ctx, injected); err != nil {
			return err
		}
		return errors.Join(do(d, scenarios.Options{Evidence: o.evidence, Record: injected}), context.Cause(ctx))
	})
}

func (a *app) soak(ctx context.Context, o soakOptions) error {
	var s scenarios.Soaked
	err := a.inSoak(ctx, o, func(d driver, options scenarios.Options) error {
		from, err := scenarios.Choices(ctx, d)
		if err != nil {
			return err
		}
		play := func(r scenarios.Round) scenarios.Result {
			return playRound(ctx, d, r, options)
		}
		if s = scenarios.Soak(ctx, o.seed, o.first, o.rounds, from, play); s.Unrecovered > 0 && o.replays > 0 {
			err = s.Shorten(ctx, o.replays, func() error { return anew(ctx, d, o.anew) }, play)
		}
		return err
	})
	if len(s.Results) > 0 {
		err = errors.Join(err, a.print(s, func(w io.Writer) { printSoak(w, s) }), o.junit.write("soak", s.Results))
	}
	if err != nil {
		return err
	}
	if s.Unrecovered+s.SetupFailed > 0 {
		return exitStatus(exitFailed)
	}
	return nil
}

// enoughRounds is how many rounds it takes until a share of them says something: 20 of 20 show 86 %, one of one 5 %.
const enoughRounds = 20

func printSoak(w io.Writer, s scenarios.Soaked) {
	printResults(w, s.Results)
	_, _ = fmt.Fprintf(w, "\nseed %d, rounds %d to %d: %d recovered, %d not, %d could not be set up\n",
		s.Seed, s.First, s.First+len(s.Rounds)-1, s.Recovered, s.Unrecovered, s.SetupFailed)
	if s.Unrecovered == 0 {
		if s.Recovered >= enoughRounds {
			_, _ = fmt.Fprintf(w, "with 95 %% confidence at least %.1f %% of such rounds are recovered\n", 100*s.AtLeast)
		}
		return
	}
	if s.Reproduced {
		_, _ = fmt.Fprintf(w, "shortest failing sequence, after %d replayed rounds:\n  labctl fault run %s\n", len(s.Replayed), arguments(s.Shortest))
		return
	}
	_, _ = fmt.Fprintf(w, "it did not fail again in %d replayed rounds; the whole sequence:\n  labctl soak --seed %d --first %d --rounds %d\n",
		len(s.Replayed), s.Seed, s.First, len(s.Rounds))
}

func arguments(rounds []scenarios.Round) string {
	var args []string
	for _, r := range rounds {
		args = append(args, r.String())
	}
	return strings.Join(args, " ")
}
