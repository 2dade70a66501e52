package join

import (
	"context"
	"errors"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"k8slab/lab/symptom"
)

// active makes kubelet run as process 77.
func active(s *scene) {
	unit := with(kubeletUnit, "ActiveState", "active") + "MainPID=77\n"
	s.answer("systemctl show kubelet.service", showUnits(unit, containerdUnit))
	s.answer("systemctl show --property="+stateProperties+" kubelet.service", unit)
	s.write("/proc/77/cmdline", "/usr/bin/kubelet\x00--kubeconfig=/etc/kubernetes/kubelet.conf\x00")
}

// worker is a machine of which nothing is wrong.
func worker(t *testing.T) *scene {
	s := newScene(t, false)
	s.write(kubeletConf, "x")
	s.write(kubeletConfig, "kind: KubeletConfiguration\n")
	active(s)
	return s
}

func TestMendFindsNothingWrongWithAHealthyWorker(t *testing.T) {
	s := worker(t)
	before := s.digest()
	for _, c := range RepairMember(t.Context(), s.Machine, false) {
		if c.Result == Blocked || c.Result == Fixable || c.Fixed != "" {
			t.Errorf("%s: %s %s: %s", c.ID, c.Result, c.Symptom, c.Evidence)
		}
	}
	if s.digest() != before || len(s.changed()) > 0 {
		t.Errorf("it changed the machine: %q", s.changed())
	}
}

// A node with settings of its own has a patch, with which kubeadm makes them again.
func TestFixMemberConfigWithOwnSettings(t *testing.T) {
	s := worker(t)
	s.remove(kubeletConfig)
	s.write(patchesDir+"/kubeletconfiguration+merge.yaml", "maxPods: 32\n")
	s.does("kubeadm upgrade node phase kubelet-config --patches "+patchesDir, func() (string, error) {
		s.write(kubeletConfig, "kind: KubeletConfiguration\nmaxPods: 32\n")
		return "", nil
	})
	if c := find(RepairMember(t.Context(), s.Machine, false), "kubelet-config"); c.Result != OK || c.Fixed == "" {
		t.Errorf("%+v", c)
	}
}

func TestFixMemberConfig(t *testing.T) {
	s := worker(t)
	s.remove(kubeletConfig)
	s.write(upgradeDir+"/older/config.yaml", "kept")
	s.does("kubeadm upgrade node phase kubelet-config", func() (string, error) {
		s.has(kubeletConfig, "")
		s.write(upgradeDir+"/kubeadm-kubelet-config-1/config.yaml", "")
		s.write(kubeletConfig, "kind: KubeletConfiguration\n")
		return "", nil
	})
	checks := RepairMember(t.Context(), s.Machine, false)
	if c := find(checks, "kubelet-config"); c.Result != OK || c.Symptom != symptom.KubeletConfigMissing || !strings.Contains(c.Fixed, "had kubeadm write") {
		t.Errorf("%+v", c)
	}
	if names := s.List(upgradeDir); len(names) != 1 {
		t.Errorf("left %q", names)
	}
}

func TestFixMemberConfigLeavesNothingWhenKubeadmFails(t *testing.T) {
	s := worker(t)
	s.remove(kubeletConfig)
	s.does("kubeadm upgrade node phase kubelet-config", func() (string, error) { return "", errors.New("no such ConfigMap") })
	if c := find(RepairMember(t.Context(), s.Machine, false), "kubelet-config"); c.Result != Blocked || !strings.Contains(c.Evidence, "no such ConfigMap") {
		t.Errorf("%+v", c)
	}
	if s.Exists(kubeletConfig) {
		t.Error("an empty configuration stays")
	}
}

func TestFixMemberConfigRefuses(t *testing.T) {
	s := worker(t)
	s.remove(kubeletConfig, "/usr/bin/kubeadm")
	if c := find(RepairMember(t.Context(), s.Machine, false), "kubelet-config"); c.Result != Blocked || !strings.Contains(c.Evidence, "is not installed") {
		t.Errorf("%+v", c)
	}
	for _, c := range []struct {
		breaks func(*scene)
		why    string
	}{
		{func(s *scene) { s.remove(kubeletConf) }, "has not joined"},
		{func(*scene) {}, "there is a " + kubeletConfig},
	} {
		s := worker(t)
		c.breaks(s)
		s.leaves(repairMemberConfig, c.why)
	}
}

// leaves expects that a repair whose reason has gone changes nothing.
func (s *scene) leaves(repair func(context.Context, *preflight) (string, error), why string) {
	s.t.Helper()
	before := s.digest()
	_, err := repair(s.t.Context(), newPreflight(s.t.Context(), s.Machine, Target{}))
	if err == nil || !strings.Contains(err.Error(), why) || s.digest() != before || len(s.changed()) > 0 {
		s.t.Errorf("%v, ran %q", err, s.changed())
	}
}

// startedWith is what kubelet said of its cgroup driver when it started.
func startedWith(s *scene, driver string) {
	s.answer("journalctl --quiet --no-pager --output=cat --lines=1 --grep=cgroup driver setting received _PID=77",
		`I0101 00:00:00.000000      77 server.go:1448] "Using cgroup driver setting received from the CRI runtime" cgroupDriver="`+driver+`"`)
}

func TestFixCgroupDriver(t *testing.T) {
	s := worker(t)
	startedWith(s, "cgroupfs")
	s.does("systemctl restart kubelet.service", func() (string, error) { startedWith(s, "systemd"); return "", nil })
	c := find(RepairMember(t.Context(), s.Machine, false), "cgroup-driver")
	if c.Result != OK || c.Symptom != symptom.CgroupDriverMismatch || !strings.Contains(c.Fixed, "uses systemd now") {
		t.Errorf("%+v", c)
	}
}

func TestFixCgroupDriverRefuses(t *testing.T) {
	s := worker(t)
	startedWith(s, "systemd")
	s.leaves(repairCgroupDriver, "does not use another driver")
	s.cri.set(func() { s.cri.driver = runtimeapi.CgroupDriver_CGROUPFS })
	if c := find(Examine(t.Context(), s.Machine, Target{}), "cgroup-driver"); c.Result != Fixable {
		t.Errorf("%+v", c)
	}
}
