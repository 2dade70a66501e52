package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"k8slab/lab/event"
	"k8slab/lab/repair"
)

func sampleRepairs() []repair.Repaired {
	return []repair.Repaired{
		{Node: "w1", Symptom: "cni-stale-config", Evidence: "00-old.conflist comes before the network add-on's and wins: pods of several nodes would get the same addresses",
			Would: "mv /etc/cni/net.d/00-old.conflist /etc/cni/net.d/00-old.conflist.k8slab-saved"},
		{Node: "w1", Symptom: "cni-stale-config", Evidence: "pod k8slab/probe-v9wtj has the address 10.99.0.2, which is not in its node's network",
			Would: "delete its sandbox; kubelet recreates it"},
		{Symptom: "etcd-no-quorum", Evidence: "2 of 3 members are lost", Left: "labctl etcd snapshot restore"},
		{Node: "w2", Symptom: "kubelet-not-running", Evidence: "kubelet.service is inactive", Did: "started kubelet"},
	}
}

// TestRepairsAreWhole wants every word of every repair, in order, at every width.
func TestRepairsAreWhole(t *testing.T) {
	for _, width := range []int{0, 40, 60, 120} {
		text := repairsText(sampleRepairs(), width)
		read := strings.Join(strings.Fields(text), " ")
		for _, f := range sampleRepairs() {
			for _, want := range []string{f.Symptom, f.Evidence, f.Would, f.Did, f.Left} {
				if !strings.Contains(strings.ReplaceAll(read, " ", ""), strings.ReplaceAll(want, " ", "")) {
					t.Errorf("%d columns: %q is not there:\n%s", width, want, text)
				}
			}
		}
		if strings.Count(read, "cni-stale-config on w1: would be repaired") != 2 || !strings.Contains(read, "etcd-no-quorum: not repaired (needs a person)") ||
			!strings.Contains(read, "kubelet-not-running on w2: repaired") {
			t.Errorf("%d columns:\n%s", width, text)
		}
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if width >= 60 && event.Columns(line) > width {
				t.Errorf("%d columns: %q", width, line)
			}
		}
	}
}

func TestRepairsAsJSON(t *testing.T) {
	for want, found := range map[int][]repair.Repaired{0: nil, 4: sampleRepairs()} {
		var out bytes.Buffer
		if err := (&app{stdout: &out, output: "json"}).printRepairs(found, nil); err != nil {
			t.Fatal(err)
		}
		var list []repair.Repaired
		if err := json.Unmarshal(out.Bytes(), &list); err != nil || len(list) != want || strings.TrimSpace(out.String()) == "null" {
			t.Errorf("%v: %s", err, out.String())
		}
	}
}

func TestLeftErrorNamesEachOnce(t *testing.T) {
	err := leftError(sampleRepairs())
	if err == nil || err.Error() != "not repaired (needs a person): etcd-no-quorum" {
		t.Error(err)
	}
	if err := leftError(sampleRepairs()[:2]); err != nil {
		t.Error(err)
	}
}
