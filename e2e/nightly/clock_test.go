package main

import (
	"fmt"
	"testing"
)

func TestLimits(t *testing.T) {
	none := func(float64) float64 { return 0 }
	tests := []struct {
		values        []float64
		median, limit float64
		ok            bool
	}{
		{[]float64{10, 10, 10, 10}, 0, 0, false},
		{[]float64{10, 10, 10, 10, 10}, 10, 10, true},
		{[]float64{9, 10, 11, 10, 9}, 10, 15.93, true},          // a deviation of 1 is usual
		{[]float64{9, 10, 11, 10, 9, 500}, 10, 15.93, true},     // one bad night moves it little
		{[]float64{10, 12, 14, 16, 18, 20}, 15, 32.7912, true},  // a wide spread allows more
		{[]float64{30, 10, 10, 30, 10, 30}, 20, 79.304, true},   // two kinds of nights: not an alarm each time
		{[]float64{10, 10, 10, 10, 10, 10, 90}, 10, 10.0, true}, // it is the floor's matter
	}
	for _, tt := range tests {
		median, limit, ok := limits(tt.values, none)
		if ok != tt.ok || fmt.Sprintf("%.1f %.1f", median, limit) != fmt.Sprintf("%.1f %.1f", tt.median, tt.limit) {
			t.Errorf("%v: got %.1f, %.4f, %t", tt.values, median, limit, ok)
		}
	}
	if _, limit, _ := limits([]float64{10, 10, 10, 10, 10}, func(m float64) float64 { return m }); limit != 20 {
		t.Errorf("with a floor: %v", limit)
	}
}

// nights are runs of six scenarios that take the usual 30 s times the factor, and one that takes the seconds.
func nights(seconds []float64, factor ...float64) (runs []Run) {
	for n, s := range seconds {
		f := 1.0
		if len(factor) > n {
			f = factor[n]
		}
		specs := []string{fmt.Sprintf("x passed %g", s)}
		for i := range 6 {
			specs = append(specs, fmt.Sprintf("s%d passed %g", i, f*(30+float64(n%3))))
		}
		runs = append(runs, past(n, "", specs...))
	}
	return runs
}

func TestSlow(t *testing.T) {
	usual := []float64{40, 41, 42, 40, 41, 43}
	tests := []struct {
		name   string
		times  []float64 // of x, the last of this night
		factor float64   // of everything else, this night
		want   State
		alarms bool
	}{
		{"as usual", append(usual, 44), 1, AsBefore, false},
		{"too few nights", []float64{40, 41, 42, 40, 90}, 1, AsBefore, false},
		{"slow by chance", append(usual, 70), 1, SlowOnce, false},
		{"slow twice in a row", append(usual, 70, 71), 1, NewlySlow, true},
		{"slow for the third time", append(usual, 70, 71, 70), 1, StillSlow, false},
		{"slow by chance, twice", append(usual, 70, 41, 71), 1, SlowOnce, false},
		{"far too slow", append(usual, 90), 1, NewlySlow, true},
		{"still far too slow", append(usual, 90, 90), 1, StillSlow, false},
		{"far too slow, then less", append(usual, 90, 70), 1, StillSlow, false},
		{"slow for so long that it is usual", append(usual, 70, 71, 70, 72, 70, 71, 71), 1, AsBefore, false},
		{"everything is slow", append(usual, 70), 1.7, AsBefore, true},
		{"everything is a little slow", append(usual, 48), 1.2, AsBefore, false},
		{"a fast computer does not blame", append(usual, 42), 0.5, AsBefore, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			factors := make([]float64, len(tt.times))
			for i := range factors {
				factors[i] = 1
			}
			factors[len(factors)-1] = tt.factor
			runs := nights(tt.times, factors...)
			last := len(runs) - 1
			r := compare(runs[last], runs[:last])
			if v := r.Verdicts[0]; v.State != tt.want || r.Regression != tt.alarms {
				t.Errorf("got %q and regression %t; %+v, %+v", v.State, r.Regression, v.Slow, r.Pace)
			}
		})
	}
}

// A night on which everything was slow hides nothing of the next one.
func TestSlowAfterASlowNight(t *testing.T) {
	runs := nights([]float64{40, 41, 42, 40, 41, 43, 82, 82}, 1, 1, 1, 1, 1, 1, 2, 1)
	if r := compare(runs[7], runs[:7]); r.Verdicts[0].State != NewlySlow || !r.Regression {
		t.Errorf("got %+v, %+v", r.Verdicts[0], r.Pace)
	}
}

func TestTimesOfAnotherComputerAreNotCompared(t *testing.T) {
	runs := nights([]float64{40, 41, 42, 40, 41, 43, 90})
	runs[6].Where = "4 cores"
	if r := compare(runs[6], runs[:6]); r.Regression {
		t.Errorf("got %+v", r.Verdicts)
	}
}
