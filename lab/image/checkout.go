package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"k8slab/lab/event"
)

// checkout is a source that compiles programs in a directory with their source code. It writes nothing there.
type checkout struct {
	key      string // of cluster.yaml that has the directory
	dir      string
	code     code
	programs []string // those of code that are wanted
	is       worktree
	version  string // that the programs tell of themselves
	base     string // the release that the code began from
	compiler string // the release of Go that its go.mod asks for
}

// code says how to compile the programs in a checkout of a project.
type code struct {
	name     string
	packages map[string]string // program → its main package: a directory, after ! one that is a module of its own
	tags     string
	stamps   func(version string, is worktree) map[string]string // for the linker: variable → value
}

// projects are the checkouts that are known, by the module in their go.mod.
var projects = map[string]code{
	kubernetesModule: {name: kubernetesName, packages: kubernetesPackages(), stamps: kubernetesStamps},
	"go.etcd.io/etcd/v3": {name: "etcd", packages: map[string]string{"etcd": "!server", "etcdctl": "!etcdctl", "etcdutl": "!etcdutl"},
		stamps: func(_ string, is worktree) map[string]string {
			return map[string]string{"go.etcd.io/etcd/api/v3/version.GitSHA": is.commit}
		}},
	containerdModule: {name: containerdName, tags: containerdTags,
		packages: map[string]string{"containerd": "cmd/containerd", "containerd-shim-runc-v2": "cmd/containerd-shim-runc-v2", "ctr": "cmd/ctr"},
		stamps: func(version string, is worktree) map[string]string {
			return map[string]string{containerdModule + "/version.Version": version, containerdModule + "/version.Revision": is.commit}
		}},
	corednsModule: {name: "coredns", packages: map[string]string{"coredns": "."},
		stamps: func(_ string, is worktree) map[string]string {
			return map[string]string{corednsModule + "/coremain.GitCommit": is.commit}
		}},
}

func kubernetesPackages() map[string]string {
	packages := map[string]string{}
	for _, p := range slices.Concat(hostPrograms, imagePrograms) {
		packages[p] = "cmd/" + p
	}
	return packages
}

// kubernetesStamps are those of upstream's build but its date, with which no two builds would be the same.
func kubernetesStamps(version string, is worktree) map[string]string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	minor := parts[1]
	if semver.Prerelease(version) != "" {
		minor += "+"
	}
	stamps := map[string]string{}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for key, value := range map[string]string{"gitVersion": version, "gitMajor": parts[0], "gitMinor": minor, "gitTreeState": cmp.Or(is.state(), "clean"), "gitCommit": is.commit} {
			if value != "" {
				stamps[pkg+"."+key] = value
			}
		}
	}
	return stamps
}

// IsCheckout tells whether the directory is a git repository with the code of programs that can be compiled.
func IsCheckout(dir string) bool {
	module, _ := projectIn(dir)
	_, known := projects[module]
	return known && exists(filepath.Join(dir, ".git"))
}

// projectIn is the module that a checkout's go.mod has, and whether it is one.
func projectIn(dir string) (module string, is bool) {
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", false
	}
	return modfile.ModulePath(data), true
}

// openCheckout reads what the directory has now. version is the one that the cluster has, "" if that is to be the checkout's.
func openCheckout(ctx context.Context, key, dir, name string, programs []string, version string, step *event.Step) (*checkout, error) {
	module, _ := projectIn(dir)
	c := &checkout{key: key, dir: dir, code: projects[module], programs: programs}
	if c.code.name != name {
		return nil, fmt.Errorf("%s: %s is a checkout of %s, not of %s", key, dir, module, name)
	}
	step.Progress("reading %s", dir)
	var err error
	if c.is, err = readWorktree(ctx, dir); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	c.version, c.base = cmp.Or(c.is.version, version), cmp.Or(c.is.tag, version)
	switch {
	case name != kubernetesName:
		c.version = cmp.Or(c.version, "unknown")
	case c.version == "":
		return nil, fmt.Errorf("%s: %s does not tell its version: it is %s; write kubernetes.version, or fetch the tags: git fetch --tags", key, dir, c.is)
	case !semver.IsValid(c.version):
		return nil, fmt.Errorf("%s: %s is %s, which is no version", key, dir, c.version)
	}
	if c.compiler, err = c.goCommand(ctx, dir, nil, nil, "env", "GOVERSION"); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return c, nil
}

func (c *checkout) origin() origin {
	return origin{From: "checkout " + c.is.repo, Version: c.version, Commit: c.is.commit, State: c.is.state()}
}

// inputs do not have the directory's path: the same files are not compiled again elsewhere.
func (c *checkout) inputs() []string {
	in := []string{"checkout 1", strings.TrimSpace(c.compiler), runtime.GOARCH, c.code.name, c.is.content, c.code.tags, c.base}
	in = append(in, c.programs...)
	return append(in, c.ldflags())
}

func (c *checkout) ldflags() string {
	flags := []string{"-s", "-w"}
	stamps := c.code.stamps(c.version, c.is)
	for _, name := range slices.Sorted(maps.Keys(stamps)) {
		flags = append(flags, "-X", name+"="+stamps[name])
	}
	return strings.Join(flags, " ")
}

// build fails if somebody changes the code meanwhile: then the result is of neither content.
func (c *checkout) build(ctx context.Context, dir string, step *event.Step) error {
	work, err := os.MkdirTemp(dir, "work-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	flags, err := c.modFlags(ctx, work)
	if err != nil {
		return err
	}
	for _, in := range c.modules() {
		run := func(line func(string), args ...string) (string, error) {
			return c.goCommand(ctx, filepath.Join(c.dir, in.dir), flags, line, args...)
		}
		if err := compile(run, dir, c.code.tags, c.ldflags(), step, in.packages...); err != nil {
			return err
		}
		for from, to := range in.rename {
			if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
				return err
			}
		}
	}
	now, err := readWorktree(ctx, c.dir)
	if err == nil && now.content != c.is.content {
		err = fmt.Errorf("%s changed while it was being compiled; run the command again", c.dir)
	}
	return err
}

// compiled are packages of one module of a checkout.
type compiled struct {
	dir      string // of the module
	packages []string
	rename   map[string]string // what go build calls a program → its name
}

func (c *checkout) modules() (all []compiled) {
	main := compiled{dir: "."}
	for _, p := range c.programs {
		pkg := c.code.packages[p]
		if module, own := strings.CutPrefix(pkg, "!"); own {
			of := compiled{dir: module, packages: []string{"."}}
			if module != p {
				of.rename = map[string]string{module: p}
			}
			all = append(all, of)
			continue
		}
		main.packages = append(main.packages, "./"+pkg)
	}
	if len(main.packages) > 0 {
		all = append(all, main)
	}
	return all
}

// stagedIn is the directory of a checkout of Kubernetes with modules that are published apart. A copy from Go's module cache lacks it.
const stagedIn = "staging/src/k8s.io/api"

// modFlags are for the go command. A copy of Kubernetes' module has a go.mod that leads to directories which it does not have: then work gets
// one that leads to the published modules.
func (c *checkout) modFlags(ctx context.Context, work string) ([]string, error) {
	if c.code.name != kubernetesName || exists(filepath.Join(c.dir, stagedIn)) {
		return c.workspace(), nil
	}
	data, err := os.ReadFile(filepath.Join(c.dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	text, err := withoutStaging(data, c.base)
	if err != nil {
		return nil, err
	}
	sums, err := os.ReadFile(filepath.Join(c.dir, "go.sum"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	pinned := kubernetes(c.base)
	if pinned.sum() == nil {
		if err := pinned.verifiable(ctx, work); err != nil {
			return nil, err
		}
	}
	err = errors.Join(os.WriteFile(filepath.Join(work, "go.mod"), text, 0o644),
		os.WriteFile(filepath.Join(work, "go.sum"), slices.Concat(sums, pinned.sum()), 0o644))
	return []string{"GOWORK=off", "GOFLAGS=" + strictFlags + " -mod=mod -modfile=" + filepath.Join(work, "go.mod")}, err
}

// workspace has the go command use the checkout's own workspace or none, never one of a directory above.
func (c *checkout) workspace() []string {
	own := filepath.Join(c.dir, "go.work")
	if !exists(own) {
		own = "off"
	}
	return []string{"GOWORK=" + own}
}

// withoutStaging is Kubernetes' go.mod with published modules in place of the directories of its source tree.
func withoutStaging(goMod []byte, version string) ([]byte, error) {
	file, err := modfile.Parse("go.mod", goMod, nil)
	if err != nil {
		return nil, err
	}
	published, err := staging(goMod, version)
	if err != nil {
		return nil, err
	}
	replaced, err := modfile.Parse("go.mod", []byte("module x\n"+published), nil)
	if err != nil {
		return nil, err
	}
	for _, r := range replaced.Replace {
		if err := file.AddReplace(r.Old.Path, "", r.New.Path, r.New.Version); err != nil {
			return nil, err
		}
	}
	return file.Format()
}

// goCommand runs the go command in a directory of the checkout, without any flag or workspace of the user's own.
func (c *checkout) goCommand(ctx context.Context, dir string, env []string, line func(string), args ...string) (string, error) {
	env = append([]string{"GOFLAGS=" + strictFlags, "GOWORK=off"}, env...)
	return goCommand(ctx, dir, env, line, args...)
}
