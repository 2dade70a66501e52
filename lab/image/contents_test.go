package image

import (
	"bytes"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func openArchive(t *testing.T, path string) (*Archive, error) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return OpenArchive(bytes.NewReader(data), int64(len(data)))
}

func TestOpenArchive(t *testing.T) {
	const full = "docker.io/library/nginx:alpine"
	tests := []struct {
		name    string
		write   func(t *testing.T, path string)
		want    []string
		renamed map[string]string
	}{
		{"docker, short name", func(t *testing.T, path string) { writeArchive(t, path, "nginx:alpine", "amd64") }, []string{full}, map[string]string{"nginx:alpine": full}},
		{"docker, another registry", func(t *testing.T, path string) { writeArchive(t, path, apiserverRef, "amd64") }, []string{apiserverRef}, nil},
		{"docker, two images", func(t *testing.T, path string) {
			a, b := name.MustParseReference("quay.io/a/a:1"), name.MustParseReference("quay.io/b/b:1")
			if err := tarball.MultiRefWriteToFile(path, map[name.Reference]v1.Image{a: someImage(t, "amd64"), b: someImage(t, "amd64")}); err != nil {
				t.Fatal(err)
			}
		}, []string{"quay.io/a/a:1", "quay.io/b/b:1"}, nil},
		{"OCI with containerd's name", func(t *testing.T, path string) {
			writeOCI(t, path, func(l layout.Path) error {
				return l.AppendIndex(oneOf(t, "arm64", "amd64"), named(fromContainerd, full))
			})
		}, []string{full}, nil},
		{"OCI with a short name", func(t *testing.T, path string) {
			writeOCI(t, path, func(l layout.Path) error { return l.AppendImage(someImage(t, "amd64"), named(refName, "nginx:alpine")) })
		}, []string{full}, map[string]string{"nginx:alpine": full}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "image.tar")
			tt.write(t, path)
			a, err := openArchive(t, path)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(a.Names)
			if tt.renamed == nil {
				tt.renamed = map[string]string{}
			}
			if !slices.Equal(a.Names, tt.want) {
				t.Errorf("names %q, want %q", a.Names, tt.want)
			}
			if tt.name != "docker, short name" && !maps.Equal(a.Renamed, tt.renamed) {
				t.Errorf("renamed %q, want %q", a.Renamed, tt.renamed)
			}
			// Compressed it is the same, and gives the same content, again and again.
			plain := read(t, path)
			zip(t, path)
			z, err := openArchive(t, path+".gz")
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				r, err := z.Open()
				if err != nil {
					t.Fatal(err)
				}
				if got, err := io.ReadAll(r); err != nil || string(got) != plain {
					t.Errorf("%d bytes, %v, want %d", len(got), err, len(plain))
				}
			}
		})
	}
}

func TestOpenArchiveProblems(t *testing.T) {
	tests := []struct {
		name  string
		write func(t *testing.T, path string)
		want  string
	}{
		{"no archive", func(t *testing.T, path string) { write(t, path, []byte(strings.Repeat("hello ", 500)), 0o644) }, "not a tar archive"},
		{"empty", func(t *testing.T, path string) { write(t, path, nil, 0o644) }, "not an image archive of docker or OCI"},
		{"another archive", func(t *testing.T, path string) { writeTar(t, path, map[string]string{"readme": "text"}) }, "not an image archive of docker or OCI"},
		{"cut", func(t *testing.T, path string) {
			writeArchive(t, path, apiserverRef, "amd64")
			zip(t, path)
			write(t, path, []byte(read(t, path+".gz")[:100]), 0o644)
		}, "only a part"},
		{"without a name", func(t *testing.T, path string) {
			writeOCI(t, path, func(l layout.Path) error { return l.AppendImage(someImage(t, "amd64")) })
		}, "an image without a name"},
		{"a tag alone", func(t *testing.T, path string) {
			writeOCI(t, path, func(l layout.Path) error { return l.AppendImage(someImage(t, "amd64"), named(refName, "alpine")) })
		}, "an image without a name"},
		{"docker's, by its ID", func(t *testing.T, path string) {
			writeTar(t, path, map[string]string{"manifest.json": `[{"Config":"c.json","RepoTags":null,"Layers":[]}]`, "c.json": "{}"})
		}, "an image without a name"},
		{"another architecture", func(t *testing.T, path string) { writeArchive(t, path, "nginx:alpine", "arm64") }, "is an image for linux/arm64"},
		{"another architecture, OCI", func(t *testing.T, path string) {
			writeOCI(t, path, func(l layout.Path) error {
				return l.AppendIndex(oneOf(t, "arm64"), named(fromContainerd, apiserverRef))
			})
		}, "no image for linux/amd64"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "image.tar")
			tt.write(t, path)
			if _, err := openArchive(t, path); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
}
