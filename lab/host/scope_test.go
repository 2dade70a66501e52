package host

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestScope(t *testing.T) {
	const want = "/machine.slice/k8slab-demo-01234567.scope"
	tests := []struct {
		name string
		has  []string
		want string
	}{
		{"systemd and cgroup v2", []string{"run/systemd/system/x", "sys/fs/cgroup/cgroup.controllers"}, want},
		{"no systemd", []string{"sys/fs/cgroup/cgroup.controllers"}, ""},
		{"cgroup v1", []string{"run/systemd/system/x", "sys/fs/cgroup/memory/x"}, ""},
		{"hybrid", []string{"run/systemd/system/x", "sys/fs/cgroup/unified/cgroup.controllers"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			for _, name := range tt.has {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(root, name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := scope(root, "k8slab-demo-01234567"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestInScope(t *testing.T) {
	argv := []string{"labctl", "host", "serve"}
	if got := inScope(argv, ""); !slices.Equal(got, argv) {
		t.Errorf("without systemd: %q", got)
	}
	got := inScope(argv, "/machine.slice/k8slab-none-01234567.scope")
	if !slices.Contains(got, "--unit=k8slab-none-01234567.scope") || !slices.Contains(got, "--property=Delegate=yes") || !slices.Equal(got[len(got)-3:], argv) {
		t.Errorf("got %q", got)
	}
	leaf, err := joinLeaf("/machine.slice/k8slab-none-01234567.scope")
	if leaf != nil || err != nil {
		t.Errorf("a scope that is not there: %v, %v", leaf, err)
	}
}

func TestProgramsIn(t *testing.T) {
	cgroup := t.TempDir()
	if got := programsIn(cgroup); len(got) > 0 {
		t.Errorf("in an empty one: %q", got)
	}
	below := filepath.Join(cgroup, "nodes.partition", "a")
	if err := os.MkdirAll(below, 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(below, "cgroup.procs"), fmt.Appendf(nil, "%d\n", os.Getpid()), 0o600); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%s (process %d)", strings.TrimSpace(string(self)), os.Getpid())
	if got := programsIn(cgroup); !slices.Equal(got, []string{want}) {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := ScopeEnds(t.Context(), ""); err != nil {
		t.Errorf("without systemd: %v", err)
	}
}
