package reader

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"k8slab/lab/event"
	"k8slab/lab/symptom"
)

func FuzzJudge(f *testing.F) {
	for i, ex := range corpus(f) {
		if i%10 == 0 {
			f.Add([]byte(ex.text))
		}
	}
	for _, s := range []string{"", "\n", "\x1b[", "\x1b[31", "\\n\\n\\", ">", "> > ", "[warning", "error:", "I0102 ",
		strings.Repeat("a", pieceLimit+1), "\xff\xfe", "99:", "Jan"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		found, err := Judge(bytes.NewReader(data), "fuzz", event.Redact)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[symptom.ID]bool{}
		for _, x := range found {
			if _, ok := symptom.Lookup(x.Symptom); !ok || seen[x.Symptom] || x.Symptom == symptom.Healthy {
				t.Errorf("finding %q is unknown or double", x.Symptom)
			}
			if x.BecauseOf != "" && !seen[x.BecauseOf] {
				t.Errorf("%s comes before its cause %s", x.Symptom, x.BecauseOf)
			}
			seen[x.Symptom] = true
			if len(x.Evidence) == 0 && x.Level == symptom.Fail || len(x.Evidence) > 3 {
				t.Errorf("%s has %d pieces of evidence", x.Symptom, len(x.Evidence))
			}
			for _, e := range x.Evidence {
				if len(e.Text) > excerptLimit || strings.ContainsFunc(e.Text, unicode.IsControl) || !utf8.ValidString(e.Text) ||
					e.Line < 1 {
					t.Errorf("%s: bad evidence %+q", x.Symptom, e.Text)
				}
			}
		}
		for line := range strings.Lines(string(data)) {
			if id, ok := Certain(line); ok != (id != "") {
				t.Errorf("Certain(%q) = %q, %v", line, id, ok)
			}
		}
	})
}
