package join

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"k8slab/lab/inventory"
)

func TestFacts(t *testing.T) {
	f := newFakeMachine(t)
	query := "systemctl show --property=" + stateProperties + " kubelet.service " + JoinUnit + " " + InitUnit + " containerd.service"
	f.answer(query, "Id=kubelet.service\nActiveState=inactive\n\nId=containerd.service\nActiveState=active\n\nId="+JoinUnit+"\nActiveState=inactive\n\nId="+InitUnit+"\nActiveState=inactive\n")
	f.write("/proc/sys/kernel/random/boot_id", "b1\n")
	before := f.digest()
	fresh, err := ReadFacts(t.Context(), f.Machine)
	if err != nil || fresh.Joined || fresh.Dirty || fresh.Role != "" || fresh.MachineID != testMachineID || fresh.BootID != "b1" || fresh.CA != "" ||
		fresh.RuntimeActive != "active" || fresh.Running() || !slices.Equal(fresh.CNI, []string{"10-flannel.conflist"}) || fresh.Outcome != nil {
		t.Errorf("fresh: %+v, %v", fresh, err)
	}
	if f.digest() != before || len(f.changed()) > 0 || len(f.ran) != 1 {
		t.Errorf("it ran %q", f.ran)
	}

	f = joinedMachine(t)
	f.answer(query, "Id=kubelet.service\nActiveState=active\nMainPID=77\n\nId="+JoinUnit+"\nActiveState=deactivating\n")
	f.write("/proc/77/cmdline", "/usr/bin/kubelet\x00--config=/x\x00")
	if err := f.writeJSON(outcomeFile, Outcome{Joined: true}); err != nil {
		t.Fatal(err)
	}
	joined, err := ReadFacts(t.Context(), f.Machine)
	// sha256 of "x"
	const sum = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
	if err != nil || !joined.Joined || !joined.Dirty || joined.Role != "control-plane" || !joined.EtcdData || !joined.EtcdManifest || joined.CA != sum ||
		joined.Kubelet.Active != "active" || !joined.Kubelet.Standalone || !joined.Running() || joined.Outcome == nil || !joined.Outcome.Joined {
		t.Errorf("joined: %+v, %v", joined, err)
	}

	f.does(query, func() (string, error) { return "", errors.New("no systemd here") })
	if facts, err := ReadFacts(t.Context(), f.Machine); err == nil || !facts.Joined {
		t.Errorf("without systemd: %+v, %v", facts, err)
	}
}

func TestPatience(t *testing.T) {
	for model, want := range map[string]time.Duration{"QEMU Virtual CPU version 2.5+": 5, "AMD EPYC 7B13": 1, "": 1} {
		f := newFakeMachine(t)
		f.write("/proc/cpuinfo", "processor\t: 0\nmodel name\t: "+model+"\n")
		if got := f.Patience(); got != want {
			t.Errorf("%q: %d, want %d", model, got, want)
		}
		f.AtLeast = 2 // known to be busy
		if got := f.Patience(); got != max(want, 2) {
			t.Errorf("%q, busy: %d", model, got)
		}
	}
}

// Somebody else's kubeadm leaves no mark, and what labctl has begun is not taken for finished.
func TestJoinedByHand(t *testing.T) {
	const certificate = "/var/lib/kubelet/pki/kubelet-client-current.pem"
	ca, key := newCA(t)
	pem := string(pemOf(leaf(t, ca, key, clusterShape{subject: "system:node:w1"}).Certificate[0]))
	for name, tt := range map[string]struct {
		files  map[string]string
		joined bool
		begun  bool
	}{
		"nothing":                         {},
		"a worker":                        {map[string]string{kubeletConf: "x", certificate: pem}, true, false},
		"a kubelet without credentials":   {map[string]string{kubeletConf: "x"}, false, false},
		"a join that goes on":             {map[string]string{kubeletConf: "x", certificate: pem, bootstrapConf: "x"}, false, false},
		"a control plane before its etcd": {map[string]string{kubeletConf: "x", certificate: pem, apiManifest: "--etcd-servers=" + localEtcd}, false, false},
		"a control plane": {map[string]string{kubeletConf: "x", certificate: pem, apiManifest: "--etcd-servers=" + localEtcd, etcdManifest: "x"},
			true, false},
		"an etcd elsewhere":      {map[string]string{kubeletConf: "x", certificate: pem, apiManifest: "--etcd-servers=https://10.0.0.9:2379"}, true, false},
		"labctl's init":          {map[string]string{kubeletConf: "x", certificate: pem, InitMark: ""}, false, true},
		"labctl's init, at last": {map[string]string{kubeletConf: "x", certificate: pem, InitMark: "", joinedMark: ""}, true, false},
		"a machine of a lab":     {map[string]string{kubeletConf: "x", certificate: pem, inventory.Path: "{}"}, false, false},
	} {
		f := newFakeMachine(t)
		f.answer("systemctl show --property="+stateProperties+" kubelet.service "+JoinUnit+" "+InitUnit+" containerd.service", "")
		f.remove(inventory.Path)
		for file, text := range tt.files {
			f.write(file, text)
		}
		if facts, _ := ReadFacts(t.Context(), f.Machine); facts.Joined != tt.joined || facts.Begun != tt.begun {
			t.Errorf("%s: joined %t, begun %t", name, facts.Joined, facts.Begun)
		}
	}
}

// Credentials that are newer than labctl's last join are somebody else's.
func TestJoinedByHandAfterAFailure(t *testing.T) {
	f := newFakeMachine(t)
	f.write(eventsFile, "{}")
	f.write(kubeletConf, "x")
	now := time.Now()
	for file, at := range map[string]time.Time{eventsFile: now, kubeletConf: now.Add(-time.Minute)} {
		if err := os.Chtimes(f.Path(file), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if !f.begun() {
		t.Error("what labctl's join left is not known as such")
	}
	if err := os.Chtimes(f.Path(kubeletConf), now, now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if f.begun() {
		t.Error("somebody else's join is taken for labctl's")
	}
}

// A container sees the limit of tracked connections, and may not set it.
func TestFixedConntrack(t *testing.T) {
	const limit = "/proc/sys/net/netfilter/nf_conntrack_max"
	f := newFakeMachine(t)
	f.answer("systemctl show --property="+stateProperties+" kubelet.service "+JoinUnit+" "+InitUnit+" containerd.service", "")
	for _, fixed := range []bool{false, true} {
		f.write(limit, "131072")
		if err := os.Chmod(f.Path(limit), map[bool]os.FileMode{false: 0o644, true: 0o444}[fixed]); err != nil {
			t.Fatal(err)
		}
		if facts, _ := ReadFacts(t.Context(), f.Machine); facts.FixedConntrack != fixed {
			t.Errorf("fixed %t: %+v", fixed, facts)
		}
	}
}
