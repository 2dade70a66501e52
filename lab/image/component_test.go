package image

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"k8slab/config"
	"k8slab/lab/event"
)

// defaults are the components of a default image, in the versions that its kubeadm names.
func defaults() []component {
	return append([]component{kubernetes("v1.36.3"), etcd("v3.6.8"), coredns("v1.14.2")}, fixed()...)
}

// pinned are the releases of Kubernetes whose content is fixed here, with the etcd and the CoreDNS that each kubeadm names.
var pinned = [][3]string{
	{"v1.34.4", "v3.6.5", "v1.12.1"}, {"v1.35.4", "v3.6.6", "v1.13.1"}, {"v1.36.3", "v3.6.8", "v1.14.2"}, {"v1.37.2", "v3.7.0", "v1.14.6"},
}

func TestComponentsArePinned(t *testing.T) {
	all := append(fixed(), addonComponents()...)
	all = append(all, etcd("v3.6.16")) // on the way to 3.7: lab/upgrade
	for i, release := range pinned {
		if len(config.Pinned) != len(pinned) || config.Pinned[i] != release[0] {
			t.Errorf("config.Pinned are %s", config.Pinned)
		}
		all = append(all, kubernetes(release[0]), etcd(release[1]), coredns(release[2]))
	}
	for _, c := range all {
		t.Run(c.name+" "+c.version(), func(t *testing.T) {
			sum := string(c.sum())
			for _, m := range c.modules {
				if !strings.Contains(sum, m.path+" "+m.version+" h1:") {
					t.Errorf("the checksum file has no %s %s", m.path, m.version)
				}
				if of := slices.Concat(c.tools, c.without)[0]; !strings.HasPrefix(of, c.modules[0].path) {
					t.Errorf("%s is not of %s", of, c.modules[0].path)
				}
			}
		})
	}
	// The other way round: a file that no component asks for pins nothing.
	files, err := sums.ReadDir("sums")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".sum")
		if !slices.ContainsFunc(all, func(c component) bool { return c.name+"@"+c.version() == name }) {
			t.Errorf("sums/%s is of no component", f.Name())
		}
	}
	if etcd("v3.6.7").sum() != nil {
		t.Error("another version has the pinned one's checksums")
	}
}

func TestInputs(t *testing.T) {
	base := func() component {
		return component{
			name: "n", modules: []module{{"m", "v1.0.0"}}, tools: []string{"m/cmd"}, ldflags: "-X a=b", replace: []string{"x => y v1.0.0"},
		}
	}
	want := hash(base().inputs()...)
	if got := hash(base().inputs()...); got != want {
		t.Fatalf("the same component: %s and %s", got, want)
	}
	for range 50 { // its flags come out of a map
		if got := hash(kubernetes("v1.36.3").inputs()...); got != hash(kubernetes("v1.36.3").inputs()...) {
			t.Fatal("the same version gives different inputs")
		}
	}
	tests := []struct {
		name   string
		change func(*component)
	}{
		{"name", func(c *component) { c.name = "other" }},
		{"version", func(c *component) { c.modules[0].version = "v1.0.1" }},
		{"path", func(c *component) { c.modules[0].path = "other" }},
		{"more modules", func(c *component) { c.modules = append(c.modules, module{"m2", "v1.0.0"}) }},
		{"tools", func(c *component) { c.tools = []string{"m/other"} }},
		{"ldflags", func(c *component) { c.ldflags = "-X a=c" }},
		{"replace", func(c *component) { c.replace = nil }},
		{"tags", func(c *component) { c.tags = "t" }},
		{"main", func(c *component) { c.main, c.tools = c.tools, nil }},
		{"without", func(c *component) { c.without = []string{"m/cloud"} }},
		{"rename", func(c *component) { c.rename = map[string]string{"cmd": "other"} }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := base()
			tt.change(&c)
			if hash(c.inputs()...) == want {
				t.Error("its change would not be built")
			}
		})
	}
}

func TestHash(t *testing.T) {
	tests := []struct {
		name string
		a, b []string
	}{
		{"order", []string{"a", "b"}, []string{"b", "a"}},
		{"where one ends", []string{"ab", "c"}, []string{"a", "bc"}},
		{"empty", []string{"a"}, []string{"a", ""}},
		{"newline", []string{"a\n1 b"}, []string{"a", "b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if hash(tt.a...) == hash(tt.b...) {
				t.Errorf("%q and %q have one hash", tt.a, tt.b)
			}
		})
	}
}

func TestKubernetesKnowsItsVersion(t *testing.T) {
	flags := kubernetes("v1.35.12").ldflags
	for _, want := range []string{
		"-X k8s.io/component-base/version.gitVersion=v1.35.12", "-X k8s.io/component-base/version.gitMajor=1",
		"-X k8s.io/component-base/version.gitMinor=35", "-X k8s.io/client-go/pkg/version.gitVersion=v1.35.12",
	} {
		if !strings.Contains(flags+" ", want+" ") {
			t.Errorf("%q lacks %q", flags, want)
		}
	}
}

func TestModuleVersion(t *testing.T) {
	images := []string{
		"registry.k8s.io/kube-apiserver:v1.36.3", "registry.k8s.io/coredns/coredns:v1.14.2", "registry.k8s.io/pause:3.10.2", "registry.k8s.io/etcd:3.6.8-0",
	}
	tests := []struct{ program, want string }{{"etcd", "v3.6.8"}, {"coredns", "v1.14.2"}, {"pause", "v3.10.2"}, {"kube-apiserver", "v1.36.3"}}
	for _, tt := range tests {
		t.Run(tt.program, func(t *testing.T) {
			if _, got, err := imageAsked(images, tt.program); err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
	if _, got, err := imageAsked(images, "kube-proxy"); err == nil || !strings.Contains(err.Error(), "kube-proxy") {
		t.Errorf("missing: %q, %v", got, err)
	}
}

func TestStaging(t *testing.T) {
	const goMod = `module k8s.io/kubernetes
go 1.26.0
require k8s.io/api v0.0.0
replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/kubelet => ./staging/src/k8s.io/kubelet
	example.com/other => example.com/fork v1.2.3
	example.com/local => ./hack/local
)
`
	const want = "replace k8s.io/api => k8s.io/api v0.36.3\nreplace k8s.io/kubelet => k8s.io/kubelet v0.36.3\n"
	if got, err := staging([]byte(goMod), "v1.36.3"); err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for name, text := range map[string]string{"no staging": "module k8s.io/kubernetes\n", "broken": "module (\n"} {
		if got, err := staging([]byte(text), "v1.36.3"); err == nil {
			t.Errorf("%s: %q and no error", name, got)
		}
	}
}

func TestWriteModule(t *testing.T) {
	for _, c := range append(defaults(), addonComponents()...) {
		if c.name == "kubernetes" { // asks the module registry for its own go.mod
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := c.writeModule(context.Background(), dir); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
			if err != nil {
				t.Fatal(err)
			}
			mod, err := modfile.Parse("go.mod", data, nil)
			if err != nil {
				t.Fatal(err)
			}
			if mod.Go.Version != strings.TrimPrefix(runtime.Version(), "go") || len(mod.Tool) != len(c.tools) ||
				len(mod.Require) != len(c.modules) || len(mod.Replace) != len(c.replace) {
				t.Errorf("got\n%s", data)
			}
			sum, err := os.ReadFile(filepath.Join(dir, "go.sum"))
			if err != nil || string(sum) != string(c.sum()) {
				t.Errorf("go.sum is not the pinned one: %v", err)
			}
		})
	}
}

// Without pinned checksums and without the checksum database nothing would say whether a module is the right one.
func TestUnpinnedNeedsTheChecksumDatabase(t *testing.T) {
	t.Setenv("GOSUMDB", "off")
	err := etcd("v3.6.1").writeModule(context.Background(), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "etcd v3.6.1 has no pinned checksums") {
		t.Errorf("got %v", err)
	}
}

// Every program that the node or a container image gets is one that some component builds.
func TestProgramsAreBuilt(t *testing.T) {
	built := map[string]bool{}
	for _, c := range defaults() {
		programs := c.tools
		if c.main != nil {
			programs = []string{c.modules[0].path}
		}
		for _, tool := range programs {
			name := filepath.Base(tool)
			if name == "v3" { // a major version's directory
				name = filepath.Base(filepath.Dir(tool))
			}
			if to := c.rename[name]; to != "" {
				name = to
			}
			built[c.name+"/"+name] = true
		}
	}
	bin := func(component, program string) string {
		if !built[component+"/"+program] {
			t.Errorf("no component builds %s/%s", component, program)
		}
		return program
	}
	for _, components := range nodePrograms {
		for component, programs := range components {
			for _, p := range programs {
				bin(component, p)
			}
		}
	}
	if _, err := containerImages(kubeadmImages, bin, trees{"/net", "/busybox"}, "/labnode", "/pause"); err != nil {
		t.Error(err)
	}
	bin("containerd", "ctr")
}

// Debian's go is older than the one that built labctl: it must fetch that, as it did when labctl was built.
func TestOlderGoCommand(t *testing.T) {
	dir := t.TempDir()
	old := "#!/bin/sh\n[ \"$GOTOOLCHAIN\" != local ] || { echo 'go.mod requires go >= 1.26 (running go 1.24.4; GOTOOLCHAIN=local)' >&2; exit 1; }\n"
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(old), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	if _, err := (component{}).goCommand(t.Context(), dir, nil, "build"); err != nil {
		t.Error(err)
	}
}

type said []string

func (s *said) Emit(e event.Event) { *s = append(*s, e.Detail) }

func TestProgress(t *testing.T) {
	said := &said{}
	step := event.NewStream(said).Start("", "image: x", 0)
	defer func() { _ = step.End(nil) }()
	line := progress(step, 0)
	line("go: downloading example.com/m v1.0.0")
	line("example.com/m/stale") // of go list
	line = progress(step, 3)
	for _, l := range []string{"internal/cpu", "", "# example.com/m: a warning", "example.com/m", "example.com/m/cmd"} {
		line(l)
	}
	want := []string{"", "downloading example.com/m v1.0.0", "compiling, package 1 of 3", "compiling, package 2 of 3", "linking"}
	if !slices.Equal(*said, want) {
		t.Errorf("got %q, want %q", *said, want)
	}
}
