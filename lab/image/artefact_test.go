package image

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sys/unix"

	"k8slab/lab/event"
	"k8slab/lab/inventory"
)

// aNodeImage is a small one in a cache of the test's own.
func aNodeImage(t *testing.T) Image {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("files of several owners need root")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir()) // has no credentials
	img := At(filepath.Join(t.TempDir(), "node-v1.36.3-abc"))
	for file, text := range map[string]string{
		"usr/bin/labnode": "labnode of who made it", "usr/bin/kubelet": "kubelet", "usr/bin/ping": "ping", "etc/shadow": "root:*:\n",
		"usr/share/k8slab/containerd/blobs/abc": strings.Repeat("blob", 1<<16),
	} {
		path := filepath.Join(img.Root(), file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, argv := range [][]string{
		{"ln", "-s", "usr/bin", "bin"}, {"ln", "usr/bin/kubelet", "usr/bin/same"}, {"chown", "12:34", "etc/shadow"}, {"chmod", "0640", "etc/shadow"},
		{"chmod", "4755", "usr/bin/same"}, {"mkdir", "-m", "1777", "tmp"},
	} {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir = img.Root()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", argv, err, out)
		}
	}
	if err := unix.Setxattr(filepath.Join(img.Root(), "usr/bin/ping"), capability, []byte(netRaw), 0); err != nil {
		t.Fatal(err)
	}
	if err := writeInventory(img.Root(), []inventory.Image{{Name: "pause:1"}}); err != nil {
		t.Fatal(err)
	}
	return img
}

// capability is what a program may do whoever runs it: here send raw packets (capabilities(7)).
const (
	capability = "security.capability"
	netRaw     = "\x01\x00\x00\x02\x00\x20" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
)

// treeOf is all of a tree that a node image must keep.
func treeOf(t *testing.T, root string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", `find . -printf '%p %y %m %U %G %l %n\n' | sort; find . -type f | sort | xargs sha256sum`)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	value := make([]byte, 100)
	n, err := unix.Getxattr(filepath.Join(root, "usr/bin/ping"), capability, value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out) + fmt.Sprintf("ping: %x", value[:n])
}

func TestArtefactThroughARegistry(t *testing.T) {
	img := aNodeImage(t)
	dir, digest, err := img.Artefact(t.Context(), "v1.36.3", event.NewStream())
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]int{}
	store := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			asked[r.URL.Path]++
		}
		store.ServeHTTP(w, r)
	}))
	defer s.Close()
	host := strings.TrimPrefix(s.URL, "http://")
	if err := Push(t.Context(), dir, host+"/k8slab/node:v1", event.NewStream().Start("", "push", 0)); err != nil {
		t.Fatal(err)
	}
	byTag, err := Pull(t.Context(), host+"/k8slab/node:v1", event.NewStream())
	if err != nil || byTag.Digest != digest.String() || byTag.Kubernetes != "v1.36.3" {
		t.Fatalf("%+v, %v", byTag, err)
	}
	if got, want := treeOf(t, filepath.Join(byTag.Dir, "root")), treeOf(t, img.Root()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	before := maps.Clone(asked)
	again, err := Pull(t.Context(), host+"/k8slab/node@"+digest.String(), event.NewStream())
	if err != nil || again != byTag || !maps.Equal(asked, before) {
		t.Errorf("%+v, %v, asked %v", again, err, asked)
	}

	other, err := random.Image(10, 1)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.NewTag(host + "/other:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, other); err != nil {
		t.Fatal(err)
	}
	if _, err := Pull(t.Context(), ref.String(), event.NewStream()); err == nil || !strings.Contains(err.Error(), "not one of nodes") {
		t.Errorf("another image: %v", err)
	}
	if _, err := Pull(t.Context(), host+"/none:v1", event.NewStream()); err == nil || !strings.Contains(err.Error(), host+"/none:v1") {
		t.Errorf("no image: %v", err)
	}
	if err := Push(t.Context(), dir, host+"/node@"+digest.String(), event.NewStream().Start("", "push", 0)); err == nil {
		t.Error("pushed to a digest")
	}
}

func TestArtefactThroughAFile(t *testing.T) {
	img := aNodeImage(t)
	dir, digest, err := img.Artefact(t.Context(), "v1.36.3", event.NewStream())
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := Export(dir, &file); err != nil {
		t.Fatal(err)
	}
	whole := file.Bytes()
	for _, bad := range [][]byte{whole[:len(whole)/2], []byte("no archive"), nil, damaged(whole)} {
		if f, err := Import(t.Context(), bytes.NewReader(bad), event.NewStream()); err == nil {
			t.Errorf("%d bytes gave %+v", len(bad), f)
		}
	}
	f, err := Import(t.Context(), &file, event.NewStream())
	if err != nil || f.Digest != digest.String() {
		t.Fatalf("%+v, %v", f, err)
	}
	if got, want := treeOf(t, filepath.Join(f.Dir, "root")), treeOf(t, img.Root()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	// Used as cluster.yaml names it, without any registry.
	labnode := filepath.Join(t.TempDir(), "labnode")
	if err := os.WriteFile(labnode, []byte("labnode of this labctl"), 0o755); err != nil {
		t.Fatal(err)
	}
	spec := Spec{KubernetesVersion: "v1.36.3", From: "localhost/node@" + f.Digest, Labnode: labnode}
	used, err := Build(t.Context(), spec, event.NewStream())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(used.Root(), "usr/bin/labnode")); err != nil || string(text) != "labnode of this labctl" {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := os.ReadFile(filepath.Join(f.Dir, "root/usr/bin/labnode")); err != nil || string(text) != "labnode of who made it" {
		t.Errorf("the fetched tree was changed: %q, %v", text, err)
	}
	list, err := inventory.Read(used.Root())
	if err != nil || len(list.Images) != 1 || !strings.Contains(treeOf(t, used.Root()), "usr/bin/same f 4755 0 0") {
		t.Errorf("%+v, %v\n%s", list, err, treeOf(t, used.Root()))
	}
	for _, file := range list.Files {
		if want, _ := fileHash(labnode); file.Path == "/usr/bin/labnode" && file.SHA256 != want {
			t.Errorf("listed as %s", file.SHA256)
		}
	}
	spec.KubernetesVersion = "v1.35.4"
	if _, err := Build(t.Context(), spec, event.NewStream()); err == nil || !strings.Contains(err.Error(), "image.from has Kubernetes v1.36.3, and kubernetes.version is v1.35.4") {
		t.Errorf("another version: %v", err)
	}
}

// damaged has another byte in a layer: what is between the parts does not count.
func damaged(archive []byte) []byte {
	changed := bytes.Clone(archive)
	changed[bytes.Index(changed, []byte("\x28\xb5\x2f\xfd"))+20] ^= 1 // zstd's magic number begins it
	return changed
}

// A server that ends each answer early: what arrived is not asked for again.
func TestFetchGoesOn(t *testing.T) {
	content := strings.Repeat("0123456789", 1000)
	var ranges []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ranges = append(ranges, r.Header.Get("Range"))
		if len(ranges) == 1 {
			w.Header().Set("Content-Length", "10000")
			_, _ = io.WriteString(w, content[:4000])
			return
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(content))
	}))
	defer s.Close()
	f := newFetcher()
	f.addressed, f.pause = true, 0
	if err := f.file(context.Background(), s.URL+"/blob", digestOf(content), filepath.Join(t.TempDir(), "blob"), event.NewStream().Start("", "download", 0)); err != nil {
		t.Fatal(err)
	}
	if len(ranges) != 2 || ranges[1] != "bytes=4000-" {
		t.Errorf("%q", ranges)
	}
}
