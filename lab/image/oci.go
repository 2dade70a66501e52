package image

import (
	"archive/tar"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/compression"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Names of the container images that are the lab's own. The others have the names that kubeadm asks for.
const (
	FlannelImage = "k8slab/flannel:lab"
	ProbeImage   = "k8slab/probe:lab"
)

// containerImage is one OCI image: one program, on top of the files of base where it calls others, the files of base alone, or what an
// archive has.
type containerImage struct {
	ref        string
	archive    string // on this computer, "" for a program
	program    string // on this computer, "" for none
	path       string // in the image
	base       string // directory, "" for none
	entrypoint []string
}

// trees are directories with the files of Debian packages.
type trees struct{ netTools, busybox string }

// pauseScript is what a sandbox runs. With -v it ends well, as upstream's pause does: kubeadm upgrade has a Job run that.
const pauseScript = `[ "$1" != -v ] || exit 0; exec /pause -P`

// containerImages are all the images of a node. kubeadmImages are the names that `kubeadm config images list` prints.
func containerImages(kubeadmImages []string, bin func(component, program string) string, from trees, labnode, pause string) ([]containerImage, error) {
	images := []containerImage{
		{ref: FlannelImage, program: bin("flannel", "flanneld"), path: "/opt/bin/flanneld", base: from.netTools, entrypoint: []string{"/opt/bin/flanneld"}},
		{ref: ProbeImage, program: labnode, path: "/labnode", entrypoint: []string{"/labnode", "probe"}},
	}
	for _, ref := range kubeadmImages {
		tag, err := name.NewTag(ref)
		if err != nil {
			return nil, fmt.Errorf("kubeadm names an image %q: %w", ref, err)
		}
		repo := tag.RepositoryStr()
		img := containerImage{ref: ref}
		switch program := repo[strings.LastIndex(repo, "/")+1:]; program {
		case "pause":
			img.program, img.path, img.base = pause, "/pause", from.busybox
			img.entrypoint = []string{"/bin/busybox", "sh", "-c", pauseScript, "pause"}
		case "etcd":
			img.program, img.path = bin("etcd", program), "/usr/local/bin/etcd"
		case "coredns":
			img.program, img.path, img.entrypoint = bin("coredns", program), "/coredns", []string{"/coredns"}
		case "kube-proxy":
			img.program, img.path, img.base = bin("kubernetes", program), "/usr/local/bin/kube-proxy", from.netTools
		case "kube-apiserver", "kube-controller-manager", "kube-scheduler":
			img.program, img.path = bin("kubernetes", program), "/usr/local/bin/"+program
		default:
			return nil, fmt.Errorf("kubeadm asks for an image that the lab cannot build: %s", ref)
		}
		if archive := img.program + archiveEnding; exists(archive) {
			img = containerImage{ref: ref, archive: archive}
		}
		images = append(images, img)
	}
	return images, nil
}

// writeImages writes the images as one archive that containerd imports. Layers are not compressed: they never travel.
func writeImages(path string, images []containerImage) error {
	bases := map[string]v1.Layer{}
	all := map[name.Reference]v1.Image{}
	for _, c := range images {
		img, err := c.build(bases)
		if err != nil {
			return fmt.Errorf("container image %s: %w", c.ref, err)
		}
		ref, err := name.ParseReference(c.ref)
		if err != nil {
			return err
		}
		all[ref] = img
	}
	return tarball.MultiRefWriteToFile(path, all)
}

func (c containerImage) build(bases map[string]v1.Layer) (v1.Image, error) {
	if c.archive != "" {
		img, _, err := readArchive(c.archive)
		return img, err
	}
	var layers []v1.Layer
	if c.base != "" {
		if bases[c.base] == nil {
			layer, err := layer(func(w *tar.Writer) error { return addTree(w, c.base) })
			if err != nil {
				return nil, err
			}
			bases[c.base] = layer
		}
		layers = append(layers, bases[c.base])
	}
	if c.program != "" {
		program, err := layer(func(w *tar.Writer) error { return addProgram(w, c.program, c.path) })
		if err != nil {
			return nil, err
		}
		layers = append(layers, program)
	}
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return nil, err
	}
	cfg, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	cfg = cfg.DeepCopy()
	cfg.OS, cfg.Architecture = "linux", "amd64"
	cfg.Config.Entrypoint = c.entrypoint
	cfg.Config.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	return mutate.ConfigFile(img, cfg)
}

// layer streams what fill writes each time it is read, so that no program is held in memory.
func layer(fill func(*tar.Writer) error) (v1.Layer, error) {
	open := func() (io.ReadCloser, error) {
		r, w := io.Pipe()
		go func() {
			archive := tar.NewWriter(w)
			_ = w.CloseWithError(cmp.Or(fill(archive), archive.Close()))
		}()
		return r, nil
	}
	return tarball.LayerFromOpener(open, tarball.WithCompression(compression.None))
}

func addProgram(w *tar.Writer, source, path string) error {
	f, err := os.Open(source)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}); err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Name: strings.TrimPrefix(path, "/"), Mode: 0o755, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}

// addTree adds the files and links of a directory, without owners and times, so that equal trees give equal layers.
func addTree(w *tar.Writer, dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		link := ""
		if info.Mode()&fs.ModeSymlink != 0 {
			if link, err = os.Readlink(path); err != nil {
				return err
			}
		} else if !info.Mode().IsRegular() && !info.IsDir() {
			return nil
		}
		h, err := tar.FileInfoHeader(info, link)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		header := &tar.Header{Typeflag: h.Typeflag, Name: rel, Linkname: link, Mode: h.Mode, Size: h.Size}
		if err := w.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		_, err = io.Copy(w, f)
		return err
	})
}
