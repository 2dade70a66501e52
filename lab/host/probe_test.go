package host

import (
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
			a := kvm(fakeRoot(t, tt.files))
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
			root := fakeRoot(t, tt.files)
			if got := cgroups(root); got != tt.cgroups {
				t.Errorf("cgroups %q, want %q", got, tt.cgroups)
			}
			if a := containers(root, tt.cgroups); a.OK != tt.want || !strings.Contains(a.Why, tt.why) {
				t.Errorf("containers %v %q, want %v with %q", a.OK, a.Why, tt.want, tt.why)
			}
		})
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
			uri, why := Ability{tt.kvm, "because"}.choose()
			if uri != tt.want || why != tt.why {
				t.Errorf("got %s, %q", uri, why)
			}
		})
	}
}
