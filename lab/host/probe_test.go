package host

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeRoot makes a root directory with these files; a name that ends in a slash is a directory.
func fakeRoot(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const (
	plainCPU = "processor\t: 0\nmodel name\t: svmish\nflags\t\t: fpu vme de pse\nvmx flags\t:\n"
	intelCPU = "processor\t: 0\nflags\t\t: fpu vmx sse2\n"
	amdCPU   = "processor\t: 0\nflags\t\t: fpu svm sse2\n"
	overlay  = "nodev\tsysfs\nnodev\toverlay\n\text4\n"
)

func TestKVM(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		want  bool
		why   string
	}{
		{"intel", map[string]string{"proc/cpuinfo": intelCPU, "dev/kvm": ""}, true, "vmx and /dev/kvm"},
		{"amd", map[string]string{"proc/cpuinfo": amdCPU, "dev/kvm": ""}, true, "svm and /dev/kvm"},
		{"no module", map[string]string{"proc/cpuinfo": amdCPU}, false, "has svm, but there is no /dev/kvm"},
		// The device alone is no proof: it can be there and create machines that never boot.
		{"device without the flag", map[string]string{"proc/cpuinfo": "flags\t\t: fpu vme\n", "dev/kvm": ""}, false, "neither vmx nor svm"},
		{"no /proc", nil, false, "cpuinfo"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := probe(fakeRoot(t, tt.files)).KVM
			if a.OK != tt.want || !strings.Contains(a.Why, tt.why) {
				t.Errorf("got %v %q, want %v with %q", a.OK, a.Why, tt.want, tt.why)
			}
		})
	}
}

func TestCgroupsAndContainers(t *testing.T) {
	v1 := func(more map[string]string) map[string]string {
		files := map[string]string{"proc/filesystems": overlay}
		for _, c := range []string{"cpu", "cpuset", "devices", "freezer", "memory", "pids"} {
			files["sys/fs/cgroup/"+c+"/"] = ""
		}
		for name, text := range more {
			files[name] = text
		}
		return files
	}
	without := func(files map[string]string, name string) map[string]string {
		delete(files, name)
		return files
	}
	tests := []struct {
		name    string
		files   map[string]string
		cgroups string
		want    bool
		why     string
	}{
		{"v1", v1(nil), "v1", true, "cgroup v1, overlay"},
		{"hybrid", v1(map[string]string{"sys/fs/cgroup/unified/cgroup.controllers": ""}), "hybrid", true, "cgroup hybrid, overlay"},
		{"v2", map[string]string{"proc/filesystems": overlay, "sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory hugetlb pids\n"}, "v2", true, "cgroup v2"},
		{"v2 without pids", map[string]string{"proc/filesystems": overlay, "sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory\n"}, "v2", false, "no controller pids"},
		{"v1 without pids", without(v1(nil), "sys/fs/cgroup/pids/"), "v1", false, "controller pids is not mounted"},
		{"no overlay", v1(map[string]string{"proc/filesystems": "nodev\tsysfs\n\text4\n"}), "v1", false, "no overlay"},
		{"fuse-overlay only", v1(map[string]string{"proc/filesystems": "nodev\tfuse.overlayfs\n"}), "v1", false, "no overlay"},
		{"no /proc", nil, "v1", false, "filesystems"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := probe(fakeRoot(t, tt.files))
			if a.Cgroups != tt.cgroups {
				t.Errorf("cgroups %q, want %q", a.Cgroups, tt.cgroups)
			}
			if a.Containers.OK != tt.want || !strings.Contains(a.Containers.Why, tt.why) {
				t.Errorf("containers %v %q, want %v with %q", a.Containers.OK, a.Containers.Why, tt.want, tt.why)
			}
		})
	}
}

func TestLibvirt(t *testing.T) {
	root := fakeRoot(t, map[string]string{"run/libvirt/virtlxcd-sock": "left over by a daemon that is gone"})
	if a := probe(root).Libvirt; a.OK || !strings.Contains(a.Why, "no libvirt daemon answers") {
		t.Errorf("nobody listens: %+v", a)
	}
	listener, err := net.Listen("unix", filepath.Join(root, "run/libvirt/libvirt-sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	if a := probe(root).Libvirt; !a.OK || a.Why != "a daemon answers at /run/libvirt/libvirt-sock" {
		t.Errorf("a daemon listens: %+v", a)
	}
}

func TestChoose(t *testing.T) {
	tests := []struct {
		name string
		kvm  bool
		want string
		why  string
	}{
		{"kvm", true, VirtualMachines, "virtual machines: because"},
		{"no kvm", false, Containers, "containers, because virtual machines would be emulated: because"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			uri, why := Abilities{KVM: Ability{tt.kvm, "because"}}.Choose()
			if uri != tt.want || why != tt.why {
				t.Errorf("got %s, %q", uri, why)
			}
		})
	}
}

func TestAbilitiesText(t *testing.T) {
	a := Abilities{
		KVM: Ability{false, "no flag"}, Emulation: Ability{true, "slow"}, Containers: Ability{true, "overlay"},
		Libvirt: Ability{false, "nobody"}, Cgroups: "v1",
	}
	const want = `KVM             no   no flag
emulation       yes  slow
containers      yes  overlay
libvirt daemon  no   nobody
cgroups         v1
auto takes      lxc:///system (containers, because virtual machines would be emulated: no flag)
`
	if got := a.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
