package diagnose

import (
	"fmt"
	"strings"
	"testing"

	"k8slab/lab/event"
	"k8slab/lab/golden"
	"k8slab/lab/symptom"
)

var reports = []struct {
	name string
	make func() Report
}{
	{"healthy", healthyReport}, {"broken", brokenReport}, {"learner", learnerReport}, {"unreachable", unreachableReport},
}

func textOf(t *testing.T, r Report, width int, colour bool) string {
	t.Helper()
	var b strings.Builder
	if err := WriteText(&b, r, width, colour); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestText(t *testing.T) {
	for _, c := range reports {
		for _, width := range []int{50, 80, 160} {
			t.Run(fmt.Sprintf("%s/%d", c.name, width), func(t *testing.T) {
				got := textOf(t, c.make(), width, false)
				golden.Check(t, fmt.Sprintf("view-%s-%d.txt", c.name, width), got)
				for _, line := range strings.Split(got, "\n") {
					if event.Columns(line) > width {
						t.Errorf("%d columns: %s", event.Columns(line), line)
					}
				}
			})
		}
	}
}

func TestTextInColour(t *testing.T) {
	got := textOf(t, brokenReport(), 80, true)
	golden.Check(t, "view-broken-colour.txt", strings.ReplaceAll(got, "\x1b", "^["))
	plain := strings.Fields(strings.ReplaceAll(textOf(t, brokenReport(), 80, false), "`", ""))
	if got := strings.Fields(ourStyles.ReplaceAllString(got, "")); strings.Join(got, " ") != strings.Join(plain, " ") {
		t.Errorf("the words differ from those without colour:\n%s", strings.Join(got, " "))
	}
}

// TestTextOfAFile is what a log from a cluster that the lab never saw gives.
func TestTextOfAFile(t *testing.T) {
	r := brokenReport()
	r = Report{Source: "logs/kubeadm.log", Time: noon, Took: 0.031, Findings: r.Findings[:1]}
	r.Findings[0].Node = ""
	r.Unread = []string{"the log ends before kubeadm's own error; read next, on the new node: journalctl -u kubelet -n 100 --no-pager"}
	golden.Check(t, "view-file-80.txt", textOf(t, r, 80, false))
}

// TestLongListsEnd keeps a cluster of many nodes readable.
func TestLongListsEnd(t *testing.T) {
	r := Report{Lab: "big", Source: live, Time: noon}
	for i := range 50 {
		name := fmt.Sprintf("w%d", i+1)
		r.Nodes = append(r.Nodes, NodeRow{Name: name, SSH: "no route to host"})
		r.Findings = append(r.Findings, found(symptom.NodeUnreachable, name, "", symptom.Evidence{Source: "ssh", Text: "no route to host"}))
		r.Unread = append(r.Unread, name+": everything inside the node")
	}
	got := textOf(t, r, 80, false)
	if lines := strings.Count(got, "\n"); lines > 30 || !strings.Contains(got, "w6 and 44 more") {
		t.Errorf("%d lines:\n%s", lines, got)
	}
}
