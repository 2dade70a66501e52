package join

import (
	"encoding/pem"
	"os"
	"slices"
	"strings"
	"testing"

	"k8slab/lab/symptom"
)

// fixed runs the checks, repairs, and returns the check of that name.
func (s *scene) fixed(id CheckID) (Check, []Check) {
	s.t.Helper()
	checks := RepairPreflight(s.t.Context(), s.Machine, s.target, Preflight(s.t.Context(), s.Machine, s.target, nil), nil)
	return find(checks, id), checks
}

func (s *scene) fixes(id CheckID, did string) {
	s.t.Helper()
	got, _ := s.fixed(id)
	if got.Result != OK || !strings.Contains(got.Fixed, did) {
		s.t.Errorf("%s: %s %q, fixed %q, want %q", id, got.Result, got.Evidence, got.Fixed, did)
	}
}

// refused expects that the check ends blocked for this reason, and that nothing was changed.
func (s *scene) refused(id CheckID, why string) {
	s.t.Helper()
	before := s.digest()
	found := Check{ID: id, Result: Fixable, Evidence: "found"}
	got := repair(s.t.Context(), s.Machine, s.target, s.probe(id), found)
	if got.Result != Blocked || !strings.Contains(got.Evidence, why) || got.Fixed != "" || got.Hint == "" {
		s.t.Errorf("%s: %s %q, hint %q, fixed %q", id, got.Result, got.Evidence, got.Hint, got.Fixed)
	}
	if s.digest() != before {
		s.t.Error("it changed the machine")
	}
	if ran := s.changed(); len(ran) > 0 {
		s.t.Errorf("it ran %q", ran)
	}
}

func (s *scene) probe(id CheckID) probe {
	list := before(s.target)
	return list[slices.IndexFunc(list, func(p probe) bool { return p.id == id })]
}

func (s *scene) has(path, want string) {
	s.t.Helper()
	if got, err := s.Read(path); err != nil || got != want {
		s.t.Errorf("%s: %q, %v, want %q", path, got, err, want)
	}
}

func TestFixSwap(t *testing.T) {
	s := newScene(t, false)
	fstab := "/dev/vda1 / ext4 defaults 0 1\n/dev/vda5 none swap sw 0 0\n"
	s.write("/proc/swaps", swapsOn)
	s.write("/etc/fstab", fstab)
	s.does("swapoff", func() (string, error) { s.write("/proc/swaps", "Filename\n"); return "", nil })
	s.fixes("swap", "turned swap off, and commented it out")
	s.has("/etc/fstab", "/dev/vda1 / ext4 defaults 0 1\n# off for kubelet: /dev/vda5 none swap sw 0 0\n")
	s.has("/etc/fstab"+saved, fstab)
	if ran := s.changed(); !slices.Equal(ran, []string{"swapoff --all"}) {
		t.Errorf("ran %q", ran)
	}
}

func TestFixSwapRefuses(t *testing.T) {
	s := newScene(t, false)
	s.write("/proc/swaps", swapsOn)
	s.write("/run/systemd/container", "lxc-libvirt")
	s.refused("swap", "a container cannot")

	s = newScene(t, false) // a link's target may serve others
	s.write("/proc/swaps", swapsOn)
	s.does("swapoff", func() (string, error) { return "", nil })
	s.write("/etc/shared", "/dev/vda5 none swap sw 0 0\n")
	s.remove("/etc/fstab")
	if err := os.Symlink("shared", s.Path("/etc/fstab")); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.fixed("swap"); got.Result != Blocked || !strings.Contains(got.Evidence, "not a plain file") {
		t.Errorf("%s %q", got.Result, got.Evidence)
	}
	s.has("/etc/shared", "/dev/vda5 none swap sw 0 0\n")
}

// A member is named as its Node. What a machine that has not joined is to be called is for a person to say.
func TestFixHostname(t *testing.T) {
	s := newScene(t, false)
	s.write("/proc/sys/kernel/hostname", "localhost\n")
	s.does("hostname", func() (string, error) { s.write("/proc/sys/kernel/hostname", "kube-apiserver\n"); return "", nil })
	if got, _ := s.fixed("hostname"); got.Result != Blocked {
		t.Errorf("not a member: %s, fixed %q", got.Result, got.Fixed)
	}
	ca, key := newCA(t)
	s.write("/etc/kubernetes/kubelet.conf", "")
	s.write("/var/lib/kubelet/pki/kubelet-client-current.pem",
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf(t, ca, key, clusterShape{}).Certificate[0]})))
	got := repair(t.Context(), s.Machine, s.target, s.probe("hostname"), Check{ID: "hostname", Result: Fixable})
	if got.Result != OK || got.Fixed != "named the machine kube-apiserver" {
		t.Errorf("a member: %+v", got)
	}
	if ran := s.changed(); !slices.Contains(ran, "hostname kube-apiserver") {
		t.Errorf("ran %q", ran)
	}
}

func TestFixModulesAndSysctls(t *testing.T) {
	s := newScene(t, false)
	s.remove("/sys/module/br_netfilter", "/proc/sys/net/bridge")
	s.write("/proc/sys/net/ipv4/ip_forward", "0\n")
	s.write("/lib/modules/6.1.0-25-amd64/modules.dep", "kernel/net/bridge/br_netfilter.ko:\n")
	s.write("/etc/modules-load.d/k8slab.conf", "overlay\n")
	s.does("modprobe --all br_netfilter", func() (string, error) {
		s.write("/sys/module/br_netfilter/refcnt", "0\n")
		s.write("/proc/sys/net/bridge/bridge-nf-call-iptables", "0\n") // what the module brings needs a setting, too
		return "", nil
	})
	_, checks := s.fixed("kernel-modules")
	if got := find(checks, "kernel-modules"); got.Result != OK || got.Fixed != "loaded br_netfilter, now and at boot" {
		t.Errorf("modules: %+v", got)
	}
	if got := find(checks, "sysctls"); got.Result != OK || got.Fixed != "set net.ipv4.ip_forward, net.bridge.bridge-nf-call-iptables to 1, now and at boot" {
		t.Errorf("sysctls: %+v", got)
	}
	s.has("/etc/modules-load.d/k8slab.conf", "overlay\nbr_netfilter\n")
	s.has("/etc/sysctl.d/99-k8slab.conf", "net.ipv4.ip_forward = 1\nnet.bridge.bridge-nf-call-iptables = 1\n")
	s.has("/proc/sys/net/ipv4/ip_forward", "1\n")
}

func TestFixModulesRefuses(t *testing.T) {
	s := newScene(t, false)
	s.remove("/sys/module/br_netfilter", "/proc/sys/net/bridge")
	s.write("/run/systemd/container", "lxc-libvirt")
	s.refused("kernel-modules", "a container cannot load")
}

// A setting that the kernel does not take is not reported as set.
func TestFixSysctlsThatDoNotHold(t *testing.T) {
	s := newScene(t, false)
	s.write("/proc/sys/net/ipv4/ip_forward", "0\n")
	s.remove("/etc/sysctl.d")
	s.write("/etc/sysctl.d", "not a directory")
	got, _ := s.fixed("sysctls")
	if got.Result != Blocked || !strings.Contains(got.Evidence, "the repair failed") {
		t.Errorf("%s %q", got.Result, got.Evidence)
	}
}

func TestFixKubeletUnit(t *testing.T) {
	t.Run("masked", func(t *testing.T) {
		s := newScene(t, false)
		s.answer("systemctl show kubelet.service", showUnits(with(kubeletUnit, "LoadState", "masked"), containerdUnit))
		s.does("systemctl unmask kubelet.service", func() (string, error) {
			s.answer("systemctl show kubelet.service", showUnits(kubeletUnit, containerdUnit))
			return "", nil
		})
		s.fixes("kubelet-unit", "unmasked kubelet.service")
	})
	t.Run("drop-in hidden by a local one", func(t *testing.T) {
		s := newScene(t, false)
		standaloneUnit(s)
		hiding := localDropInDir + "/10-kubeadm.conf"
		s.write(hiding, "[Service]\n")
		s.does("systemctl daemon-reload", func() (string, error) {
			s.answer("systemctl show kubelet.service", showUnits(kubeletUnit, containerdUnit))
			return "", nil
		})
		s.fixes("kubelet-unit", "moved "+hiding+" aside")
		s.has(hiding+saved, "[Service]\n")
		if s.Exists(hiding) {
			t.Error("it still hides the packaged one")
		}
	})
	t.Run("packaged one is gone", func(t *testing.T) {
		s := newScene(t, false)
		standaloneUnit(s)
		s.remove(packagedDropIn)
		// Its check is not fixable then; an old one says that it is.
		s.refused("kubelet-unit", "there is no "+packagedDropIn)
	})
	t.Run("another drop-in wins", func(t *testing.T) {
		s := newScene(t, false)
		standaloneUnit(s)
		s.answer("systemctl daemon-reload", "")
		got, _ := s.fixed("kubelet-unit")
		if got.Result != Blocked || !strings.Contains(got.Evidence, "another drop-in takes kubeadm's arguments away") {
			t.Errorf("%s %q", got.Result, got.Evidence)
		}
	})
}

// What RepairPreflight is not told to repair it leaves alone, and what has healed meanwhile too.
func TestFixOnlyWhatIsFixable(t *testing.T) {
	s := newScene(t, false)
	s.write("/proc/sys/net/ipv4/ip_forward", "0\n")
	checks := []Check{
		{ID: "swap", Result: Fixable}, {ID: "sysctls", Result: Blocked, Symptom: symptom.KernelPrereqMissing},
		{ID: "cni-plugins", Result: Warn}, {ID: "kube-binaries", Result: Fixable},
	}
	got := RepairPreflight(t.Context(), s.Machine, s.target, checks, nil)
	if swap := find(got, "swap"); swap.Result != OK || !strings.Contains(swap.Fixed, "nothing") {
		t.Errorf("swap %+v", swap)
	}
	if c := find(got, "sysctls"); c.Result != Fixable || c.Fixed != "" { // as it is, now that all was checked again
		t.Errorf("sysctls %+v", c)
	}
	if ran := s.changed(); len(ran) > 0 {
		t.Errorf("ran %q", ran)
	}
	s.has("/proc/sys/net/ipv4/ip_forward", "0\n")
}
