package join

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"testing"

	"k8slab/lab/inventory"
	"k8slab/lab/symptom"
)

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// preload gives the machine a list with the image, and its blobs. It returns the names of the files.
func (f *fakeMachine) preload(name string) []string {
	f.t.Helper()
	blob := func(text string) descriptor {
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
		f.write(path.Join(inventory.Blobs, sum), text)
		return descriptor{MediaType: "application/x", Digest: "sha256:" + sum, Size: int64(len(text))}
	}
	config, layer := blob("the configuration of "+name), blob("a layer")
	manifest, err := json.Marshal(map[string]any{"schemaVersion": 2, "config": config, "layers": []descriptor{layer, layer}})
	if err != nil {
		f.t.Fatal(err)
	}
	root := blob(string(manifest))
	list := inventory.List{Images: []inventory.Image{{Name: name, MediaType: "application/manifest", Digest: root.Digest}}}
	if err := list.Write(f.Root); err != nil {
		f.t.Fatal(err)
	}
	var files []string
	for _, d := range []descriptor{root, config, layer} {
		files = append(files, strings.TrimPrefix(d.Digest, "sha256:"))
	}
	return files
}

// importing has containerd take images, and returns what it was given.
func (s *scene) importing() (argv *[]string, entries map[string]string) {
	argv, entries = &[]string{}, map[string]string{}
	s.Feed = func(_ context.Context, stdin io.Reader, args ...string) error {
		*argv = args
		archive := tar.NewReader(stdin)
		for {
			h, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			text, _ := io.ReadAll(archive)
			entries[h.Name] = string(text)
		}
		var index struct{ Manifests []descriptor }
		if err := json.Unmarshal([]byte(entries["index.json"]), &index); err != nil {
			return err
		}
		s.cri.set(func() {
			for _, m := range index.Manifests {
				s.cri.images = append(slices.Clone(s.cri.images), m.Annotations["io.containerd.image.name"])
			}
		})
		return nil
	}
	return argv, entries
}

// kubelet on a full disk removes images, and no registry has them: they come from the copy that the machine's image keeps.
func TestLostImageIsImportedAgain(t *testing.T) {
	const lost = "example.com/pause:3.10.2"
	s := newScene(t, false)
	files := s.preload(lost)
	if c := find(Preflight(t.Context(), s.Machine, s.target, nil), CheckImages); c.Result != OK {
		t.Fatalf("with all images there: %+v", c)
	}
	s.cri.set(func() { s.cri.images = labImages[1:] })
	argv, entries := s.importing()
	if c := find(Examine(t.Context(), s.Machine, s.target), CheckImages); c.Result != Fixable || c.Symptom != symptom.ImagePullFailure || !strings.Contains(c.Evidence, lost) {
		t.Errorf("%+v", c)
	}
	if len(entries) > 0 {
		t.Error("a look has imported something")
	}
	s.fixes(CheckImages, "imported "+lost)
	if line := strings.Join(*argv, " "); !strings.HasPrefix(line, "ctr --namespace k8s.io images import") || !strings.Contains(line, "io.cri-containerd.pinned=pinned") {
		t.Errorf("ran %q", line)
	}
	var index struct{ Manifests []descriptor }
	if err := json.Unmarshal([]byte(entries["index.json"]), &index); err != nil || len(index.Manifests) != 1 {
		t.Fatalf("%v, %+v", err, index)
	}
	want := descriptor{"application/manifest", "sha256:" + files[0], int64(len(entries["blobs/sha256/"+files[0]])), map[string]string{"io.containerd.image.name": lost}}
	if fmt.Sprint(index.Manifests[0]) != fmt.Sprint(want) || entries["oci-layout"] == "" {
		t.Errorf("%+v, want %+v", index.Manifests[0], want)
	}
	for _, file := range files {
		if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(entries["blobs/sha256/"+file]))); sum != file {
			t.Errorf("the blob %s has the content of %s", file, sum)
		}
	}
}

// A member is repaired as a machine that is to join is.
func TestLostImageOfAMember(t *testing.T) {
	s := newScene(t, false)
	s.preload("example.com/probe:lab")
	s.importing()
	if c := find(RepairMember(t.Context(), s.Machine, false), CheckImages); c.Fixed == "" || !strings.Contains(c.Evidence, "example.com/probe:lab") {
		t.Errorf("%+v", c)
	}
}

// A blob that is gone too comes from the host, which labctl repair copies it from.
func TestLostImageWithoutABlob(t *testing.T) {
	s := newScene(t, false)
	files := s.preload("example.com/probe:lab")
	s.remove(path.Join(inventory.Blobs, files[2]))
	s.importing()
	got, _ := s.fixed(CheckImages)
	if got.Result != Blocked || !strings.Contains(got.Evidence, "no such file") || !strings.Contains(got.Hint, "labctl repair") {
		t.Errorf("%+v", got)
	}
}
