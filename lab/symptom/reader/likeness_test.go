package reader

import (
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"

	"k8slab/lab/symptom"
)

var update = flag.Bool("update", false, "write resemblance.txt anew")

// learn counts the terms of the texts that the judge may be made with, and writes those that more than one text has.
func learn(t *testing.T) string {
	c := newCounts()
	for _, ex := range corpus(t) {
		if !ex.held {
			s := newScan()
			if err := s.read(strings.NewReader(ex.text)); err != nil {
				t.Fatal(err)
			}
			c.add(ex.want, termsOf(s.complaints.sample()...))
		}
	}
	var lines, causes []string
	place := map[symptom.ID]int{}
	for _, s := range symptom.All() {
		if n := c.texts[s.ID]; n > 0 {
			place[s.ID] = len(causes)
			causes = append(causes, fmt.Sprintf("%s*%.0f", s.ID, n))
		}
	}
	for term, by := range c.terms {
		if worthKnowing(by) {
			lines = append(lines, term+columns(by, place))
		}
	}
	sort.Strings(lines)
	return strings.Join(causes, "\t") + "\n" + strings.Join(lines, "\n") + "\n"
}

// worthKnowing leaves out what only one text has, and what texts of almost any cause have.
func worthKnowing(by map[symptom.ID]float64) bool {
	sights := 0.0
	for _, n := range by {
		sights += n
	}
	return sights > 1 && len(by) <= 30
}

// columns are counts, in the order of their causes.
func columns(by map[symptom.ID]float64, place map[symptom.ID]int) string {
	var all []string
	for _, s := range symptom.All() {
		switch n := by[s.ID]; {
		case n == 1:
			all = append(all, fmt.Sprintf("\t%d", place[s.ID]))
		case n > 1:
			all = append(all, fmt.Sprintf("\t%d*%.0f", place[s.ID], n))
		}
	}
	return strings.Join(all, "")
}

func TestResemblance(t *testing.T) {
	want := learn(t)
	if *update {
		if err := os.WriteFile("resemblance.txt", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if learned != want {
		t.Error("resemblance.txt is not what the corpus teaches; go test ./lab/symptom/reader -run TestResemblance -update")
	}
}
