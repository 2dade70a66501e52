package image

import (
	"archive/tar"
	"debug/elf"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"k8slab/config"
	"k8slab/lab/event"
)

// imagesOf is a registry with upstream's images, each of two layers: the first has programs, the second what replaces some of them.
func imagesOf(t *testing.T, etcdPrograms ...string) (host string) {
	t.Helper()
	t.Setenv("HOME", t.TempDir()) // has no credentials
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	host = strings.TrimPrefix(s.URL, "http://")
	for ref, programs := range map[string][]string{"etcd:3.6.8-0": etcdPrograms, "coredns/coredns:v1.14.2": {"coredns"}} {
		img := empty.Image
		for _, text := range []string{"first ", "second "} {
			l, err := layer(func(w *tar.Writer) error {
				for i, program := range programs {
					if text == "second " && i > 0 {
						break
					}
					content := programFile(t, elf.EM_X86_64, text+program)
					if err := w.WriteHeader(&tar.Header{Name: "usr/local/bin/" + program, Typeflag: tar.TypeReg, Mode: 0o555, Size: int64(len(content))}); err != nil {
						return err
					}
					if _, err := w.Write(content); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if img, err = mutate.AppendLayers(img, l); err != nil {
				t.Fatal(err)
			}
		}
		at, err := name.ParseReference(host + "/k8s/" + ref)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(at, img); err != nil {
			t.Fatal(err)
		}
	}
	return host + "/k8s"
}

// Only what kubeadm asks for is taken from the registry; what a later layer of an image has replaces what an earlier one has.
func TestRelease(t *testing.T) {
	images := imagesOf(t, "etcd", "etcdctl", "etcdutl", "etcd-3.5.0")
	m, _ := mirrorOf(t, release(t), nil)
	b := newBuilder(home(t))
	spec := Spec{KubernetesVersion: "v1.36.3", KubernetesSource: config.SourceRelease, Release: config.Release{Server: m.url + "/", Images: images}}
	for range 2 { // the second time from the cache
		if err := b.kubernetes(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		asked, err := b.askedFor(Spec{})
		if err != nil {
			t.Fatal(err)
		}
		for _, get := range asked {
			if err := get(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if files, err := filepath.Glob(b.bin("etcd", "*")); err != nil || len(files) != 3 {
		t.Errorf("of etcd's image %q, %v", files, err)
	}
	for program, layer := range map[string]string{"etcd/etcd": "second etcd", "etcd/etcdctl": "first etcdctl", "etcd/etcdutl": "first etcdutl", "coredns/coredns": "second coredns"} {
		component, file, _ := strings.Cut(program, "/")
		path := b.bin(component, file)
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o755 || !strings.HasSuffix(read(t, path), layer) {
			t.Errorf("%s: %v, %v, or not what the image has last", program, info, err)
		}
	}
	for _, left := range listDir(t, b.dir) {
		if strings.Contains(left, partial) {
			t.Errorf("the cache has %s", left)
		}
	}
}

func TestReleaseWithAnImageOfSomethingElse(t *testing.T) {
	p := published{programs: []string{"etcd", "etcdctl"}, parts: filepath.Join(t.TempDir(), "parts")}
	var err error
	if p.image, err = (upstream{registry: imagesOf(t, "etcd")}).imageOf("registry.k8s.io/etcd:3.6.8-0"); err != nil {
		t.Fatal(err)
	}
	err = p.build(t.Context(), t.TempDir(), step(t))
	if err == nil || !strings.Contains(err.Error(), "/k8s/etcd:3.6.8-0 has no etcdctl") {
		t.Errorf("got %v", err)
	}
}

// The source auto takes what the cache has, then the release, and modules where a server does not have it or does not answer.
func TestChoose(t *testing.T) {
	registry := imagesOf(t, "etcd")
	m, asked := mirrorOf(t, release(t), nil)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(silent.Close)
	const version = "v1.36.3"
	tests := []struct {
		name            string
		server, images  string
		version, cached string
		want, says      string
	}{
		{name: "the release", server: m.url, images: registry, version: version, want: "release", says: "release: " + m.url + " has v1.36.3"},
		{name: "another version", server: m.url, images: registry, version: "v1.36.9", want: "modules", says: "/v1.36.9/bin/linux/amd64/kubeadm.sha256: the server answers 404 Not Found"},
		{name: "a server that does not answer", server: silent.URL, images: registry, version: version, want: "modules", says: "no answer within 100ms"},
		{name: "a registry that does not answer", server: m.url, images: strings.TrimPrefix(silent.URL, "http://"), version: version, want: "modules", says: "/v2/: no answer within 100ms"},
		{name: "compiled before", server: m.url, images: registry, version: version, cached: "modules", want: "modules"},
		{name: "fetched before", server: m.url, images: registry, version: version, cached: "release", want: "release"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBuilder(home(t))
			var said said
			b.events = event.NewStream(&said)
			spec := Spec{KubernetesVersion: tt.version, KubernetesSource: config.SourceAuto, Release: config.Release{Server: tt.server, Images: tt.images}}
			sources := map[string]source{"modules": kubernetes(tt.version), "release": b.upstream(spec)}
			if tt.cached != "" {
				write(t, filepath.Join(b.kubernetesPath(tt.version, sources[tt.cached]), "kubeadm"), nil, 0o755)
			}
			before := len(asked())
			got := b.choose(t.Context(), spec, 100*time.Millisecond)
			if want := sources[tt.want]; !slices.Equal(got.inputs(), want.inputs()) {
				t.Errorf("got %q, want %q", got.inputs(), want.inputs())
			}
			if text := strings.Join(said, "\n"); !strings.Contains(text, tt.says) || tt.cached != "" && (text != "" || len(asked()) > before) {
				t.Errorf("said %q, want %q; asked %q", text, tt.says, asked()[before:])
			}
		})
	}
}

func TestReleaseOfAnotherVersion(t *testing.T) {
	m, _ := mirrorOf(t, release(t), nil)
	b := newBuilder(home(t))
	u := b.upstream(Spec{KubernetesVersion: "v1.36.9", Release: config.Release{Server: m.url, Images: "registry.example"}})
	err := u.build(t.Context(), t.TempDir(), step(t))
	if want := "and that kubernetes.release.server, " + m.url + ", has v1.36.9/bin/linux/amd64 in it"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q in it", err, want)
	}
}
