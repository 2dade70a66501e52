package scenarios

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"k8slab/config"
)

// Choice is a fault and the nodes of a lab that it can be injected on.
type Choice struct {
	Fault   Fault
	Targets []Target
}

// Choices are what a soak draws from: every fault on every node of the lab that it can be injected on. In a lab of fewer than three control
// planes no fault is drawn on a control plane, since most there would break the quorum.
func Choices(ctx context.Context, d Driver) ([]Choice, error) {
	t, err := look(ctx, d)
	if err != nil {
		return nil, err
	}
	all := choices(t, faults)
	if len(all) == 0 {
		return nil, errors.New("no fault can be injected in this lab")
	}
	return all, nil
}

func choices(t Target, faults []Fault) (all []Choice) {
	controlPlanes := 0
	for _, m := range t.Members {
		if m.Role == config.ControlPlane {
			controlPlanes++
		}
	}
	for _, f := range faults {
		if f.Upgrade != "" { // the lab keeps its version
			continue
		}
		c := Choice{Fault: f}
		for _, m := range t.Members {
			at := t
			at.Node = m.Name
			at, err := at.complete(f)
			if err == nil && (m.Role != config.ControlPlane || controlPlanes >= 3) {
				c.Targets = append(c.Targets, at)
			}
		}
		if len(c.Targets) > 0 {
			all = append(all, c)
		}
	}
	return all
}

// pairShare is the share of rounds with two faults, if two can be injected at the same time.
const pairShare = 0.25

// Draw is the nth round of the seed: the same for the same choices, whatever was drawn before. Every fault is as likely as any other.
func Draw(seed uint64, n int, from []Choice) Round {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	first := pick(r, from)
	round := Round{{first.Fault, first.target.Node}}
	if r.Float64() >= pairShare {
		return round
	}
	var beside []Choice
	for _, c := range from {
		c.Targets = slices.DeleteFunc(slices.Clone(c.Targets), func(t Target) bool { return compose([]placed{first, {c.Fault, t}}) != nil })
		if len(c.Targets) > 0 {
			beside = append(beside, c)
		}
	}
	if len(beside) > 0 {
		second := pick(r, beside)
		round = append(round, Placement{second.Fault, second.target.Node})
	}
	return round
}

func pick(r *rand.Rand, from []Choice) placed {
	c := from[r.IntN(len(from))]
	return placed{c.Fault, c.Targets[r.IntN(len(c.Targets))]}
}

// Soaked is the result of a soak.
type Soaked struct {
	Seed        uint64   `json:"seed,string"`
	First       int      `json:"first"` // number of the first round
	Rounds      []Round  `json:"rounds"`
	Results     []Result `json:"results"`
	Recovered   int      `json:"recovered"`
	Unrecovered int      `json:"unrecovered"`
	SetupFailed int      `json:"setup_failed"` // the fault could not be injected: says nothing about recovery, and is not counted in AtLeast
	AtLeast     float64  `json:"at_least"`     // share of such rounds that are recovered, with 95 % confidence

	Shortest   []Round  `json:"shortest,omitempty"`   // failing sequence that was found
	Reproduced bool     `json:"reproduced,omitempty"` // it failed again when it was replayed
	Replayed   []Result `json:"replayed,omitempty"`
}

// Soak plays rounds, from the number first on, until the lab does not recover from one. It also ends when two in a row could not be set up,
// since then a person has to look.
func Soak(ctx context.Context, seed uint64, first, rounds int, from []Choice, play func(Round) Result) Soaked {
	s := Soaked{Seed: seed, First: first}
	for n := first; n < first+rounds && ctx.Err() == nil; n++ {
		round := Draw(seed, n, from)
		result := play(round)
		if ctx.Err() != nil {
			break // it says nothing about the lab
		}
		s.add(round, result)
		if s.Unrecovered > 0 || s.stuck() {
			break
		}
	}
	s.AtLeast = AtLeast(s.Recovered, s.Recovered+s.Unrecovered)
	return s
}

func (s *Soaked) add(round Round, r Result) {
	s.Rounds, s.Results = append(s.Rounds, round), append(s.Results, r)
	switch r.Class {
	case Passed:
		s.Recovered++
	case Failed:
		s.Unrecovered++
	case SetupFailed:
		s.SetupFailed++
	}
}

func (s *Soaked) stuck() bool {
	n := len(s.Results)
	return n > 1 && s.Results[n-1].Class == SetupFailed && s.Results[n-2].Class == SetupFailed
}

// Shorten looks for the shortest sequence of rounds that still fails, playing at most that many rounds. anew is called before each sequence.
func (s *Soaked) Shorten(ctx context.Context, most int, anew func() error, play func(Round) Result) (err error) {
	failed := func(r Result) bool { return r.Class == Failed }
	s.Shortest, s.Reproduced, s.Replayed, err = shortest(ctx, s.Rounds, most, Round.thinner, anew, play, failed)
	return err
}

// shortest plays ever shorter sequences of rounds until it knows the shortest that still fails, or has played that many rounds.
func shortest[R, T any](ctx context.Context, rounds []R, most int, thinner func(R) []R, anew func() error, play func(R) T,
	failed func(T) bool) (short []R, reproduced bool, played []T, broken error) {
	short, reproduced = shorten(rounds, thinner, func(sequence []R) int {
		if len(played)+len(sequence) > most || ctx.Err() != nil || broken != nil {
			return -1
		}
		if broken = anew(); broken != nil {
			return -1
		}
		for i, round := range sequence {
			r := play(round)
			played = append(played, r)
			if failed(r) && ctx.Err() == nil {
				return i
			}
		}
		return -1
	})
	return short, reproduced, played, broken
}

// thinner are the rounds with one fault less.
func (r Round) thinner() (all []Round) {
	for k := 0; len(r) > 1 && k < len(r); k++ {
		all = append(all, slices.Delete(slices.Clone(r), k, k+1))
	}
	return all
}

// shorten finds a short sequence for which fails gives the index of a round that failed, not -1. The last round alone is likeliest, then a
// few before it; what fails is then thinned out round by round, and a pair in it to one of its faults.
func shorten[R any](sequence []R, thinner func(R) []R, fails func([]R) int) (shortest []R, reproduced bool) {
	shortest = sequence
	attempt := func(s []R) bool {
		i := fails(s)
		if i >= 0 {
			shortest, reproduced = s[:i+1], true
		}
		return i >= 0
	}
	for size := 1; ; size *= 2 {
		size = min(size, len(sequence))
		if attempt(sequence[len(sequence)-size:]) || size == len(sequence) {
			break
		}
	}
	if !reproduced {
		return shortest, false
	}
	for i := 0; i < len(shortest)-1; {
		if !attempt(slices.Delete(slices.Clone(shortest), i, i+1)) {
			i++
		}
	}
	for i := 0; i < len(shortest); i++ {
		for _, thin := range thinner(shortest[i]) {
			thinned := slices.Clone(shortest)
			thinned[i] = thin
			if attempt(thinned) {
				break
			}
		}
	}
	return shortest, true
}

// AtLeast is the share of successes that a number of independent trials shows with 95 % confidence: the lower end of the exact (Clopper and
// Pearson) one-sided interval. 149 of 149 show 98 %.
func AtLeast(successes, trials int) float64 {
	if successes == 0 {
		return 0
	}
	low, high := 0.0, 1.0
	for range 60 {
		middle := (low + high) / 2
		if chance(successes, trials, middle) < 0.05 {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// chance is how likely at least that many successes are when each trial succeeds with probability p.
func chance(successes, trials int, p float64) (sum float64) {
	choose := func(n, k int) float64 {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(k + 1))
		c, _ := math.Lgamma(float64(n - k + 1))
		return a - b - c
	}
	for k := successes; k <= trials; k++ {
		sum += math.Exp(choose(trials, k) + float64(k)*math.Log(p) + float64(trials-k)*math.Log1p(-p))
	}
	return sum
}
