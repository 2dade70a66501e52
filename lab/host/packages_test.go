package host

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"k8slab/lab/event"
)

// fakePrograms makes a PATH of these scripts alone.
func fakePrograms(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

// dpkg-query lists what it knows, complains about the rest and fails.
const someInstalled = `echo "iptables installed
iproute2 config-files
gcc-12 installed"
echo "dpkg-query: no packages found matching libvirt-daemon" >&2
exit 1
`

func TestMissingPackages(t *testing.T) {
	fakePrograms(t, map[string]string{"dpkg-query": someInstalled})
	wanted := []string{"libvirt-daemon", "iptables", "iproute2", "gcc", "libvirt-daemon"}
	got, err := missingPackages(t.Context(), wanted)
	// A removed package that left its configuration is not installed, and gcc-12 is not gcc.
	if want := []string{"gcc", "iproute2", "libvirt-daemon"}; !slices.Equal(got, want) || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	// An answer that does not come must not have everything installed again.
	fakePrograms(t, map[string]string{"dpkg-query": "echo 'dpkg-query: error: failed to open package info file' >&2; exit 2"})
	if got, err := missingPackages(t.Context(), wanted); err == nil || !strings.Contains(err.Error(), "failed to open") {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestInstallNothingMissing(t *testing.T) {
	var all string
	for _, p := range slices.Concat(packages[Containers], []string{"mmdebstrap"}) {
		all += p + " installed\n"
	}
	fakePrograms(t, map[string]string{"dpkg-query": "echo '" + all + "'", "apt-get": "exit 1"})
	if err := Install(t.Context(), Containers, []string{"mmdebstrap"}, event.NewStream()); err != nil {
		t.Error(err)
	}
}

func TestInstallAsRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	t.Setenv("DEBIAN_FRONTEND", "") // of whoever runs this
	calls := filepath.Join(t.TempDir(), "calls")
	fakePrograms(t, map[string]string{
		"dpkg-query": someInstalled,
		"apt-get":    fmt.Sprintf("echo \"$DEBIAN_FRONTEND $*\" >>%s\n[ \"$1\" = install ]\n", calls),
	})
	// An update that fails is no obstacle while the install works.
	if err := Install(t.Context(), nowhere, []string{"iptables", "zz", "aa"}, event.NewStream()); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	if want := " update\nnoninteractive install --yes --no-install-recommends aa zz\n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestInstallFails(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	fakePrograms(t, map[string]string{"dpkg-query": someInstalled, "apt-get": `echo "E: $1 broke" >&2; exit 100`})
	err := Install(t.Context(), nowhere, []string{"aa"}, event.NewStream())
	for _, want := range []string{"E: install broke", "E: update broke", "aa"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

// An ordinary user gets the command to run, whole.
func TestInstallWithoutRoot(t *testing.T) {
	const want = "this computer lacks packages; install them with:\n  sudo apt-get update && sudo apt-get install --yes --no-install-recommends aa zz"
	if os.Getenv("K8SLAB_TEST_INSTALL") != "" {
		err := Install(t.Context(), nowhere, []string{"zz", "aa"}, event.NewStream())
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %v", err, want)
		}
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	fakePrograms(t, map[string]string{"dpkg-query": "exit 1"})
	env := append(os.Environ(), "K8SLAB_TEST_INSTALL=1")
	cmd := exec.Command(self, "-test.run=^TestInstallWithoutRoot$", "-test.v")
	if os.Geteuid() == 0 {
		file, err := os.Open(self)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		// The other user may read neither the test's directory nor, by default, the one of the scripts.
		cmd = exec.Command("/proc/self/fd/3", cmd.Args[1:]...)
		cmd.ExtraFiles, cmd.Dir = []*os.File{file}, "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if err := os.Chmod(filepath.Dir(os.Getenv("PATH")), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestWithoutDpkg(t *testing.T) {
	all := map[string]string{"libvirtd": "", "mmdebstrap": "", "mkfs.ext4": "", "qemu-img": "", "dnsmasq": ""}
	with := func(remove string, add ...string) map[string]string {
		left := maps.Clone(all)
		delete(left, remove)
		for _, name := range add {
			left[name] = ""
		}
		return left
	}
	for _, tt := range []struct {
		name     string
		programs map[string]string
		uri      string
		want     string // "" for no error
	}{
		{"all there", all, Containers, ""},
		{"no libvirtd", with("libvirtd"), Containers, "this computer has no dpkg, and lacks libvirtd; next: install them"},
		{"modular daemons and virtual machines", with("libvirtd", "qemu-system-x86_64"), VirtualMachines, ""},
		{"Fedora without mmdebstrap", with("mmdebstrap", "dnf"), Containers, "lacks mmdebstrap; next: sudo dnf install mmdebstrap debian-keyring"},
		{"Arch without QEMU", with("libvirtd", "pacman"), VirtualMachines, "lacks qemu-system-x86_64; next: sudo pacman -S qemu-system-x86 libvirt"},
		{"an image alone", map[string]string{"mmdebstrap": "", "mkfs.ext4": "", "qemu-img": ""}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fakePrograms(t, tt.programs)
			err := Install(t.Context(), tt.uri, []string{"mmdebstrap"}, event.NewStream())
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
