package join

import (
	"errors"
	"slices"
	"testing"
	"time"
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
