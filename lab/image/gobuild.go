package image

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"k8slab/lab/command"
	"k8slab/lab/event"
)

// inputs are everything that decides what a build of the component gives.
func (c component) inputs() []string {
	in := []string{"component 2", runtime.Version(), runtime.GOARCH, c.name, c.ldflags, c.tags, fmt.Sprint(c.rename), string(c.sum())}
	for _, m := range c.modules {
		in = append(in, m.path+"@"+m.version)
	}
	for i, list := range [][]string{c.tools, c.main, c.without, c.replace} {
		in = append(in, fmt.Sprint(i))
		in = append(in, list...)
	}
	return in
}

func (c component) origin() origin {
	return origin{From: "Go module " + c.modules[0].path + "@" + c.version(), Version: c.version()}
}

// build puts the component's programs into dir.
func (c component) build(ctx context.Context, dir string, step *event.Step) error {
	work, err := os.MkdirTemp(dir, "work-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := c.writeModule(ctx, work); err != nil {
		return err
	}
	if c.main != nil {
		if err := c.writeMain(ctx, work); err != nil {
			return err
		}
	}
	what := "tool"
	if c.main != nil {
		what = "."
	}
	run := func(line func(string), args ...string) (string, error) { return c.goCommand(ctx, work, line, args...) }
	if err := compile(run, dir, c.tags, strings.TrimSpace("-s -w "+c.ldflags), step, what); err != nil {
		return err
	}
	for from, to := range c.rename {
		if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			return err
		}
	}
	return nil
}

// compile puts the programs of the packages into dir. Nobody debugs them: what only a debugger reads is not written.
func compile(run func(line func(string), args ...string) (string, error), dir, tags, ldflags string, step *event.Step, packages ...string) error {
	command := func(args ...string) []string {
		return append(append(args, "-tags", tags, "-gcflags", "all=-dwarf=false", "-ldflags", ldflags), packages...)
	}
	stale, err := run(progress(step, 0), command("list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}")...)
	if err != nil {
		return err
	}
	_, err = run(progress(step, len(strings.Fields(stale))), command("build", "-v", "-o", dir+"/")...)
	return err
}

// progress reads what the go command says. It compiles so many packages, and then links.
func progress(step *event.Step, packages int) func(line string) {
	compiled := 0
	return func(line string) {
		module, downloads := strings.CutPrefix(line, "go: downloading ")
		switch {
		case downloads:
			step.Progress("downloading %s", module)
		case packages == 0 || line == "" || strings.Contains(line, " "): // no package, as -v names them
		case compiled+1 < packages:
			compiled++
			step.Progress("compiling, package %d of %d", compiled, packages)
		default:
			step.Progress("linking")
		}
	}
}

// writeModule writes the go.mod that builds the tools from their modules, and its go.sum where the version is pinned.
func (c component) writeModule(ctx context.Context, dir string) error {
	var mod bytes.Buffer
	fmt.Fprintf(&mod, "module k8slab/image/%s\n\ngo %s\n", c.name, strings.TrimPrefix(runtime.Version(), "go"))
	for _, t := range c.tools {
		fmt.Fprintf(&mod, "tool %s\n", t)
	}
	for _, m := range c.modules {
		fmt.Fprintf(&mod, "require %s %s\n", m.path, m.version)
	}
	for _, r := range c.replace {
		fmt.Fprintf(&mod, "replace %s\n", r)
	}
	path := filepath.Join(dir, "go.mod")
	if err := os.WriteFile(path, mod.Bytes(), 0o644); err != nil {
		return err
	}
	if c.sum() == nil {
		if err := c.verifiable(ctx, dir); err != nil {
			return err
		}
	} else if err := os.WriteFile(filepath.Join(dir, "go.sum"), c.sum(), 0o644); err != nil {
		return err
	}
	if c.modules[0].path != kubernetesModule {
		return nil
	}
	staging, err := c.stagingReplaces(ctx, dir)
	if err != nil {
		return err
	}
	mod.WriteString(staging)
	return os.WriteFile(path, mod.Bytes(), 0o644)
}

// verifiable refuses modules that nobody vouches for.
func (c component) verifiable(ctx context.Context, dir string) error {
	out, err := c.goCommand(ctx, dir, nil, "env", "GOSUMDB")
	if err == nil && strings.TrimSpace(out) == "off" {
		err = fmt.Errorf("%s %s has no pinned checksums here and GOSUMDB is off: its modules could not be verified; unset GOSUMDB or use the default version", c.name, c.version())
	}
	return err
}

// stagingReplaces gives the published version of each module that Kubernetes' own go.mod replaces by a directory of its source tree:
// v1.36.3 goes with v0.36.3 (kubernetes/staging/README.md).
func (c component) stagingReplaces(ctx context.Context, dir string) (string, error) {
	out, err := c.goCommand(ctx, dir, nil, "mod", "download", "-json", kubernetesModule+"@"+c.version())
	if err != nil {
		return "", fmt.Errorf("the module registry has no Kubernetes %s: %w", c.version(), err)
	}
	var info struct{ GoMod string }
	if err := json.Unmarshal([]byte(out), &info); err != nil {
		return "", fmt.Errorf("go mod download: %w", err)
	}
	data, err := os.ReadFile(info.GoMod)
	if err != nil {
		return "", err
	}
	return staging(data, c.version())
}

func staging(goMod []byte, version string) (string, error) {
	file, err := modfile.Parse("go.mod", goMod, nil)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, r := range file.Replace {
		if strings.HasPrefix(r.New.Path, "./staging/") {
			fmt.Fprintf(&out, "replace %s => %s v0%s\n", r.Old.Path, r.Old.Path, strings.TrimPrefix(version, "v1"))
		}
	}
	if out.Len() == 0 {
		return "", errors.New("kubernetes' go.mod names no staging modules: its layout has changed")
	}
	return out.String(), nil
}

// strictFlags make results that do not depend on where and when they are made.
const strictFlags = "-trimpath -buildvcs=false"

// goCommand runs the go command in the component's module, without any flag or workspace of the user's own.
func (c component) goCommand(ctx context.Context, dir string, line func(string), args ...string) (string, error) {
	return goCommand(ctx, dir, []string{"GOFLAGS=-mod=mod " + strictFlags, "GOWORK=off"}, line, args...)
}

// goCommand runs the go command. A module may ask for a newer Go than the computer's, as labctl's own does: then it fetches that one.
func goCommand(ctx context.Context, dir string, env []string, line func(string), args ...string) (string, error) {
	return command.Command{
		Argv: append([]string{"go"}, args...),
		Dir:  dir,
		Env:  append([]string{"CGO_ENABLED=0", "GOTOOLCHAIN=auto"}, env...),
		Line: line,
	}.Run(ctx)
}

func sortedFields(s string) string {
	// "-X a=b" pairs: the map that made them has no order, and the flags are part of the content hash.
	fields := strings.Fields(s)
	var pairs []string
	for i := 0; i+1 < len(fields); i += 2 {
		pairs = append(pairs, fields[i]+" "+fields[i+1])
	}
	slices.Sort(pairs)
	return strings.Join(pairs, " ")
}
