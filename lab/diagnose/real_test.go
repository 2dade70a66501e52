package diagnose

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8slab/lab/diagnose/fact"
)

// reportOf judges facts that were collected in a real lab, without their texts.
func reportOf(t *testing.T, name string) Report {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "real", name+".json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var facts fact.Facts
	if err := json.NewDecoder(text).Decode(&facts); err != nil {
		t.Fatal(err)
	}
	r, err := NewReport(facts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// toned finds the cells of the page's tables that are not as they should be.
var toned = regexp.MustCompile(`<td[^>]*class="(?:bad|warn)\b[^>]*>`)

// What is healthy is shown as healthy, and of a broken lab what is broken alone.
func TestPageOfRealLabs(t *testing.T) {
	healthy := reportOf(t, "healthy")
	if len(healthy.Findings) > 0 {
		t.Errorf("found %+v", healthy.Findings)
	}
	if cells := toned.FindAllString(pageOf(t, healthy), -1); len(cells) > 0 {
		t.Errorf("a healthy lab's page has %q", cells)
	}
	broken := reportOf(t, "dead-containerd")
	for _, n := range nodeViews(broken) {
		for _, c := range n.Cells {
			if bad := c.Tone != "" && c.Tone != "good"; bad != (n.Name == "w1" && c.Label == "Runtime") {
				t.Errorf("%s: %s is %q (%s)", n.Name, c.Label, c.Tone, strings.TrimSpace(c.Text))
			}
		}
	}
}
