package image

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const apiserverRef = "registry.k8s.io/kube-apiserver:v1.36.3"

// someImage has one file.
func someImage(t *testing.T, arch string) v1.Image {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	write(t, program, []byte("of an archive"), 0o755)
	img, err := containerImage{program: program, path: "/usr/bin/it", entrypoint: []string{"/go-runner"}}.build(map[string]v1.Layer{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config.Architecture = arch
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	return img
}

// writeArchive writes a docker archive as upstream does.
func writeArchive(t *testing.T, path, ref, arch string) {
	t.Helper()
	tag, err := name.NewTag(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(path, tag, someImage(t, arch)); err != nil {
		t.Fatal(err)
	}
}

// writeOCI writes an OCI archive of what add puts into the layout.
func writeOCI(t *testing.T, path string, add func(layout.Path) error) {
	t.Helper()
	dir := t.TempDir()
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := add(l); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	if err := errors.Join(w.AddFS(os.DirFS(dir)), w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// oneOf is an index with the image for each of the architectures.
func oneOf(t *testing.T, architectures ...string) v1.ImageIndex {
	t.Helper()
	index := v1.ImageIndex(empty.Index)
	for _, arch := range architectures {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: someImage(t, arch), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	return index
}

func named(key, name string) layout.Option {
	return layout.WithAnnotations(map[string]string{key: name})
}

const (
	refName        = "org.opencontainers.image.ref.name"
	fromContainerd = "io.containerd.image.name"
)

func TestReadArchive(t *testing.T) {
	tests := []struct {
		name  string
		write func(t *testing.T, path string)
	}{
		{"docker", func(t *testing.T, path string) { writeArchive(t, path, apiserverRef, "amd64") }},
		{"docker, with upstream's name", func(t *testing.T, path string) {
			writeArchive(t, path, "registry.k8s.io/kube-apiserver-amd64:v1.36.3", "amd64")
		}},
		{"docker, compressed", func(t *testing.T, path string) {
			writeArchive(t, path, apiserverRef, "amd64")
			zip(t, path)
			if err := os.Rename(path+".gz", path); err != nil {
				t.Fatal(err)
			}
		}},
		{"OCI", func(t *testing.T, path string) {
			writeOCI(t, path, func(l layout.Path) error { return l.AppendImage(someImage(t, "amd64"), named(refName, apiserverRef)) })
		}},
		{"OCI of several platforms", func(t *testing.T, path string) {
			writeOCI(t, path, func(l layout.Path) error {
				return l.AppendIndex(oneOf(t, "arm64", "amd64"), named(fromContainerd, apiserverRef))
			})
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path, out := filepath.Join(t.TempDir(), "kube-apiserver.tar"), filepath.Join(t.TempDir(), "images.tar")
			tt.write(t, path)
			if err := archiveProblem(path, apiserverRef); err != nil {
				t.Fatal(err)
			}
			if err := archiveProblem(path, "registry.k8s.io/kube-proxy:v1.36.3"); err == nil {
				t.Error("it passes for another image too")
			}
			// In the node it has the name that kubeadm asks for, whatever its own is, and is what it was.
			if err := writeImages(out, []containerImage{{ref: apiserverRef, archive: path}}); err != nil {
				t.Fatal(err)
			}
			got, _ := readBack(t, out, apiserverRef)
			config, err := got.ConfigFile()
			if err != nil || !slices.Equal(config.Config.Entrypoint, []string{"/go-runner"}) || config.Architecture != "amd64" {
				t.Errorf("config %+v, %v", config, err)
			}
			if got, want := contents(t, got), []string{"tmp/ 1777", "usr/bin/it 755 of an archive"}; !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			gotID, err1 := got.ConfigName()
			wantID, err2 := someImage(t, "amd64").ConfigName()
			if gotID != wantID || err1 != nil || err2 != nil {
				t.Errorf("image ID %s, want %s; %v, %v", gotID, wantID, err1, err2)
			}
		})
	}
}

func TestArchiveProblems(t *testing.T) {
	tests := []struct {
		name  string
		write func(t *testing.T, path string)
		want  string
	}{
		{"several images", func(t *testing.T, path string) {
			a, b := name.MustParseReference("a:1"), name.MustParseReference("b:1")
			if err := tarball.MultiRefWriteToFile(path, map[name.Reference]v1.Image{a: someImage(t, "amd64"), b: someImage(t, "arm64")}); err != nil {
				t.Fatal(err)
			}
		}, "it has 2 images; make an archive of each"},
		{"several images in an OCI archive", func(t *testing.T, path string) {
			writeOCI(t, path, func(l layout.Path) error {
				return errors.Join(l.AppendImage(someImage(t, "amd64")), l.AppendImage(someImage(t, "arm64")))
			})
		}, "it has 2 images; make an archive of each"},
		{"no platform that fits", func(t *testing.T, path string) {
			writeOCI(t, path, func(l layout.Path) error { return l.AppendIndex(oneOf(t, "arm64", "s390x")) })
		}, "it has no image for linux/amd64"},
		{"no name", func(t *testing.T, path string) {
			writeOCI(t, path, func(l layout.Path) error { return l.AppendImage(someImage(t, "amd64")) })
		}, `has the image "", and kubeadm asks for ` + apiserverRef},
		{"only a tag", func(t *testing.T, path string) {
			writeOCI(t, path, func(l layout.Path) error { return l.AppendImage(someImage(t, "amd64"), named(refName, "v1.36.3")) })
		}, `has the image "v1.36.3", and kubeadm asks for ` + apiserverRef},
		{"other files", func(t *testing.T, path string) {
			writeTar(t, path, map[string]string{"readme": "text"})
		}, "no manifest.json and no usable index.json: index.json: it is not in the archive"},
		{"broken manifest", func(t *testing.T, path string) {
			writeTar(t, path, map[string]string{"manifest.json": "{"})
		}, "manifest.json: unexpected end of JSON input"},
		{"manifest without configuration", func(t *testing.T, path string) {
			writeTar(t, path, map[string]string{"manifest.json": `[{"Config":"none.json"}]`})
		}, "none.json not found in tar"},
		{"another content than its name says", func(t *testing.T, path string) {
			id := strings.Repeat("0", 64)
			index, err := json.Marshal(v1.IndexManifest{Manifests: []v1.Descriptor{{Digest: v1.Hash{Algorithm: "sha256", Hex: id}}}})
			if err != nil {
				t.Fatal(err)
			}
			writeTar(t, path, map[string]string{"index.json": string(index), "blobs/sha256/" + id: "{}"})
		}, "blobs/sha256/" + strings.Repeat("0", 64) + " has another content"},
		{"cut", func(t *testing.T, path string) {
			writeArchive(t, path, apiserverRef, "amd64")
			zip(t, path)
			write(t, path, []byte(read(t, path+".gz")[:100]), 0o644)
		}, "manifest.json: unexpected EOF"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kube-apiserver.tar")
			tt.write(t, path)
			if err := archiveProblem(path, apiserverRef); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
}

func writeTar(t *testing.T, path string, files map[string]string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	for name, text := range files {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}))
		_, failed := w.Write([]byte(text))
		err = errors.Join(err, failed)
	}
	if err := errors.Join(err, w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// An archive stands for the program that it is beside.
func TestContainerImageOfAnArchive(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "kube-apiserver.tar"), nil, 0o644)
	images, err := containerImages(kubeadmImages, func(_, program string) string { return filepath.Join(dir, program) }, trees{"/net", "/busybox"}, "/labnode", "/pause")
	if err != nil {
		t.Fatal(err)
	}
	for _, img := range images {
		want := ""
		if img.ref == apiserverRef {
			want = filepath.Join(dir, "kube-apiserver.tar")
		}
		if img.archive != want || (img.program == "") != (want != "") {
			t.Errorf("%+v, want the archive %q", img, want)
		}
	}
}
