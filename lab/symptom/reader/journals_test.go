package reader

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The files of testdata/journals were read in healthy labs: the journals of the kubelet, of containerd and of the whole boot of each
// node, etcd's log, and the cluster's events. Some labs were fresh (one of Kubernetes 1.35), others had recovered from faults or from
// injections that were killed. The kernel's lines are left out.
func TestJournalsOfHealthyNodes(t *testing.T) {
	files, err := filepath.Glob("testdata/journals/*.gz")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d journals %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			text, err := gzip.NewReader(f)
			if err != nil {
				t.Fatal(err)
			}
			found, err := Judge(text, "journal", func(s string) string { return s })
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range found {
				var shown []string
				for _, e := range f.Evidence {
					shown = append(shown, e.Text)
				}
				t.Errorf("%s %s:\n%s", f.Level, f.Symptom, strings.Join(shown, "\n"))
			}
		})
	}
}
