//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8slab/config"
	"k8slab/lab/join"
	"k8slab/lab/symptom"
	"k8slab/scenarios"
)

// The campaign makes JOINS joins under faults drawn by E2E_SEED, one or two at a time, and counts. Its result file is continued by the next
// run of the same seed.
var _ = Describe("joins under mixed faults", Label("campaign", "Slow", "Disruptive"), Serial, func() {
	It("all succeed, or stop with the remedy where no repair is safe", func(ctx SpecContext) {
		number, err := strconv.Atoi(valueOr("JOINS", "20"))
		Expect(err).NotTo(HaveOccurred(), "JOINS")
		c := openCampaign(suite.seed)
		l := useLab("e2e-campaign", 50, 3, 2)
		l.must(ctx, "up")
		for n := len(c.done); n < number; n++ {
			c.add(l.trial(ctx, suite.seed, n))
		}
		l.becomesHealthy(ctx)
		AddReportEntry("joins", c.table(), ReportEntryVisibilityAlways)
		Expect(c.failed()).To(BeEmpty())
	}, SpecTimeout(3*time.Hour))
})

// trial is one join of the campaign and its line in the result file.
type trial struct {
	N        int      `json:"n"`
	Seed     uint64   `json:"seed,string"`
	Node     string   `json:"node"`
	Faults   []string `json:"faults"`   // none: a healthy join
	Causes   []string `json:"causes"`   // that the join named, in order
	ToCause  float64  `json:"to_cause"` // seconds from the command to the first of them; 0: none
	Seconds  float64  `json:"seconds"`  // of the command
	Expected bool     `json:"expected"` // joined and proven, or refused where it had to be
	Refusal  bool     `json:"refusal"`  // it had to be refused
	Problem  string   `json:"problem,omitempty"`
}

// drawn is what the nth trial is: the same for the same seed, whatever ran before.
func drawn(seed uint64, n int) (node string, faults []scenarios.Fault) {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	node, role := "w"+strconv.Itoa(1+r.IntN(2)), config.Worker
	if r.IntN(5) < 2 {
		node, role = "cp"+strconv.Itoa(2+r.IntN(2)), config.ControlPlane
	}
	possible := slices.DeleteFunc(scenarios.All(), func(f scenarios.Fault) bool { return f.Join == nil || !f.For(role) })
	k := r.IntN(len(possible) + 1)
	if k == len(possible) {
		return node, nil // a healthy join among them
	}
	faults = []scenarios.Fault{possible[k]}
	if second := possible[r.IntN(len(possible))]; r.IntN(4) == 0 && !faults[0].Stops() && !second.Stops() && !second.Join.Member && second.Name != faults[0].Name {
		faults = append(faults, second)
	}
	return node, faults
}

// trial makes the nth join under its faults.
func (l *lab) trial(ctx context.Context, seed uint64, n int) trial {
	GinkgoHelper()
	node, faults := drawn(seed, n)
	t := trial{N: n, Seed: seed, Node: node, Faults: []string{}, Causes: []string{}}
	member := slices.ContainsFunc(faults, func(f scenarios.Fault) bool { return f.Join.Member })
	if !member {
		l.must(ctx, "reset", node)
	}
	target := l.target(ctx, node)
	for _, f := range faults {
		t.Faults = append(t.Faults, f.Name)
		t.Refusal = t.Refusal || f.Stops()
		Expect(f.Inject(ctx, target)).To(Succeed(), "inject %s on %s", f.Name, node)
	}
	l.timedJoin(ctx, &t)
	for _, f := range faults {
		if f.Restore != nil {
			Expect(f.Restore(ctx, target)).To(Succeed(), "restore %s on %s", f.Name, node)
		}
	}
	if t.Refusal {
		l.must(ctx, "join", node)
	}
	if !t.Expected {
		l.saveEvidence(ctx)
		l.must(ctx, "up") // the campaign goes on
	}
	return t
}

// timedJoin joins the node and judges what came of it.
func (l *lab) timedJoin(ctx context.Context, t *trial) {
	GinkgoHelper()
	begun := time.Now()
	r := l.start(ctx, func(_ *running, line string) {
		cause, found := strings.CutPrefix(parseEvent(line).Detail, join.CauseMark)
		if !found {
			return
		}
		if len(t.Causes) == 0 {
			t.ToCause = time.Since(begun).Seconds()
		}
		id, _, _ := strings.Cut(cause, ":")
		t.Causes = append(t.Causes, id)
	}, "join", t.Node, "-o", "json").wait()
	t.Seconds = r.took.Seconds()
	t.Expected = (r.code == 0) != t.Refusal
	if !t.Expected {
		t.Problem = tail(r.stderr)
	}
	for _, f := range t.Faults {
		if id := causeOf(f); id != "" && !slices.Contains(t.Causes, string(id)) && len(t.Faults) == 1 {
			t.Expected = false
			t.Problem += fmt.Sprintf("%s: the join named %q", id, t.Causes)
		}
	}
}

func causeOf(name string) symptom.ID {
	f, _ := scenarios.Lookup(name)
	return f.Join.Cause
}

// target is the node with the lab's first control plane beside it.
func (l *lab) target(ctx context.Context, node string) scenarios.Target {
	GinkgoHelper()
	s, _ := l.status(ctx)
	for _, n := range s.Nodes {
		if n.Name == node {
			return scenarios.Target{Driver: driver{l}, Node: node, Address: n.IP, ControlPlane: "cp1"}
		}
	}
	Fail("status has no " + node)
	return scenarios.Target{}
}

// driver is labctl's.
type driver struct{ lab *lab }

func (h driver) Run(ctx context.Context, node string, argv ...string) (string, error) {
	return h.Labctl(ctx, append([]string{"ssh", node, "--"}, argv...)...)
}

func (h driver) Labctl(ctx context.Context, args ...string) (string, error) {
	r := h.lab.run(ctx, args...)
	if r.code != 0 {
		return r.stdout, fmt.Errorf("labctl %s: %s", strings.Join(args, " "), r)
	}
	return r.stdout, nil
}

// campaign is the result file.
type campaign struct {
	file *os.File
	done []trial
}

func openCampaign(seed uint64) *campaign {
	GinkgoHelper()
	file, err := os.OpenFile(filepath.Join(suite.results, fmt.Sprintf("joins-%d.jsonl", seed)), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(file.Close)
	c := &campaign{file: file}
	for d := json.NewDecoder(bufio.NewReader(file)); ; {
		var t trial
		err := d.Decode(&t)
		if errors.Is(err, io.EOF) {
			return c
		}
		Expect(err).NotTo(HaveOccurred(), "%s", file.Name())
		c.done = append(c.done, t)
	}
}

func (c *campaign) add(t trial) {
	GinkgoHelper()
	c.done = append(c.done, t)
	line, err := json.Marshal(t)
	Expect(err).NotTo(HaveOccurred())
	_, err = c.file.Write(append(line, '\n'))
	Expect(err).NotTo(HaveOccurred())
	GinkgoLogr.Info("join", "result", string(line))
}

func (c *campaign) failed() (problems []string) {
	for _, t := range c.done {
		if !t.Expected {
			problems = append(problems, fmt.Sprintf("%d: %s of %s: %s", t.N, t.Faults, t.Node, t.Problem))
		}
	}
	return problems
}

// table counts by fault: joins, of them as expected, and the median and the longest time to the cause and to the end. Pairs count as pairs.
func (c *campaign) table() string {
	rows := map[string][]trial{}
	for _, t := range c.done {
		role, _, _ := strings.Cut(t.Node, string(t.Node[len(t.Node)-1]))
		name := strings.Join(t.Faults, " + ")
		switch len(t.Faults) {
		case 0:
			name = "healthy"
		case 2:
			name = "two faults"
		}
		rows[name+" | "+role] = append(rows[name+" | "+role], t)
	}
	names := make([]string, 0, len(rows))
	for name := range rows {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString("| fault | role | joins | as expected | cause after, median (longest) | ended after, median (longest) |\n|---|---|---|---|---|---|\n")
	for _, name := range names {
		expected := 0
		var causes, ends []float64
		for _, t := range rows[name] {
			if t.Expected {
				expected++
			}
			if t.ToCause > 0 {
				causes = append(causes, t.ToCause)
			}
			ends = append(ends, t.Seconds)
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %s | %s |\n", name, len(ends), expected, spread(causes), spread(ends))
	}
	return b.String()
}

func spread(seconds []float64) string {
	if len(seconds) == 0 {
		return "–"
	}
	slices.Sort(seconds)
	return fmt.Sprintf("%.1f s (%.1f s)", seconds[len(seconds)/2], seconds[len(seconds)-1])
}
