package siterule

import "k8slab/lab/symptom"

// Tested is how a phrase did on its own examples.
type Tested struct {
	Rule     string     `json:"rule"`
	Cause    symptom.ID `json:"cause"`
	OK       bool       `json:"ok"`
	Examples int        `json:"examples"`          // lines that it must match
	Not      int        `json:"not"`               // lines that it must not match
	Missed   []string   `json:"missed,omitempty"`  // examples that it does not match
	Matched  []string   `json:"matched,omitempty"` // lines that it must not match, and does
}

// Test tries each phrase on its own examples. One without examples is all right.
func (s *Set) Test() []Tested {
	all := []Tested{}
	for _, p := range s.Phrases() {
		t := Tested{Rule: p.Rule, Cause: p.Cause, Examples: len(p.examples), Not: len(p.not)}
		for _, line := range p.examples {
			if !p.Matches(line) {
				t.Missed = append(t.Missed, line)
			}
		}
		for _, line := range p.not {
			if p.Matches(line) {
				t.Matched = append(t.Matched, line)
			}
		}
		t.OK = len(t.Missed)+len(t.Matched) == 0
		all = append(all, t)
	}
	return all
}
