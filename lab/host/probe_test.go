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

func TestCgroups(t *testing.T) {
	v1 := func(more ...string) map[string]string {
		files := map[string]string{}
		for _, c := range append(more, "cpu", "cpuset", "devices", "freezer", "memory") {
			files["sys/fs/cgroup/"+c+"/"] = ""
		}
		return files
	}
	unified := func(controllers string) map[string]string {
		return map[string]string{"sys/fs/cgroup/cgroup.controllers": controllers + "\n"}
	}
	for _, tt := range []struct {
		name    string
		files   map[string]string
		cgroups string
		missing string
	}{
		{"v1", v1("pids"), "v1", ""},
		{"v1 without pids", v1(), "v1", "pids"},
		{"hybrid", v1("pids", "unified/cgroup.controllers"), "hybrid", ""},
		{"v2", unified("cpuset cpu io memory hugetlb pids"), "v2", ""},
		{"v2 without two", unified("cpuset cpu io"), "v2", "memory pids"},
		{"none", nil, "v1", "cpu cpuset devices freezer memory pids"},
	} {
		root := fakeRoot(t, tt.files)
		if got, missing := cgroups(root), strings.Join(missingControllers(root), " "); got != tt.cgroups || missing != tt.missing {
			t.Errorf("%s: got %s without %q", tt.name, got, missing)
		}
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
