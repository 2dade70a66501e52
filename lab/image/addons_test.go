package image

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/event"
)

// addonComponents are the components of the add-ons' images, and sops.
func addonComponents() []component {
	all := []component{sops}
	for _, made := range addonImages() {
		if made.component.name != "" {
			all = append(all, made.component)
		}
	}
	slices.SortFunc(all, func(a, b component) int { return strings.Compare(a.name, b.name) })
	return all
}

func TestAddonImages(t *testing.T) {
	for ref, made := range addonImages() {
		t.Run(ref, func(t *testing.T) {
			if !strings.HasPrefix(ref, "k8slab/") || !strings.HasSuffix(ref, ":lab") || addonName(ref) == "" {
				t.Error("its name is not k8slab/NAME:lab")
			}
			program := made.entrypoint[0]
			if !filepath.IsAbs(program) {
				t.Errorf("its program %q has no absolute path", program)
			}
			built := made.component.name != "" && slices.ContainsFunc(made.component.tools, func(tool string) bool {
				return filepath.Base(tool) == filepath.Base(program)
			})
			built = built || made.component.main != nil && "/"+made.component.name == program
			if !built && made.tree == nil {
				t.Errorf("nothing gives it %s", program)
			}
		})
	}
}

// fakeComponent is in the cache already, so that nothing is compiled.
func fakeComponent(t *testing.T, c cache) component {
	t.Helper()
	made := component{name: "tool", modules: []module{{"example.com/tool", "v1.0.0"}}, tools: []string{"example.com/tool"}}
	dir := c.path("tool-v1.0.0", made.inputs())
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tool"), []byte("tool"), 0o755); err != nil {
		t.Fatal(err)
	}
	return made
}

func TestAddonArchive(t *testing.T) {
	const ref = "k8slab/tool:lab"
	c := cache{dir: t.TempDir(), events: event.NewStream()}
	made := addonImage{component: fakeComponent(t, c), entrypoint: []string{"/tool", "serve"}}
	path, err := c.addonArchive(context.Background(), ref, made, config.Trixie, "")
	if err != nil {
		t.Fatal(err)
	}
	img, _ := readBack(t, path, ref)
	if got, want := contents(t, img), []string{"tmp/ 1777", "tool 755 tool"}; !slices.Equal(got, want) {
		t.Errorf("it has %q, want %q", got, want)
	}
	file, err := img.ConfigFile()
	if err != nil || !slices.Equal(file.Config.Entrypoint, made.entrypoint) {
		t.Errorf("entrypoint %q, %v", file.Config.Entrypoint, err)
	}
	if again, err := c.addonArchive(context.Background(), ref, made, config.Trixie, ""); again != path || err != nil {
		t.Errorf("the second time %s, %v, want %s", again, err, path)
	}
	made.entrypoint = []string{"/tool"}
	if other, err := c.addonArchive(context.Background(), ref, made, config.Trixie, ""); other == path || err != nil {
		t.Errorf("another entrypoint gives %s, %v", other, err)
	}
}

// An image with labnode is another one when labnode is.
func TestAddonArchiveOfLabnode(t *testing.T) {
	const ref = "k8slab/serve:lab"
	c := cache{dir: t.TempDir(), events: event.NewStream()}
	labnode := filepath.Join(t.TempDir(), "labnode")
	packages := &tree{name: "served", packages: []string{"served"}}
	tree := c.path(packages.name, debianInputs(config.Trixie, packages.packages))
	if err := os.MkdirAll(filepath.Join(tree, "usr"), 0o755); err != nil {
		t.Fatal(err)
	}
	made := addonImage{tree: packages, labnode: true, entrypoint: []string{"/labnode", "serve"}}
	if _, err := c.addonArchive(context.Background(), ref, made, config.Trixie, labnode); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "labnode, a part of ") {
		t.Errorf("without labnode: %v", err)
	}
	var paths []string
	for _, text := range []string{"one", "two"} {
		if err := os.WriteFile(labnode, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		path, err := c.addonArchive(context.Background(), ref, made, config.Trixie, labnode)
		if err != nil {
			t.Fatal(err)
		}
		img, _ := readBack(t, path, ref)
		if got := contents(t, img); !slices.Contains(got, "labnode 755 "+text) || !slices.Contains(got, "usr 755") {
			t.Errorf("it has %q", got)
		}
		paths = append(paths, path)
	}
	if paths[0] == paths[1] {
		t.Error("both labnodes give one archive")
	}
}

func TestFinishBusybox(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := finishBusybox(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sh", "mkdir", "rm"} {
		if to, err := os.Readlink(filepath.Join(dir, "bin", name)); err != nil || to != "busybox" {
			t.Errorf("%s is %q, %v", name, to, err)
		}
	}
}
