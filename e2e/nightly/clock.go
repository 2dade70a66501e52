package main

import (
	"iter"
	"math"
	"slices"

	"k8slab/scenarios"
)

// Slow is a time that is longer than the earlier ones make likely.
type Slow struct {
	What    string  `json:"what"`
	Seconds float64 `json:"seconds"`
	Usual   float64 `json:"usual"` // the median of the earlier runs
	Limit   float64 `json:"limit"`
	State   State   `json:"state"` // SlowOnce, NewlySlow or StillSlow
}

// Pace is how long everything takes, beside earlier runs: 2 is twice as long.
type Pace struct {
	Factor float64 `json:"factor"`
	Limit  float64 `json:"limit,omitempty"` // 0: too few runs to tell
	Slow   bool    `json:"slow,omitempty"`
	Newly  bool    `json:"newly,omitempty"`
}

// What a comparison of times needs, and allows. The spread is the median absolute deviation, scaled to be the standard deviation of what is
// normally distributed; neither it nor the median is moved by a single bad night. The floors keep a time that never varies from alarming.
// A night compares some 150 times, of which a few are beyond their limits by chance: those count if they are so twice in a row, or far beyond.
const (
	enoughRuns  = 5
	spreads     = 4.0
	farBeyond   = 3.0 // times what the limit allows above the usual
	floorShare  = 0.3 // of the usual time
	floorTime   = 3.0 // seconds: what kubelet and the proof wait for comes in steps of seconds
	paceFloor   = 0.25
	enoughSpecs = 5
)

// limits is the median of values and what is still likely beside it, at least floor more; ok is false for too few.
func limits(values []float64, floor func(median float64) float64) (median, limit float64, ok bool) {
	if len(values) < enoughRuns {
		return 0, 0, false
	}
	median = middle(values)
	var off []float64
	for _, v := range values {
		off = append(off, math.Abs(v-median))
	}
	return median, median + max(spreads*1.4826*middle(off), floor(median)), true
}

func middle(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	if n%2 == 1 {
		return v[n/2]
	}
	return (v[n/2-1] + v[n/2]) / 2
}

// measures are the times of a spec that are compared.
var measures = []struct {
	what string
	of   func(Spec) float64
}{
	{"cause", func(s Spec) float64 { return s.Experiment.ToCause }},
	{"recovery", func(s Spec) float64 { return s.Experiment.ToRecover }},
	{"all", func(s Spec) float64 { return s.Seconds }},
}

// clock compares the times of a run with those of earlier runs on the same computer.
type clock struct {
	night   Run
	earlier []Run
	factors []float64 // of the earlier runs
	factor  float64
}

func newClock(night Run, earlier []Run) clock {
	c := clock{night: night}
	for _, h := range earlier {
		if h.Where == night.Where {
			c.earlier = append(c.earlier, h)
		}
	}
	c.earlier = c.earlier[max(0, len(c.earlier)-window):]
	for _, h := range c.earlier {
		c.factors = append(c.factors, c.factorOf(h))
	}
	c.factor = c.factorOf(night)
	return c
}

// passed are the earlier runs that passed a spec, oldest first, by their place.
func (c clock) passed(name string) iter.Seq2[int, Spec] {
	return func(yield func(int, Spec) bool) {
		for i, h := range c.earlier {
			if was, ran := h.spec(name); ran && was.Class == scenarios.Passed && !yield(i, was) {
				return
			}
		}
	}
}

// times are a spec's in the earlier runs that passed it.
func (c clock) times(name string, of func(Spec) float64) (values []float64) {
	for _, was := range c.passed(name) {
		values = append(values, of(was))
	}
	return values
}

// atPace are times without what all of their run took longer.
func (c clock) atPace(name string, of func(Spec) float64) (values []float64) {
	for i, was := range c.passed(name) {
		values = append(values, of(was)/max(1, c.factors[i]))
	}
	return values
}

// factorOf is the median, over the specs of a run, of their time divided by their usual time; 1 where too few can be compared.
func (c clock) factorOf(run Run) float64 {
	var factors []float64
	for _, s := range run.Specs {
		values := c.times(s.Name, func(s Spec) float64 { return s.Seconds })
		if s.Class == scenarios.Passed && len(values) >= enoughRuns && middle(values) > 0 {
			factors = append(factors, s.Seconds/middle(values))
		}
	}
	if len(factors) < enoughSpecs {
		return 1
	}
	return middle(factors)
}

// pace judges the run as a whole.
func (c clock) pace() Pace {
	p := Pace{Factor: c.factor}
	_, limit, ok := limits(c.factors, func(float64) float64 { return paceFloor })
	if ok {
		p.Limit, p.Slow = limit, p.Factor > limit
		p.Newly = p.Slow && c.factors[len(c.factors)-1] <= limit
	}
	return p
}

// slow are the times of a spec that are too long. What all of the run takes longer is not blamed on each spec.
func (c clock) slow(s Spec) (all []Slow) {
	if s.Class != scenarios.Passed {
		return nil
	}
	for _, m := range measures {
		values := c.atPace(s.Name, m.of)
		usual, limit, ok := limits(values, func(median float64) float64 { return max(floorShare*median, floorTime) })
		if now := m.of(s) / max(1, c.factor); ok && now > limit {
			all = append(all, Slow{What: m.what, Seconds: m.of(s), Usual: usual, Limit: limit, State: slowness(append(values, now), usual, limit)})
		}
	}
	return all
}

// slowness is what the last of a spec's times says, which is above the limit.
func slowness(times []float64, usual, limit float64) State {
	counts := func(i int) bool {
		return times[i] > limit && (times[i-1] > limit || times[i]-usual > farBeyond*(limit-usual))
	}
	switch last := len(times) - 1; {
	case !counts(last):
		return SlowOnce
	case counts(last - 1):
		return StillSlow
	}
	return NewlySlow
}

// usual is a spec's usual time, 0 when it is not known yet.
func (c clock) usual(name string, of func(Spec) float64) float64 {
	values := c.times(name, of)
	if len(values) < enoughRuns {
		return 0
	}
	return middle(values)
}
