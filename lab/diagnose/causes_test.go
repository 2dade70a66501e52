package diagnose

import (
	"fmt"
	"strings"
	"testing"

	"k8slab/lab/symptom"
)

func TestCausesOf(t *testing.T) {
	finding := func(id symptom.ID, node string, because symptom.ID) symptom.Finding {
		return symptom.Finding{Symptom: id, Level: symptom.Fail, Node: node, BecauseOf: because}
	}
	for _, c := range []struct {
		name     string
		findings []symptom.Finding
		want     string
	}{
		{"nothing", nil, ""},
		{"roots keep their order", []symptom.Finding{finding("b", "n1", ""), finding("a", "n1", "")}, "b on n1; a on n1"},
		{"the same on two nodes", []symptom.Finding{finding("a", "n1", ""), finding("a", "n2", "")}, "a on n1, n2"},
		{"what names no node stays apart", []symptom.Finding{finding("a", "n1", ""), finding("a", "", "")}, "a on n1; a"},
		{"a consequence goes below its cause", []symptom.Finding{finding("a", "n1", ""), finding("b", "n2", ""), finding("c", "n1", "a")},
			"a on n1 (c on n1); b on n2"},
		{"below that of its own node", []symptom.Finding{finding("a", "n1", ""), {Symptom: "a", Node: "n2", Detail: "other"}, finding("c", "n2", "a")},
			"a on n1; a on n2 (c on n2)"},
		{"a consequence's consequence too", []symptom.Finding{finding("a", "n1", ""), finding("b", "n1", "a"), finding("c", "n1", "b")},
			"a on n1 (b on n1, c on n1)"},
		{"what it may be mistaken for is none", []symptom.Finding{finding("a", "n1", ""), {Symptom: "b", Node: "n1", BecauseOf: "a", Meaning: "Perhaps instead: c"}},
			"a on n1 (or b on n1)"},
		{"because of what was not found", []symptom.Finding{finding("b", "n1", "a")}, "b on n1"},
		{"because of itself", []symptom.Finding{finding("a", "n1", "a")}, "a on n1"},
		{"a circle", []symptom.Finding{finding("a", "n1", "b"), finding("b", "n1", "a")}, "a on n1; b on n1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var roots []string
			for _, root := range causesOf(c.findings) {
				said := place(root)
				var below []string
				for _, d := range root.Consequences {
					below = append(below, place(d))
				}
				for _, d := range root.Instead {
					below = append(below, "or "+place(d))
				}
				if below != nil {
					said += " (" + strings.Join(below, ", ") + ")"
				}
				roots = append(roots, said)
			}
			if got := strings.Join(roots, "; "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestVerdict(t *testing.T) {
	root := symptom.Finding{Symptom: "a", Level: symptom.Fail}
	warning := symptom.Finding{Symptom: "b", Level: symptom.Warn}
	consequence := symptom.Finding{Symptom: "c", Level: symptom.Fail, BecauseOf: "a"}
	nodes := []NodeRow{{Name: "n1"}, {Name: "n2", SSH: "refused"}}
	for _, c := range []struct {
		report Report
		want   string
	}{
		{Report{Healthy: true, Source: live, Lab: "l", Nodes: nodes[:1], Took: 1}, "good: Nothing is wrong. Checked 1 node of lab \"l\" in 1.0 s."},
		{Report{Healthy: true, Source: live, Nodes: nodes, Unread: []string{"n2"}, Took: 1}, "warn: No problem found, but 1 item could not be read. Checked 1 of 2 nodes in 1.0 s."},
		{Report{Healthy: false, Source: live}, "bad: Not healthy, but no cause was found. Checked no node in 0 ms."},
		{Report{Healthy: true, Source: "-", Took: 0.01}, "good: Nothing is wrong. Standard input analysed in 10 ms."},
		{Report{Findings: []symptom.Finding{root}, Source: "x.tar.gz", Nodes: nodes, Took: 0.2}, "bad: 1 problem found. x.tar.gz (1 of 2 nodes) analysed in 0.2 s."},
		{Report{Findings: []symptom.Finding{root, consequence}, Source: live}, "bad: 1 problem and 1 consequence found. Checked no node in 0 ms."},
		{Report{Findings: []symptom.Finding{root, warning}, Source: live}, "bad: 1 problem and 1 warning found. Checked no node in 0 ms."},
		{Report{Findings: []symptom.Finding{warning}, Source: live}, "warn: No failures, 1 warning. Checked no node in 0 ms."},
	} {
		said, tone := verdict(c.report, causesOf(c.report.Findings))
		if got := tone + ": " + said + " " + scope(c.report); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestNext(t *testing.T) {
	byHand := symptom.Finding{Symptom: "a", Level: symptom.Fail, Node: "n1"}
	mendable := symptom.Finding{Symptom: "b", Level: symptom.Fail, Node: "n1", Repairable: true}
	below := symptom.Finding{Symptom: "c", Level: symptom.Fail, Node: "n1", Repairable: true, BecauseOf: "a"}
	for _, c := range []struct {
		report Report
		want   string
	}{
		{Report{Source: live, Healthy: true}, "labctl diagnose -o html > diagnose.html"},
		{Report{Source: live, Findings: []symptom.Finding{byHand}}, "labctl diagnose --bundle diagnose.tar.gz"},
		{Report{Source: live, Findings: []symptom.Finding{byHand, mendable}}, "labctl repair"},
		{Report{Source: live, Findings: []symptom.Finding{byHand, below}}, "labctl repair"},
		{Report{Source: "my logs/kubelet.log", Findings: []symptom.Finding{mendable}}, "labctl diagnose --from 'my logs/kubelet.log' -o html > diagnose.html"},
		{Report{Source: "-", Findings: []symptom.Finding{mendable}}, "labctl diagnose --from FILE -o html > diagnose.html"},
		{Report{Source: "-rf`x`", Findings: []symptom.Finding{mendable}}, "labctl diagnose --from FILE -o html > diagnose.html"},
	} {
		parts := hintParts(next(c.report, causesOf(c.report.Findings)))
		if !parts[0].Command || parts[0].Text != c.want {
			t.Errorf("got %q, want %q", parts[0].Text, c.want)
		}
	}
}

func TestSeconds(t *testing.T) {
	for s, want := range map[float64]string{0: "0ms", 0.0021: "2ms", 0.9999: "1.0s", 9.96: "10s", 59.4: "59s", 59.7: "1m00s", 121.8: "2m02s", 3700: "1h01m", -2: "-2.0s"} {
		if got := seconds(s); got != want {
			t.Errorf("%v: got %s, want %s", s, got, want)
		}
	}
}

func TestLearnerProgress(t *testing.T) {
	for _, c := range []struct {
		member MemberRow
		want   string
	}{
		{MemberRow{Learner: true}, "has not started"},
		{MemberRow{Learner: true, Started: true, Error: "refused"}, "does not answer: refused"},
		{MemberRow{Learner: true, Started: true, RaftIndex: 940, Behind: 60}, "has 940 of 1000 raft entries (94%), enough for etcd to promote it"},
		{MemberRow{Learner: true, Started: true, RaftIndex: 400, Behind: 600}, "has 400 of 1000 raft entries (40%) and gains none; etcd promotes it from 90%"},
		{MemberRow{Learner: true, Started: true, RaftIndex: 400, Behind: 600, Rate: 100}, "has 400 of 1000 raft entries (40%), gains 100/s, can be promoted (90%) in about 5.0s"},
	} {
		if got := c.member.progress(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestClosedPorts(t *testing.T) {
	rows := []PortRow{
		{From: "a", To: "c", Port: 6443, Proto: "tcp", Result: "timeout"}, {From: "a", To: "c", Port: 2380, Proto: "tcp", Result: "timeout"},
		{From: "b", To: "c", Port: 2380, Proto: "tcp", Result: "timeout"}, {From: "b", To: "c", Port: 6443, Proto: "tcp", Result: "timeout"},
		{From: "a", To: "b", Port: 6443, Proto: "tcp", Result: "open"}, {From: "a", To: "b", Port: 8472, Proto: "udp", Result: "unknown"},
		{From: "c", To: "a", Port: 8472, Proto: "udp", Result: "refused"},
	}
	want := "[c: 2380, 6443 timeout from a, b a: 8472/udp refused from c]"
	if got := fmt.Sprint(closedPorts(rows)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
