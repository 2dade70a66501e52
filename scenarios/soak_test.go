package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/symptom"
)

func members(controlPlanes, workers int) (all []Member) {
	for i := range controlPlanes {
		all = append(all, Member{Name: fmt.Sprintf("cp%d", i+1), Role: config.ControlPlane, Address: fmt.Sprintf("10.0.0.%d", 11+i)})
	}
	for i := range workers {
		all = append(all, Member{Name: fmt.Sprintf("w%d", i+1), Role: config.Worker, Address: fmt.Sprintf("10.0.0.%d", 21+i)})
	}
	return all
}

// A reset of the only control plane is refused, so what begins with one is not for it.
func TestOutsideOfAnOnlyControlPlane(t *testing.T) {
	outside := Fault{Name: "outside", Roles: everyRole, Outside: true}
	for node, applies := range map[string]bool{"cp1": false, "w1": true} {
		_, err := Target{Members: members(1, 1), Node: node}.complete(outside)
		if errors.Is(err, errNotApplicable) == applies || applies && err != nil {
			t.Errorf("%s: %v", node, err)
		}
	}
}

// some are faults of every kind that matters for composing.
var some = []Fault{
	{Name: "any", Roles: everyRole, Symptom: symptom.CNINotInitialized},
	{Name: "cp", Roles: controlPlane, Symptom: symptom.EtcdSlow},
	{Name: "others", Roles: workers, May: []Change{Others}, Symptom: symptom.PortInUse},
	{Name: "person", Roles: workers, ByHand: "a person must act", Symptom: symptom.DiskFull},
	{Name: "quorum", Roles: controlPlane, May: []Change{Quorum}, Symptom: symptom.EtcdNoQuorum},
	{Name: "vm", Roles: workers, Applies: func(Target) string { return "for virtual machines" }},
	{Name: "worker", Roles: workers, Symptom: symptom.KubeletNotRunning},
}

func TestChoices(t *testing.T) {
	tests := []struct {
		controlPlanes, workers int
		want                   string
	}{
		{3, 2, "any: cp1 cp2 cp3 w1 w2; cp: cp1 cp2 cp3; others: w1 w2; person: w1 w2; quorum: cp1 cp2 cp3; worker: w1 w2"},
		{1, 1, "any: w1; others: w1; person: w1; worker: w1"},
		{1, 0, ""},
	}
	for _, tt := range tests {
		var got []string
		for _, c := range choices(Target{Members: members(tt.controlPlanes, tt.workers)}, some) {
			var nodes []string
			for _, s := range c.Targets {
				nodes = append(nodes, s.Node)
			}
			got = append(got, c.Fault.Name+": "+strings.Join(nodes, " "))
		}
		if text := strings.Join(got, "; "); text != tt.want {
			t.Errorf("%d + %d: got %q, want %q", tt.controlPlanes, tt.workers, text, tt.want)
		}
	}
}

func TestDraw(t *testing.T) {
	from := choices(Target{Members: members(3, 2)}, some)
	alone, pairs := map[string]int{}, map[string]int{}
	for n := range 2000 {
		r := Draw(7, n, from)
		if again := Draw(7, n, from); again.String() != r.String() {
			t.Fatalf("round %d is %s and %s", n, r, again)
		}
		if len(r) == 1 {
			alone[r.names()]++
			continue
		}
		pairs[r.names()]++
		if len(r) != 2 || r[0].Node == r[1].Node || strings.HasPrefix(r[0].Node, "cp") && strings.HasPrefix(r[1].Node, "cp") {
			t.Errorf("round %d is %s", n, r)
		}
		for _, not := range []string{"others", "person", "quorum"} {
			if strings.Contains(r.names(), not) {
				t.Errorf("round %d is %s", n, r)
			}
		}
	}
	for _, name := range []string{"any", "cp", "others", "person", "quorum", "worker"} {
		if alone[name] < 200 {
			t.Errorf("%s was drawn %d times alone: %v", name, alone[name], alone)
		}
	}
	for _, name := range []string{"any+cp", "any+worker", "cp+worker", "worker+cp", "any+any", "worker+worker"} {
		if pairs[name] < 10 {
			t.Errorf("%s was drawn %d times: %v", name, pairs[name], pairs)
		}
	}
	if Draw(7, 1, from).String() == Draw(8, 1, from).String() && Draw(7, 2, from).String() == Draw(8, 2, from).String() && Draw(7, 3, from).String() == Draw(8, 3, from).String() {
		t.Error("the seed makes no difference")
	}
}

func TestSoakEnds(t *testing.T) {
	from := choices(Target{Members: members(3, 2)}, some)
	tests := []struct {
		name    string
		classes []Class
		rounds  int
		want    string // recovered, unrecovered, setup-failed
	}{
		{"all recovered", []Class{Passed}, 5, "5 0 0"},
		{"one is not", []Class{Passed, Passed, Failed, Passed}, 5, "2 1 0"},
		{"one could not be made", []Class{Passed, SetupFailed, Passed, Passed}, 4, "3 0 1"},
		{"none can be made", []Class{Passed, SetupFailed, SetupFailed, Passed}, 5, "1 0 2"},
		{"does not apply", []Class{Passed, NotApplicable, Passed}, 3, "2 0 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := 0
			s := Soak(t.Context(), 1, 3, tt.rounds, from, func(Round) Result {
				n++
				return Result{Class: tt.classes[min(n, len(tt.classes))-1]}
			})
			if got := fmt.Sprint(s.Recovered, s.Unrecovered, s.SetupFailed); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if want := Draw(1, 3, from).String(); s.Rounds[0].String() != want {
				t.Errorf("began with %s, want %s", s.Rounds[0], want)
			}
		})
	}
	cancelled, cancel := context.WithCancel(t.Context())
	s := Soak(cancelled, 1, 1, 5, from, func(Round) Result { cancel(); return Result{Class: Failed} })
	if len(s.Results) != 0 {
		t.Errorf("Ctrl-C counts: %+v", s.Results)
	}
}

func TestShorten(t *testing.T) {
	round := func(names string) (r Round) {
		for name := range strings.SplitSeq(names, "+") {
			r = append(r, Placement{Fault: Fault{Name: name}})
		}
		return r
	}
	tests := []struct {
		name, rounds string
		fails        string // a round fails when all of these were made, in any order, the last of them in it
		most         int
		want         string
		reproduced   bool
	}{
		{"the last alone", "a b c d", "d", 20, "d", true},
		{"one of a pair", "a b c+d", "c", 20, "c", true},
		{"both of a pair", "a b c+d", "c d", 20, "c+d", true},
		{"an earlier one is needed", "a b c d e f", "b f", 40, "b f", true},
		{"an earlier one fails too", "a b c b", "b", 20, "b", true},
		{"several are needed", "a b c d e f g", "a d g", 80, "a d g", true},
		{"only once", "a b c", "never", 20, "a b c", false},
		{"no budget", "a b c", "c", 0, "a b c", false},
		{"a small budget", "a b c d e f", "b f", 8, "a b c d e f", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Soaked{}
			for name := range strings.FieldsSeq(tt.rounds) {
				s.Rounds = append(s.Rounds, round(name))
			}
			var made []string
			err := s.Shorten(t.Context(), tt.most, func() error { made = nil; return nil }, func(r Round) Result {
				made = append(made, strings.Split(r.names(), "+")...)
				for need := range strings.FieldsSeq(tt.fails) {
					if !slices.Contains(made, need) {
						return Result{Class: Passed}
					}
				}
				return Result{Class: Failed}
			})
			var got []string
			for _, r := range s.Shortest {
				got = append(got, r.names())
			}
			if text := strings.Join(got, " "); err != nil || text != tt.want || s.Reproduced != tt.reproduced || len(s.Replayed) > tt.most {
				t.Errorf("got %q, reproduced %t after %d, %v; want %q, %t", text, s.Reproduced, len(s.Replayed), err, tt.want, tt.reproduced)
			}
		})
	}
}

func TestShortenStopsWithoutALab(t *testing.T) {
	s := Soaked{Rounds: []Round{{{Fault: some[0]}}, {{Fault: some[1]}}}}
	calls := 0
	err := s.Shorten(t.Context(), 20, func() error { calls++; return context.DeadlineExceeded }, func(Round) Result { return Result{Class: Failed} })
	if err == nil || calls != 1 || len(s.Replayed) != 0 {
		t.Errorf("%v after %d calls, %d replayed", err, calls, len(s.Replayed))
	}
}

// The figures of exact binomial tables.
func TestAtLeast(t *testing.T) {
	for _, tt := range []struct {
		successes, trials int
		want              float64
	}{{149, 149, 0.98}, {20, 20, 0.861}, {100, 100, 0.9705}, {235, 236, 0.98}, {311, 313, 0.98}, {1, 2, 0.0253}, {0, 5, 0}, {0, 0, 0}} {
		if got := AtLeast(tt.successes, tt.trials); math.Abs(got-tt.want) > 0.0006 {
			t.Errorf("%d of %d: %.4f, want %.4f", tt.successes, tt.trials, got, tt.want)
		}
	}
}

func TestRoundsAreWrittenAndRead(t *testing.T) {
	for _, text := range []string{"missing-cni", "missing-cni@w1", "missing-cni@w1+stale-learner@cp3", "missing-cni+stale-learner"} {
		r, err := ParseRound(text)
		if err != nil || r.String() != text {
			t.Errorf("%s: got %s, %v", text, r, err)
		}
		if out, err := json.Marshal([]Round{r}); err != nil || string(out) != `["`+text+`"]` {
			t.Errorf("%s: marshalled as %s, %v", text, out, err)
		}
	}
	for _, text := range []string{"", "no-such-fault", "missing-cni+", "missing-cni@w1+no-such-fault"} {
		if r, err := ParseRound(text); err == nil {
			t.Errorf("%q: got %s", text, r)
		}
	}
}
