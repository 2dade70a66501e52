package repair

import (
	"slices"
	"testing"

	"k8slab/lab/symptom"
)

func onNode(id symptom.ID, node string) symptom.Finding {
	return symptom.Finding{Symptom: id, Level: symptom.Fail, Node: node, Hint: "what to do"}
}

func repairable(f symptom.Finding) symptom.Finding {
	f.Repairable = true
	return f
}

func TestFailures(t *testing.T) {
	effect, warning := onNode(symptom.EtcdUnreachable, "cp3"), onNode(symptom.ClockSkew, "cp2")
	effect.BecauseOf, warning.Level = symptom.FirewallBlocked, symptom.Warn
	findings := []symptom.Finding{
		onNode(symptom.FirewallBlocked, "cp3"), effect, warning, onNode(symptom.NodeUnreachable, "w1"), onNode(symptom.EtcdNoQuorum, ""),
		onNode(symptom.CNIStaleConfig, "w2"),
	}
	found := []Repaired{{Node: "w1", Symptom: "labnode-not-answering", Left: "look"}, {Symptom: "etcd-no-quorum", Left: "restore"},
		{Node: "w2", Symptom: "cni-stale-config", Did: "moved it aside"}}
	if got := named(failures(findings, found)); got != "the diagnosis finds firewall-blocked on cp3, cni-stale-config on w2" {
		t.Error(got)
	}
}

// TestLasting is about what a repair must not wait for in vain, and what it must wait for.
func TestLasting(t *testing.T) {
	wall, stale, silent := onNode(symptom.FirewallBlocked, "cp3"), repairable(onNode(symptom.CNIStaleConfig, "w1")), onNode(symptom.KubeletNotRunning, "w2")
	before := []symptom.Finding{wall, stale, silent}
	now := []symptom.Finding{wall, stale, silent, onNode(symptom.DiskFull, "w2")}
	if got := lasting(now, before, []Repaired{{Node: "w1", Symptom: "cni-stale-config", Did: "moved it aside"}}, map[string]int{}); len(got) != 1 || got[0].Node != "cp3" {
		t.Errorf("%+v", got)
	}
	if got := lasting(now, before, []Repaired{{Node: "cp3", Symptom: string(symptom.FirewallBlocked), Did: "removed a rule"}}, map[string]int{looked(wall): lastingLooks}); len(got) != 0 {
		t.Errorf("its node was repaired, so it may pass: %+v", got)
	}
	missing := onNode(symptom.FlannelSubnetEnvMissing, "w2")
	if got := lasting([]symptom.Finding{missing}, []symptom.Finding{repairable(missing)}, []Repaired{{Did: "applied the manifest"}}, map[string]int{}); len(got) != 0 {
		t.Errorf("a repair of the whole cluster is on its way: %+v", got)
	}
	started := []Repaired{{Node: "w2", Symptom: string(symptom.KubeletNotRunning), Did: "started kubelet"}}
	full := []symptom.Finding{onNode(symptom.DiskFull, "w2")}
	var rows map[string]int
	for look := 1; look <= lastingLooks; look++ {
		rows = inARow(rows, full)
		if got := lasting(full, full, started, rows); len(got) == 1 != (look == lastingLooks) {
			t.Errorf("look %d at a full disk beside a kubelet that was started: %+v", look, got)
		}
	}
}

// TestUnforeseen is about what a dry run lists as left: never what it would repair itself.
func TestUnforeseen(t *testing.T) {
	findings := []symptom.Finding{
		repairable(onNode(symptom.FlannelSubnetEnvMissing, "w1")), onNode(symptom.NetworkPluginPodsFailing, ""), onNode(symptom.KubeletNotRunning, "w2"),
		onNode(symptom.ImageFilesystemZero, "w2"),
	}
	found := []Repaired{{Symptom: string(symptom.NetworkPluginPodsFailing), Would: "apply it again"}, {Node: "w2", Symptom: string(symptom.SwapEnabled), Would: "swapoff -a"}}
	if got := unforeseen(findings, found); len(got) != 1 || got[0].Symptom != symptom.ImageFilesystemZero {
		t.Errorf("%+v", got)
	}
	if got := unforeseen(findings[:1], nil); len(got) != 1 {
		t.Errorf("the diagnosis calls it repairable, and nothing repairs it: %+v", got)
	}
}

func TestForeseenJoin(t *testing.T) {
	o := nonMember{symptom: symptom.KubeletConfigMissing, evidence: "it is in no cluster", would: "labctl join w1"}
	o.node.Name = "w1"
	if f := o.foreseen([]symptom.Finding{repairable(onNode(symptom.LeftoverState, "w1")), onNode(symptom.DiskFull, "w2")}); f.Would != "labctl join w1" || f.Left != "" {
		t.Errorf("%+v", f)
	}
	if f := o.foreseen([]symptom.Finding{onNode(symptom.KubeBinariesMissing, "w1")}); f.Left != "what to do" || f.Would != "" || f.Symptom != "kube-binaries-missing" {
		t.Errorf("a cause that stops the join: %+v", f)
	}
}

func TestRepairedTellsOneThing(t *testing.T) {
	for text, f := range map[string]Repaired{
		"w1: swap-enabled: swap is on; would: swapoff -a":            {Node: "w1", Symptom: "swap-enabled", Evidence: "swap is on", Would: "swapoff -a"},
		"w1: swap-enabled: swap is on; repaired: turned it off":      {Node: "w1", Symptom: "swap-enabled", Evidence: "swap is on", Did: "turned it off"},
		"etcd-no-quorum: two are lost; not repaired: restore a copy": {Symptom: "etcd-no-quorum", Evidence: "two are lost", Left: "restore a copy"},
	} {
		if f.String() != text {
			t.Error(f.String())
		}
	}
}

// A failure that comes and goes is none that a repair has uncovered; one that stays is.
func TestEmerged(t *testing.T) {
	before := []symptom.Finding{onNode(symptom.DiskFull, "w2")}
	wall := onNode(symptom.FirewallBlocked, "w2")
	var rows map[string]int
	look := func(findings []symptom.Finding) bool {
		rows = inARow(rows, findings)
		return emerged(findings, before, rows)
	}
	both := append(slices.Clone(before), wall)
	for range 3 * emergedLooks {
		if look(both) || look(before) {
			t.Fatal("it was seen in every other look only")
		}
	}
	for n := 1; n <= emergedLooks; n++ {
		if got := look(both); got != (n == emergedLooks) {
			t.Errorf("look %d in a row: %t", n, got)
		}
	}
}
