package addon

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8slab/lab/labtest"
	"k8slab/lab/node"
	"k8slab/lab/session"
)

func TestImagesOf(t *testing.T) {
	got := ImagesOf([]Addon{{Images: []string{"b", "a"}}, {}, {Images: []string{"a", "c"}}})
	if !slices.Equal(got, []string{"b", "a", "c"}) {
		t.Errorf("got %q", got)
	}
}

func TestMissingImages(t *testing.T) {
	refs := []string{"k8slab/prometheus:lab", "k8slab/git:lab"}
	tests := []struct {
		name, list string
		want       []string
	}{
		{"empty store", "", refs},
		{"all", "docker.io/k8slab/git:lab\ndocker.io/k8slab/prometheus:lab\nregistry.k8s.io/pause:3.10.2\n", []string{}},
		{"one", "docker.io/k8slab/git:lab\n", refs[:1]},
		{"short names", "k8slab/git:lab\nk8slab/prometheus:lab\n", []string{}},
		{"others that look like it", "docker.io/k8slab/git:lab2\nmirror.example/k8slab/git:lab\nsha256:0123\ndocker.io/k8slab/prometheus\n", refs},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			has := map[string]string{}
			for _, name := range strings.Fields(tt.list) {
				has[name] = "sha256:0123"
			}
			if got := missingImages(refs, has); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if refs[0] != "k8slab/prometheus:lab" {
		t.Error("asking changed the list")
	}
}

// Without add-ons nothing is asked: there is no node and no API server here that could answer.
func TestNoAddonsAskNothing(t *testing.T) {
	s := labtest.Session(t, labtest.Three)
	addons, err := Wanted(s)
	if err != nil || len(addons) > 0 {
		t.Fatalf("got %v, %v", addons, err)
	}
	if err := Install(context.Background(), s, nil, addons); err != nil {
		t.Error(err)
	}
	if err := ImportImages(context.Background(), s, s.Cluster.Members(), addons); err != nil {
		t.Error(err)
	}
	if err := BuildImages(context.Background(), s); err != nil {
		t.Error(err)
	}
}

// containerdOf is a node's containerd, which takes archives.
type containerdOf struct {
	session.Node
	images string
	took   []string
	err    error
}

func (c *containerdOf) Read(context.Context, ...string) (string, error) { return c.images, nil }

func (c *containerdOf) Run(_ context.Context, cmd node.Command) error {
	text, err := io.ReadAll(cmd.Stdin)
	c.took = append(c.took, string(text))
	return errors.Join(err, c.err)
}

// Each archive goes to the node, and what does not arrive is named.
func TestImportArchives(t *testing.T) {
	s := labtest.Session(t, labtest.Small)
	on := &containerdOf{}
	s.Nodes["w1"] = on
	dir := t.TempDir()
	archives := map[string]string{"k8slab/a:lab": filepath.Join(dir, "a.tar"), "k8slab/b:lab": filepath.Join(dir, "b.tar")}
	for ref, file := range archives {
		if err := os.WriteFile(file, []byte("archive of "+ref), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	step := s.Events.Start("w1", "images", 0)
	if err := importArchives(t.Context(), s, "w1", []string{"k8slab/b:lab", "k8slab/a:lab"}, archives, nil, step); err != nil ||
		!slices.Equal(on.took, []string{"archive of k8slab/b:lab", "archive of k8slab/a:lab"}) {
		t.Errorf("%v, took %q", err, on.took)
	}
	on.err = errors.New("no space left on device")
	err := importArchives(t.Context(), s, "w1", []string{"k8slab/a:lab"}, archives, nil, step)
	if err == nil || !strings.Contains(err.Error(), "import k8slab/a:lab: no space left") || !strings.Contains(err.Error(), "labctl logs w1 --unit containerd") {
		t.Errorf("got %v", err)
	}
	if err := importArchives(t.Context(), s, "w1", []string{"k8slab/c:lab"}, archives, nil, step); err == nil {
		t.Error("imported what is not there")
	}
}

// What every node has is not built; what one lacks needs labnode.
func TestImportOfWhatIsThere(t *testing.T) {
	s := labtest.Session(t, labtest.Small)
	addons, err := Resolve([]string{"metrics-server"})
	if err != nil {
		t.Fatal(err)
	}
	full, empty := &containerdOf{images: "docker.io/k8slab/metrics-server:lab application/vnd.oci.image.manifest.v1+json sha256:0123 9 MiB linux/amd64 -\n"}, &containerdOf{}
	s.Nodes["cp1"], s.Nodes["w1"] = full, full
	if err := ImportImages(t.Context(), s, s.Cluster.Members(), addons); err != nil || len(full.took) > 0 {
		t.Errorf("%v, took %q", err, full.took)
	}
	s.Nodes["w1"] = empty
	if err := ImportImages(t.Context(), s, s.Cluster.Members(), addons); err == nil || !strings.Contains(err.Error(), "no labnode is given") || len(empty.took) > 0 {
		t.Errorf("%v, took %q", err, empty.took)
	}
}

// A secret's manifest reaches sops by a pipe alone: a command line is everybody's to read.
func TestEncryptIsAskedByAPipe(t *testing.T) {
	dir := t.TempDir()
	sops := filepath.Join(dir, "sops")
	script := "#!/bin/sh\npwd > " + dir + "/dir\nprintf '%s ' \"$@\" > " + dir + "/argv\ncat > " + dir + "/stdin\necho encrypted\n"
	if err := os.WriteFile(sops, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := encrypt(t.Context(), sops, "age1recipient", labSecret("plain-token"))
	if err != nil || string(out) != "encrypted\n" {
		t.Errorf("%q, %v", out, err)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if argv := read("argv"); strings.Contains(argv, "plain-token") || !strings.Contains(argv, "--age age1recipient") || read("dir") != "/\n" {
		t.Errorf("ran %q in %s", argv, read("dir"))
	}
	if !strings.Contains(read("stdin"), "token: plain-token") {
		t.Errorf("it read %q", read("stdin"))
	}
	if err := os.WriteFile(sops, []byte("#!/bin/sh\ncat > /dev/null\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := encrypt(t.Context(), sops, "age1recipient", labSecret("plain-token")); err == nil || strings.Contains(err.Error(), "plain-token") {
		t.Errorf("got %v", err)
	}
}
