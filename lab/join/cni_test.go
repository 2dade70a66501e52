package join

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8slab/lab/symptom"
)

const notInitialized = "Network plugin returns error: cni plugin not initialized"

// unloaded is a member whose containerd has not loaded the configuration that is there. It would notice one that is written again.
func unloaded(t *testing.T, notices bool) *scene {
	s := worker(t)
	file := s.Path(cniConfigs + "/10-flannel.conflist")
	was, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	s.cri.set(func() {
		s.cri.network = func() string {
			if is, err := os.Stat(file); notices && err == nil && !os.SameFile(was, is) {
				return ""
			}
			return notInitialized
		}
	})
	return s
}

func TestFixWritesAnUnnoticedConfigurationAgain(t *testing.T) {
	s := unloaded(t, true)
	before, _ := s.Read(cniConfigs + "/10-flannel.conflist")
	c := find(RepairMember(t.Context(), s.Machine, false), "cni-config")
	if c.Result != OK || c.Symptom != symptom.CNINotInitialized || !strings.Contains(c.Fixed, "wrote /etc/cni/net.d/10-flannel.conflist again") {
		t.Errorf("%+v", c)
	}
	s.has(cniConfigs+"/10-flannel.conflist", before)
	if names := s.List(cniConfigs); len(names) != 1 || len(s.changed()) > 0 {
		t.Errorf("files %q, ran %q", names, s.changed())
	}
}

// The Node is still Ready when the runtime is well again, and kubelet would tell only later that it was not.
func TestMendEndsWhenKubeletHasTold(t *testing.T) {
	s := unloaded(t, true)
	api := newNodeAPI(t, s.fakeMachine)
	var told atomic.Bool
	s.does("systemctl restart kubelet.service", func() (string, error) {
		go func() {
			for _, ready := range []string{"False", "True"} {
				time.Sleep(50 * time.Millisecond) // a kubelet that starts
				told.Store(ready == "True")
				api.set("w1", testMachineID, ready, "container runtime status check may not have completed yet")
			}
		}()
		return "", nil
	})
	if c := find(RepairMember(t.Context(), s.Machine, false), "cni-config"); c.Result != OK || !told.Load() {
		t.Errorf("%+v; kubelet has told: %t", c, told.Load())
	}
}

func TestFixRestartsAContainerdThatWatchesNoMore(t *testing.T) {
	s := unloaded(t, false)
	s.answer("systemctl reset-failed containerd.service", "")
	s.does("systemctl restart containerd.service", func() (string, error) { s.cri.set(func() { s.cri.network = nil }); return "", nil })
	c := find(RepairMember(t.Context(), s.Machine, false), "cni-config")
	if c.Result != OK || !strings.Contains(c.Fixed, "restarted containerd") {
		t.Errorf("%+v", c)
	}
}

// Time may be up while the runtime is asked: what it did not say is no network.
func TestANetworkThatWasNotToldOfDoesNotServe(t *testing.T) {
	s := unloaded(t, false)
	ctx, cancel := context.WithCancel(t.Context())
	s.cri.set(func() {
		s.cri.network = func() string {
			cancel()
			time.Sleep(50 * time.Millisecond) // the caller is gone before the answer
			return notInitialized
		}
	})
	if err := newPreflight(t.Context(), s.Machine, Target{}).networkServes(ctx); err == nil {
		t.Error("it serves")
	}
}

// A plugin that complains of its own network is its add-on's, and on a machine that has not joined the add-on may still write its
// configuration.
func TestUnloadedConfigurationThatIsNoFault(t *testing.T) {
	s := unloaded(t, true)
	s.cri.set(func() { s.cri.network = func() string { return "Network plugin returns error: agent is not running" } })
	if c := find(Examine(t.Context(), s.Machine, Target{}), "cni-config"); c.Result != OK {
		t.Errorf("%+v", c)
	}
	s.leaves(repairCNIConfig, "no configuration overrides another")
	s = unloaded(t, true)
	s.remove(kubeletConf, kubeletConfig)
	if c := find(Preflight(t.Context(), s.Machine, s.target, nil), "cni-config"); c.Result != OK {
		t.Errorf("%+v", c)
	}
}
