package inventory

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// stored writes the blobs of an image into the tree, and returns the image and its layer's file.
func stored(t *testing.T, root, name, layer string) (Image, string) {
	t.Helper()
	blob := func(text string) descriptor {
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
		file := filepath.Join(root, Blobs, sum)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		return descriptor{MediaType: "x", Digest: "sha256:" + sum, Size: int64(len(text))}
	}
	config, content := blob("configuration of "+name), blob(layer)
	manifest, err := json.Marshal(map[string]any{"config": config, "layers": []descriptor{content}})
	if err != nil {
		t.Fatal(err)
	}
	root1 := blob(string(manifest))
	return Image{Name: name, MediaType: "manifest", Digest: root1.Digest}, filepath.Join(root, Blobs, content.Digest[len("sha256:"):])
}

func TestImagesInOneArchive(t *testing.T) {
	root := t.TempDir()
	a, _ := stored(t, root, "example.com/a:1", "shared")
	b, _ := stored(t, root, "example.com/b:1", "shared")
	images, err := OpenImages(root, a, b)
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := images.Write(&archive); err != nil {
		t.Fatal(err)
	}
	entries := map[string]string{}
	for r := tar.NewReader(&archive); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(r)
		if entries[h.Name] != "" {
			t.Errorf("%s is there twice", h.Name)
		}
		entries[h.Name] = string(text)
	}
	var index struct{ Manifests []descriptor }
	if err := json.Unmarshal([]byte(entries["index.json"]), &index); err != nil || len(index.Manifests) != 2 {
		t.Fatalf("%v, %+v", err, index)
	}
	for i, name := range []string{a.Name, b.Name} {
		m := index.Manifests[i]
		if m.Annotations["io.containerd.image.name"] != name || int(m.Size) != len(entries["blobs/sha256/"+m.Digest[7:]]) {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if want := 2 + 2 + 1 + 2; len(entries) != want { // manifests, configurations, the layer that they share, index and layout
		t.Errorf("%d entries, want %d", len(entries), want)
	}
}

func TestImageThatLacksABlob(t *testing.T) {
	root := t.TempDir()
	a, layer := stored(t, root, "example.com/a:1", "layer")
	if err := os.Remove(layer); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenImages(root, a); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// What a list says is a path only after it was looked at.
func TestImageWithAStrangeDigest(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "secret"), []byte(`{"config":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, digest := range []string{"sha256:../../../../secret", "../secret", ""} {
		if _, err := OpenImages(root, Image{Digest: digest}); err == nil {
			t.Errorf("%q is taken", digest)
		}
	}
}
