package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// kubeadmImages is what kubeadm v1.36.3 lists.
var kubeadmImages = []string{
	"registry.k8s.io/kube-apiserver:v1.36.3", "registry.k8s.io/kube-controller-manager:v1.36.3", "registry.k8s.io/kube-scheduler:v1.36.3",
	"registry.k8s.io/kube-proxy:v1.36.3", "registry.k8s.io/coredns/coredns:v1.14.2", "registry.k8s.io/pause:3.10.2", "registry.k8s.io/etcd:3.6.8-0",
}

func TestContainerImages(t *testing.T) {
	bin := func(component, program string) string { return "/" + component + "/" + program }
	got, err := containerImages(kubeadmImages, bin, trees{"/net", "/busybox"}, "/labnode", "/catatonit")
	if err != nil {
		t.Fatal(err)
	}
	const k8s = "registry.k8s.io/"
	want := []containerImage{
		{FlannelImage, "", "/flannel/flanneld", "/opt/bin/flanneld", "/net", []string{"/opt/bin/flanneld"}},
		{ProbeImage, "", "/labnode", "/labnode", "", []string{"/labnode", "probe"}},
		{k8s + "kube-apiserver:v1.36.3", "", "/kubernetes/kube-apiserver", "/usr/local/bin/kube-apiserver", "", nil},
		{k8s + "kube-controller-manager:v1.36.3", "", "/kubernetes/kube-controller-manager", "/usr/local/bin/kube-controller-manager", "", nil},
		{k8s + "kube-scheduler:v1.36.3", "", "/kubernetes/kube-scheduler", "/usr/local/bin/kube-scheduler", "", nil},
		{k8s + "kube-proxy:v1.36.3", "", "/kubernetes/kube-proxy", "/usr/local/bin/kube-proxy", "/net", nil},
		{k8s + "coredns/coredns:v1.14.2", "", "/coredns/coredns", "/coredns", "", []string{"/coredns"}},
		{k8s + "pause:3.10.2", "", "/catatonit", "/pause", "/busybox", []string{"/bin/busybox", "sh", "-c", pauseScript, "pause"}},
		{k8s + "etcd:3.6.8-0", "", "/etcd/etcd", "/usr/local/bin/etcd", "", nil},
	}
	if len(got) != len(want) {
		t.Fatalf("got %d images, want %d", len(got), len(want))
	}
	for i := range want {
		g, w := got[i], want[i]
		if !reflect.DeepEqual(g, w) {
			t.Errorf("got  %+v\nwant %+v", g, w)
		}
	}
	for _, ref := range []string{"registry.k8s.io/etcd-operator:v1", "registry.k8s.io/etcd:3.6:8"} {
		if _, err := containerImages([]string{ref}, bin, trees{}, "", ""); err == nil || !strings.Contains(err.Error(), ref) {
			t.Errorf("%s: %v, want an error that names it", ref, err)
		}
	}
}

// tools makes a directory like net-tools and a program.
func tools(t *testing.T) (base, program string) {
	t.Helper()
	dir := t.TempDir()
	base = filepath.Join(dir, "base")
	if err := os.MkdirAll(filepath.Join(base, "usr/sbin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(base, "usr/sbin/xtables-nft-multi"), []byte("xtables"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("xtables-nft-multi", filepath.Join(base, "usr/sbin/iptables")); err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	return base, program
}

func readBack(t *testing.T, archive, ref string) (v1.Image, v1.Hash) {
	t.Helper()
	tag, err := name.NewTag(ref)
	if err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(archive, &tag)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return img, digest
}

func TestWriteImages(t *testing.T) {
	base, program := tools(t)
	images := []containerImage{
		{ref: ProbeImage, program: program, path: "/labnode", entrypoint: []string{"/labnode", "probe"}},
		{ref: "registry.k8s.io/kube-proxy:v1.36.3", program: program, path: "/usr/local/bin/kube-proxy", base: base},
	}
	archive := filepath.Join(t.TempDir(), "images.tar")
	if err := writeImages(archive, images); err != nil {
		t.Fatal(err)
	}
	probe, _ := readBack(t, archive, ProbeImage)
	config, err := probe.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || config.Architecture != "amd64" || !slices.Equal(config.Config.Entrypoint, []string{"/labnode", "probe"}) {
		t.Errorf("config %+v", config)
	}
	if got, want := contents(t, probe), []string{"labnode 755 program", "tmp/ 1777"}; !slices.Equal(got, want) {
		t.Errorf("probe has %q, want %q", got, want)
	}
	proxy, before := readBack(t, archive, images[1].ref)
	want := []string{
		"tmp/ 1777", "usr 755", "usr/local/bin/kube-proxy 755 program", "usr/sbin 755",
		"usr/sbin/iptables 777 -> xtables-nft-multi", "usr/sbin/xtables-nft-multi 755 xtables",
	}
	if got := contents(t, proxy); !slices.Equal(got, want) {
		t.Errorf("proxy has\n%q, want\n%q", got, want)
	}

	// The same files made at another time and place are the same image.
	images[1].base, images[1].program = tools(t)
	if err := writeImages(archive, images); err != nil {
		t.Fatal(err)
	}
	if _, after := readBack(t, archive, images[1].ref); after != before {
		t.Errorf("digest %s, then %s", before, after)
	}
	if err := os.WriteFile(images[1].program, []byte("changed"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeImages(archive, images); err != nil {
		t.Fatal(err)
	}
	if _, after := readBack(t, archive, images[1].ref); after == before {
		t.Error("another program, the same digest")
	}
}

// contents lists the files of an image, sorted.
func contents(t *testing.T, img v1.Image) []string {
	t.Helper()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, l := range layers {
		r, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		archive := tar.NewReader(r)
		for {
			h, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(archive)
			if err != nil {
				t.Fatal(err)
			}
			line := fmt.Sprintf("%s %o", h.Name, h.Mode)
			if h.Linkname != "" {
				line += " -> " + h.Linkname
			}
			if len(data) > 0 {
				line += " " + string(data)
			}
			if h.Uid != 0 || h.Gid != 0 || h.ModTime.Unix() > 0 {
				line += " with an owner or a time"
			}
			all = append(all, line)
		}
		_ = r.Close()
	}
	slices.Sort(all)
	return all
}

func TestWriteImagesWithoutProgram(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "images.tar")
	err := writeImages(archive, []containerImage{{ref: ProbeImage, program: filepath.Join(t.TempDir(), "none"), path: "/labnode"}})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), ProbeImage) {
		t.Errorf("got %v", err)
	}
}
