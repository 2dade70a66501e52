package scenarios

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8slab/lab/symptom"
)

// coming are symptoms whose scenario is being written.
var coming = []symptom.ID{
	symptom.APIServerUnreachable, symptom.CACertHashMismatch, symptom.CertificateKeyExpired, symptom.CgroupDriverMismatch,
	symptom.ControlPlaneCrashloop, symptom.DNSResolutionFailure, symptom.DiskFull, symptom.EtcdDataCorrupt, symptom.EtcdLearnerNotInSync,
	symptom.EtcdNoQuorum, symptom.EtcdSlow, symptom.FirewallBlocked, symptom.FlannelSubnetEnvMissing, symptom.ImageFilesystemZero,
	symptom.KubeletConfigMissing, symptom.MachineNotRunning, symptom.MachinePaused, symptom.PortInUse, symptom.TokenExpiredOrInvalid,
}

// Every symptom has a scenario or a written reason, and not both.
func TestEverySymptomHasAScenarioOrAReason(t *testing.T) {
	made := map[symptom.ID]string{}
	for _, f := range All() {
		made[f.Symptom] = f.Name
		if f.Join != nil {
			made[f.Join.Cause] = f.Name
		}
	}
	reasons := map[symptom.ID]string{}
	for _, w := range WithoutScenario() {
		if _, known := symptom.Lookup(w.Symptom); !known || reasons[w.Symptom] != "" || len(strings.Fields(w.Reason)) < 5 {
			t.Errorf("%q: %q", w.Symptom, w.Reason)
		}
		reasons[w.Symptom] = w.Reason
	}
	for _, s := range symptom.All() {
		switch fault, reason := made[s.ID], reasons[s.ID]; {
		case fault != "" && reason != "":
			t.Errorf("%s is made by %s: take its reason out of without.go", s.ID, fault)
		case fault == "" && reason == "" && !slices.Contains(coming, s.ID):
			t.Errorf("%s has no scenario, and no reason in without.go", s.ID)
		}
	}
}

// Reasons name scenarios, and those must exist.
func TestReasonsNameScenarios(t *testing.T) {
	for _, w := range without {
		for _, word := range strings.FieldsFunc(w.Reason, func(r rune) bool { return strings.ContainsRune(" ,;:", r) }) {
			if _, known := Lookup(word); strings.Count(word, "-") > 0 && strings.ToLower(word) == word && !known && !slices.Contains(comingFaults, word) {
				t.Errorf("%s: no fault %q", w.Symptom, word)
			}
		}
	}
}

// comingFaults are named by reasons, or in the README, and are being written.
var comingFaults = []string{"certificate-key-gone", "apiserver-crashloop", "wrong-ca-hash", "wrong-peer-address", "flannel-down",
	"duplicate-live-node", "worker-suspended", "control-plane-partitioned", "kubelet-stopped", "token-expired", "cp-powered-off", "quorum-lost"}

// Every symptom is known by a text that was captured.
func TestEverySymptomHasACapturedText(t *testing.T) {
	for _, s := range symptom.All() {
		texts, err := filepath.Glob(filepath.Join("..", "lab", "symptom", "testdata", "corpus", string(s.ID)+"--*.txt"))
		if err != nil || len(texts) == 0 {
			t.Errorf("%s: no text of it in the corpus, %v", s.ID, err)
		}
	}
}
