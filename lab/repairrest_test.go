package lab

import (
	"reflect"
	"testing"

	"k8slab/lab/symptom"
)

func TestUnexplained(t *testing.T) {
	findings := []symptom.Finding{
		{Symptom: symptom.FirewallBlocked, Level: symptom.Fail, Node: "cp3", Hint: "open it", Evidence: []symptom.Evidence{{Text: "a rule"}}},
		{Symptom: symptom.EtcdUnreachable, Level: symptom.Fail, Node: "cp3", BecauseOf: symptom.FirewallBlocked},
		{Symptom: symptom.ClockSkew, Level: symptom.Warn, Node: "cp2"},
		{Symptom: symptom.NodeUnreachable, Level: symptom.Fail, Node: "w1"},
		{Symptom: symptom.EtcdNoQuorum, Level: symptom.Fail, Meaning: "too few", Hint: "restore"},
	}
	told := []Repaired{{Node: "w1", Symptom: "node-unreachable", Left: "labctl up"}}
	want := []Repaired{
		{Node: "cp3", Symptom: "firewall-blocked", Evidence: "a rule", Left: "open it"},
		{Symptom: "etcd-no-quorum", Evidence: "too few", Left: "restore"},
	}
	if got := unexplained(findings, told); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
