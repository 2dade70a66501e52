package reader

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The files of testdata/journals are of labs that were healthy when they were read: kubelet's, containerd's and the whole boot's journal of each
// node, etcd's log, and the cluster's events; fresh ones (one of Kubernetes 1.35), and ones that
// had got over faults or over injections that were killed. They are shortened by the kernel's lines.
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
