package diagnose

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"k8slab/lab/diagnose/fact"
	"k8slab/lab/symptom"
)

// largeCluster is one of n machines that all answer, of which each cannot reach ten others, and every second has no kubelet.
func largeCluster(n int) fact.Facts {
	f := fact.Facts{Lab: "large", Time: time.Now()}
	for i := range n {
		m := fact.Machine{Name: fmt.Sprintf("w%d", i), Role: "worker", State: "running", Inside: &fact.Node{}}
		m.Inside.Facts.Joined = true
		m.Inside.Units = map[string]fact.Unit{"kubelet": {Load: "loaded", Active: []string{"active", "inactive"}[i%2]}}
		for k := range 10 {
			m.Inside.Dials = append(m.Inside.Dials, fact.Dial{To: fmt.Sprintf("w%d", (i+k+1)%n), Port: 10250, Proto: "tcp", Result: "timeout"})
		}
		f.Machines = append(f.Machines, m)
	}
	return f
}

// Ten times the machines take about ten times as long.
func BenchmarkLarge(b *testing.B) {
	for _, n := range []int{100, 400, 1000} {
		f := largeCluster(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				Judge(f)
			}
		})
	}
}

// bundleOf is a bundle with these facts, however they were written.
func bundleOf(t *testing.T, facts io.Reader, size int64) io.Reader {
	t.Helper()
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	out := tar.NewWriter(zip)
	err := out.WriteHeader(&tar.Header{Name: factsFile, Size: size, Mode: 0o600})
	_, copyErr := io.Copy(out, facts)
	if err := errors.Join(err, copyErr, out.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return &packed
}

func TestBundleThatWouldTakeAllMemory(t *testing.T) {
	for name, tt := range map[string]struct{ facts, want string }{
		"machines":                {`{"machines":[` + strings.Repeat(`{},`, 1<<20) + `{}]}`, "larger than"},
		"a few too many machines": {`{"machines":[` + strings.Repeat(`{},`, machinesLimit) + `{}]}`, "more than 1000 machines"},
		"dials":                   {`{"machines":[{"inside":{"dials":[` + strings.Repeat(`{},`, 1<<20) + `{}]}}]}`, "larger than"},
		"lists":                   {`{"machines":[{"inside":{"flags":` + strings.Repeat(`[`, 1<<20) + strings.Repeat(`]`, 1<<20) + `}}]}`, "larger than"},
		"text":                    {`{"lab":"` + strings.Repeat(`x`, factsLimit) + `"}`, "larger than"},
	} {
		if _, err := From("-", bundleOf(t, strings.NewReader(tt.facts), int64(len(tt.facts)))); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	text, err := json.Marshal(largeCluster(400))
	if err != nil {
		t.Fatal(err)
	}
	r, err := From("-", bundleOf(t, bytes.NewReader(text), int64(len(text))))
	if err != nil || len(r.Nodes) != 400 || r.Findings[0].Symptom != symptom.FirewallBlocked && r.Findings[0].Symptom != symptom.KubeletNotRunning {
		t.Errorf("400 machines: %v, %d nodes", err, len(r.Nodes))
	}
}
