package join

import (
	"slices"
	"testing"

	"k8slab/lab/symptom"
)

func TestExamineFindsNothingWrongWithAHealthyMember(t *testing.T) {
	s := newScene(t, true)
	s.write("/etc/kubernetes/kubelet.conf", "x")
	s.write(kubeletConfig, "x")
	s.write("/etc/cni/net.d/10-flannel.conflist", `{"plugins":[{"type":"flannel"}]}`)
	s.listen(10250, 7, "kubelet")
	before := s.digest()
	for _, c := range Examine(t.Context(), s.Machine, Target{ControlPlane: true, Endpoint: s.target.Endpoint}) {
		if c.Result == Blocked || c.Result == Fixable {
			t.Errorf("%s: %s %s: %s", c.ID, c.Result, c.Symptom, c.Evidence)
		}
		if slices.ContainsFunc(table, func(pr probe) bool { return pr.id == c.ID && pr.scope == beforeJoin }) {
			t.Errorf("%s was made", c.ID)
		}
	}
	if s.digest() != before || len(s.changed()) > 0 {
		t.Errorf("it changed the machine: %q", s.changed())
	}
}

func TestExamineCallsAMissingNetworkAFailureOnlyOnAMember(t *testing.T) {
	s := newScene(t, false)
	s.remove("/etc/cni/net.d")
	look := func() Check { return find(Examine(t.Context(), s.Machine, Target{}), "cni-config") }
	if c := look(); c.Result != Warn {
		t.Errorf("%+v", c)
	}
	s.write("/etc/kubernetes/kubelet.conf", "x")
	if c := look(); c.Result != Blocked || c.Symptom != symptom.CNINotInitialized || !CheckCNIConfig.Traits().Repairable || CheckFirewall.Traits().Repairable {
		t.Errorf("%+v", c)
	}
}

func TestRecords(t *testing.T) {
	f := newFakeMachine(t)
	if all := Records(f.Machine); len(all) != 0 {
		t.Errorf("%+v", all)
	}
	f.write(eventsFile, `{"time":"2026-03-01T12:00:00Z","node":"w1","phase":"preflight","state":"started"}`+"\nhalf a li")
	if all := Records(f.Machine); len(all) != 1 || all[0].Phase != "preflight" {
		t.Errorf("%+v", all)
	}
}

func TestContainers(t *testing.T) {
	s := newScene(t, false)
	if runtime, all, err := Containers(t.Context(), s.Machine); runtime == "" || err == nil && len(all) != 0 {
		t.Errorf("%q %+v %v", runtime, all, err)
	}
	s.remove(containerdSocket)
	if _, _, err := Containers(t.Context(), s.Machine); err == nil {
		t.Error("a runtime that is not there answered")
	}
}
