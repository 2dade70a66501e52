//go:build e2e

package e2e

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8slab/lab/command"
)

var (
	nodePrograms   = []string{"kubeadm", "kubelet", "kubectl"}
	staticPrograms = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"}
)

// The programs are those that another lab's image was built from, so that nothing is compiled.
var _ = Describe("a lab whose Kubernetes comes from", Label("nightly", "Slow"), Serial, func() {
	var compiled, version string
	BeforeEach(func(ctx SpecContext) {
		newLab("e2e-built", 58, 1, 0).must(ctx, "image", "build")
		found, err := filepath.Glob(cached("kubernetes-v*/kubeadm"))
		Expect(err).NotTo(HaveOccurred())
		Expect(found).NotTo(BeEmpty())
		compiled = filepath.Dir(found[0])
		version = strings.Split(filepath.Base(compiled), "-")[1]
		forgetWhatIsCached()
	}, NodeTimeout(10*time.Minute))

	It("a directory refuses files that were changed, and comes up proven healthy", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		copyPrograms(compiled, dir, slices.Concat(nodePrograms, staticPrograms))
		inDirectory(ctx, dir, "sha256sum kube* >SHA256SUMS")

		l := useLab("e2e-source", 58, 1, 1)
		l.configure(fmt.Sprintf("kubernetes: {version: %s, source: %s}\n", version, dir))
		putBack := damage(filepath.Join(dir, "kubelet"))
		Expect(l.refused(ctx)).To(ContainSubstring("kubelet has the SHA-256"))

		putBack()
		l.must(ctx, "up")
		l.expectHealthy(ctx)
	}, SpecTimeout(10*time.Minute))

	It("a release mirror refuses what is not of its checksum, and comes up proven healthy; so does one of image archives", func(ctx SpecContext) {
		programs, url := serveRelease(ctx, compiled, version)
		l := useLab("e2e-mirror", 62, 1, 1)
		l.configure(fmt.Sprintf("kubernetes: {version: %s, source: '%s'}\n", version, url))
		putBack := damage(filepath.Join(programs, "kubelet"))
		Expect(l.refused(ctx)).To(ContainSubstring("kubelet does not match its checksum"))

		putBack()
		l.must(ctx, "up")
		l.expectHealthy(ctx)
		archives := GinkgoT().TempDir()
		copyPrograms(compiled, archives, nodePrograms)
		for _, p := range staticPrograms {
			l.exportImage(ctx, fmt.Sprintf("registry.k8s.io/%s:%s", p, version), filepath.Join(archives, p+".tar.gz"))
		}
		l.down(ctx)

		of := useLab("e2e-archives", 62, 1, 1)
		of.configure(fmt.Sprintf("kubernetes: {version: %s, source: %s}\n", version, archives))
		of.must(ctx, "up")
		of.expectHealthy(ctx)
	}, SpecTimeout(15*time.Minute))

	It("upstream's release, with etcd and CoreDNS of its images, comes up proven healthy", func(ctx SpecContext) {
		_, url := serveRelease(ctx, compiled, version)
		images := serveImages(compiled)
		l := useLab("e2e-release", 62, 1, 1)
		l.configure(fmt.Sprintf("kubernetes: {version: %s, source: release, release: {server: '%s', images: '%s'}}\n", version, url, images))
		l.must(ctx, "up")
		l.expectHealthy(ctx)
	}, SpecTimeout(10*time.Minute))
})

// serveRelease is upstream's server with the programs of a version; they are in a directory.
func serveRelease(ctx context.Context, compiled, version string) (programs, url string) {
	GinkgoHelper()
	tree := GinkgoT().TempDir()
	programs = filepath.Join(tree, version, "bin/linux/amd64")
	Expect(os.MkdirAll(programs, 0o755)).To(Succeed())
	copyPrograms(compiled, programs, slices.Concat(nodePrograms, staticPrograms))
	inDirectory(ctx, programs, `for p in kube*; do sha256sum "$p" >"$p.sha256"; done`)
	server := httptest.NewServer(http.FileServer(http.Dir(tree)))
	DeferCleanup(server.Close)
	return programs, server.URL
}

// serveImages is a registry with etcd and CoreDNS, under the names that the kubeadm which was compiled asks for.
func serveImages(compiled string) (at string) {
	GinkgoHelper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	DeferCleanup(server.Close)
	at = strings.TrimPrefix(server.URL, "http://")
	list, err := os.ReadFile(filepath.Join(compiled, "images"))
	Expect(err).NotTo(HaveOccurred())
	for component, where := range map[string]string{"etcd": "usr/local/bin", "coredns": "."} {
		found, err := filepath.Glob(cached(component + "-v*"))
		Expect(err).NotTo(HaveOccurred())
		Expect(found).NotTo(BeEmpty())
		layer := filepath.Join(GinkgoT().TempDir(), "layer.tar")
		_, err = command.Run(context.Background(), "tar", "--create", "--file="+layer, "--directory="+found[0], "--transform=s,^[.]/,"+where+"/,", ".")
		Expect(err).NotTo(HaveOccurred())
		l, err := tarball.LayerFromFile(layer)
		Expect(err).NotTo(HaveOccurred())
		image, err := mutate.AppendLayers(empty.Image, l)
		Expect(err).NotTo(HaveOccurred())
		_, ref, _ := strings.Cut(regexp.MustCompile(`(?m)^\S+/`+component+`:\S+$`).FindString(string(list)), "/")
		to, err := name.ParseReference(at + "/" + ref)
		Expect(err).NotTo(HaveOccurred())
		Expect(remote.Write(to, image)).To(Succeed())
	}
	return at
}

// cached is a path in labctl's cache.
func cached(path string) string {
	GinkgoHelper()
	cache, err := os.UserCacheDir()
	Expect(err).NotTo(HaveOccurred())
	return filepath.Join(cache, "k8slab", path)
}

// forgetWhatIsCached removes at the spec's end what it put into the cache: nobody else asks for images of its sources.
func forgetWhatIsCached() {
	GinkgoHelper()
	before, err := filepath.Glob(cached("*"))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		after, err := filepath.Glob(cached("*"))
		Expect(err).NotTo(HaveOccurred())
		for _, entry := range after {
			if !slices.Contains(before, entry) {
				Expect(os.RemoveAll(entry)).To(Succeed())
			}
		}
	})
}

func copyPrograms(from, to string, programs []string) {
	GinkgoHelper()
	for _, p := range programs {
		data, err := os.ReadFile(filepath.Join(from, p))
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(filepath.Join(to, p), data, 0o755)).To(Succeed())
	}
}

func inDirectory(ctx context.Context, dir, script string) {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, "sh", "-ec", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
}

// damage gives a file another content; the file as it was comes back with putBack.
func damage(file string) (putBack func()) {
	GinkgoHelper()
	good := file + ".good"
	Expect(os.Rename(file, good)).To(Succeed())
	Expect(os.WriteFile(file, []byte("no program"), 0o755)).To(Succeed())
	return func() {
		GinkgoHelper()
		Expect(os.Rename(good, file)).To(Succeed())
	}
}

// refused is what `up` says when it fails.
func (l *lab) refused(ctx context.Context) string {
	GinkgoHelper()
	r := l.run(ctx, "up")
	Expect(r.code).To(Equal(1), "up: %s", r)
	return r.stderr
}

// exportImage writes an image of cp1's containerd to a compressed archive. It does not go through run, whose transcript is for text. Without
// --local ctr has containerd send the archive, and may end, with success, before it has written the last of it.
func (l *lab) exportImage(ctx context.Context, ref, file string) {
	GinkgoHelper()
	f, err := os.Create(file)
	Expect(err).NotTo(HaveOccurred())
	z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	Expect(err).NotTo(HaveOccurred())
	cmd := exec.CommandContext(ctx, suite.labctl, "-c", l.config, "ssh", "cp1", "--", "ctr", "--namespace", "k8s.io", "images", "export", "--local", "-", ref)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+l.home)
	var stderr strings.Builder
	cmd.Stdout, cmd.Stderr = z, &stderr
	Expect(cmd.Run()).To(Succeed(), "%s", &stderr)
	Expect(z.Close()).To(Succeed())
	Expect(f.Close()).To(Succeed())
}
