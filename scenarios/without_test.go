package scenarios

import (
	"path/filepath"
	"strings"
	"testing"

	"k8slab/lab/symptom"
)

// Every symptom has a scenario or a written reason, and not both.
func TestEverySymptomHasAScenarioOrAReason(t *testing.T) {
	made := map[symptom.ID]string{}
	for _, f := range All() {
		made[f.Symptom] = f.Name
		if f.Join != nil {
			made[f.Join.Cause] = f.Name
		}
	}
	reasons := map[symptom.ID]string{}
	for _, w := range WithoutScenario() {
		if _, known := symptom.Lookup(w.Symptom); !known || reasons[w.Symptom] != "" || len(strings.Fields(w.Reason)) < 5 {
			t.Errorf("%q: %q", w.Symptom, w.Reason)
		}
		reasons[w.Symptom] = w.Reason
	}
	for _, s := range symptom.All() {
		switch fault, reason := made[s.ID], reasons[s.ID]; {
		case fault != "" && reason != "":
			t.Errorf("%s is made by %s: take its reason out of without.go", s.ID, fault)
		case fault == "" && reason == "":
			t.Errorf("%s has no scenario, and no reason in without.go", s.ID)
		}
	}
}

// Reasons name scenarios, and those must exist.
func TestReasonsNameScenarios(t *testing.T) {
	for _, w := range without {
		for _, word := range strings.FieldsFunc(w.Reason, func(r rune) bool { return strings.ContainsRune(" ,;:", r) }) {
			if _, known := Lookup(word); strings.Count(word, "-") > 0 && strings.ToLower(word) == word && !known {
				t.Errorf("%s: no fault %q", w.Symptom, word)
			}
		}
	}
}

// Every symptom that a text can show is known by one that was captured.
func TestEverySymptomHasACapturedText(t *testing.T) {
	for _, s := range symptom.All() {
		if s.Measured {
			continue
		}
		texts, err := filepath.Glob(filepath.Join("..", "lab", "symptom", "reader", "testdata", "corpus", string(s.ID)+"--*.txt"))
		if err != nil || len(texts) == 0 {
			t.Errorf("%s: no text of it in the corpus, %v", s.ID, err)
		}
	}
}
