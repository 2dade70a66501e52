package repair

import (
	"slices"
	"testing"

	"k8slab/lab/symptom"
)

func TestNextRung(t *testing.T) {
	healthy := func(a ailing) ailing {
		a.joined, a.answers, a.runs = true, true, true
		return a
	}
	of := func(ids ...symptom.ID) []symptom.ID { return ids }
	tests := []struct {
		name string
		is   ailing
		want []Rung
	}{
		{"narrower first", healthy(ailing{symptoms: of(symptom.KubeletNotRunning)}), []Rung{Services, Restart, Rejoin, Recreate}},
		{"what was taken is not taken again", healthy(ailing{symptoms: of(symptom.KubeletNotRunning), taken: Restart}), []Rung{Rejoin, Recreate}},
		{"all were taken", healthy(ailing{symptoms: of(symptom.KubeletNotRunning), taken: Recreate}), nil},
		{"nothing fails", healthy(ailing{}), nil},
		{"lost data", healthy(ailing{symptoms: of(symptom.EtcdDataCorrupt)}), []Rung{Rejoin, Recreate}},
		{"somebody's packet filter goes only with the machine", healthy(ailing{symptoms: of(symptom.FirewallBlocked)}), []Rung{Recreate}},
		{"the cause that needs most decides", healthy(ailing{symptoms: of(symptom.KubeletNotRunning, symptom.FirewallBlocked)}), []Rung{Recreate}},
		{"a cause outside of the machine", healthy(ailing{symptoms: of(symptom.KubeletNotRunning, symptom.EtcdSlow)}), nil},
		{"kubeadm is at work", healthy(ailing{symptoms: of(kubeadmRunning)}), nil},
		{"another machine has the name", healthy(ailing{symptoms: of(symptom.NodeNameExists)}), nil},
		{"it does not answer", ailing{symptoms: of(symptom.NodeUnreachable), runs: true}, []Rung{Restart, Recreate}},
		{"its machine is off", ailing{symptoms: of(symptom.NodeUnreachable)}, nil},
		{"a join has failed on it", ailing{symptoms: of(symptom.KubeletConfigMissing), runs: true, answers: true}, []Rung{Recreate}},
	}
	for _, tt := range tests {
		if got := tt.is.rest(Recreate); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	if got := tests[0].is.rest(Restart); !slices.Equal(got, []Rung{Services, Restart}) {
		t.Errorf("up to restart: %v", got)
	}
}

func TestParseRung(t *testing.T) {
	for _, g := range Limits {
		if got, err := ParseRung(g.String()); got != g || err != nil {
			t.Errorf("%s: %v, %v", g, got, err)
		}
	}
	for _, text := range []string{"", "services", "machine"} {
		if _, err := ParseRung(text); err == nil {
			t.Errorf("%q is a limit", text)
		}
	}
}

// What was done in vain on a node is told with what is left, and is no repair; what was done about something else stays.
func TestUnhelped(t *testing.T) {
	r := &repairRun{found: []Repaired{
		{Node: "w1", Symptom: string(symptom.KubeletNotRunning), Did: "started kubelet"},
		{Node: "w1", Symptom: string(symptom.SwapEnabled), Did: "turned swap off"},
		{Node: "w1", Symptom: string(symptom.KubeletFlagRemoved), Evidence: "unknown flag", Left: "remove it"},
		{Node: "w2", Symptom: string(symptom.KubeletNotRunning), Did: "started kubelet"},
	}}
	r.unhelped("w1", "or climb")
	want := []Repaired{r.found[0], {Node: "w1", Symptom: string(symptom.KubeletFlagRemoved), Evidence: "unknown flag; labctl started kubelet, and it still fails", Left: "remove it; or climb"}, r.found[len(r.found)-1]}
	if len(r.found) != 3 || r.found[0].Did != "turned swap off" || r.found[1].Evidence != want[1].Evidence || r.found[1].Left != want[1].Left || r.found[2].Node != "w2" {
		t.Errorf("%+v", r.found)
	}
}
