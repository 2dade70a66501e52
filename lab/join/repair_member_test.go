package join

import (
	"testing"

	"k8slab/lab/symptom"
)

// withoutPlugin is a machine without the CNI plugin bridge, of which it keeps a copy.
func withoutPlugin(t *testing.T) *scene {
	s := newScene(t, false)
	for _, name := range copiedPlugins {
		s.write(pristinePlugins+"/"+name, "program")
	}
	s.remove(cniPlugins + "/bridge")
	s.does("cp --archive --target-directory /opt/cni/bin /usr/share/k8slab/cni-plugins/bridge", func() (string, error) {
		s.write(cniPlugins+"/bridge", "program")
		return "", nil
	})
	return s
}

func TestRepairSaysWhatItRepairedAndWhy(t *testing.T) {
	s := withoutPlugin(t)
	c := find(RepairMember(t.Context(), s.Machine, false), "cni-plugins")
	if c.Result != OK || c.Fixed == "" || c.Symptom != symptom.CNIPluginBinaryMissing || c.Evidence != "/opt/cni/bin has no bridge" {
		t.Errorf("%+v", c)
	}
}

func TestRepairMemberDryRunChangesNothing(t *testing.T) {
	s := withoutPlugin(t)
	before := s.digest()
	c := find(RepairMember(t.Context(), s.Machine, true), "cni-plugins")
	if c.Result != Fixable || c.Fixed != "" || s.digest() != before || len(s.changed()) > 0 {
		t.Errorf("%+v; ran %q", c, s.changed())
	}
}
