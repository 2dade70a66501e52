//go:build e2e

package e2e

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8slab/lab/symptom"
)

// getsAnImage creates pods with an image that cannot come: that is a warning, and the lab is healthy all the same. Then it loads the image.
func (l *lab) getsAnImage(ctx context.Context) {
	GinkgoHelper()
	const image = "registry.example/shop/web:1"
	l.kubectl(ctx, "create", "deployment", "web", "--image="+image, "--replicas=2")
	DeferCleanup(func(ctx SpecContext) { l.kubectl(ctx, "delete", "deployment", "web", "--ignore-not-found") }, NodeTimeout(time.Minute))
	var s status
	var r result
	Eventually(func() []string { s, r = l.status(ctx); return s.Warnings }).WithContext(ctx).WithTimeout(time.Minute).WithPolling(time.Second).
		Should(ConsistOf(And(ContainSubstring("pods default/web-"), ContainSubstring("cannot get the image "+image), ContainSubstring("labctl image load"))))
	Expect(s.Healthy).To(BeTrue())
	Expect(r.code).To(BeZero())
	Expect(l.must(ctx, "status")).To(ContainSubstring("\nhealthy\nwarning: pods default/web-"))
	for _, f := range l.findings(ctx) {
		Expect(f.Symptom).To(Equal(symptom.ImagePullFailure))
		Expect(f.Level).To(Equal(symptom.Warn))
		Expect(f.Evidence[0].Text).To(ContainSubstring("cannot get the image " + image))
	}

	archive := filepath.Join(GinkgoT().TempDir(), "web.tar")
	tag, err := name.NewTag(image)
	Expect(err).NotTo(HaveOccurred())
	Expect(tarball.WriteToFile(archive, tag, containerImage("probe"))).To(Succeed())

	f, err := os.Open(archive)
	Expect(err).NotTo(HaveOccurred())
	defer f.Close()
	loaded := l.startWith(ctx, f, nil, "image", "load", "-").wait()
	Expect(loaded.code).To(BeZero(), "%s", loaded)
	for _, node := range l.nodes {
		Expect(loaded.stdout).To(MatchRegexp(`(?m)^` + node + ` +` + image + `$`))
	}
	l.must(ctx, "image", "load", archive, l.nodes[0]) // again is fine
	l.kubectl(ctx, "delete", "pods", "--selector=app=web", "--now")
	l.kubectl(ctx, "rollout", "status", "deployment", "web", "--timeout=60s")
	Eventually(func() []string { s, _ = l.status(ctx); return s.Warnings }).WithContext(ctx).WithTimeout(30 * time.Second).WithPolling(time.Second).Should(BeEmpty())
	// Writing an image of 60 MB on every node at once keeps a slow disk busy for seconds, in which nothing on the nodes answers in time.
	Eventually(func() int { r = l.run(ctx, "diagnose"); return r.code }).WithContext(ctx).WithTimeout(30*time.Second).Should(BeZero(), "diagnose: %s", &r)
	Expect(r.stdout).To(HavePrefix("Nothing is wrong."))
}

// containerImage has labnode, which runs with the arguments.
func containerImage(args ...string) v1.Image {
	GinkgoHelper()
	program, err := os.ReadFile(filepath.Join(filepath.Dir(suite.labctl), "labnode"))
	Expect(err).NotTo(HaveOccurred())
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	Expect(w.WriteHeader(&tar.Header{Name: "labnode", Mode: 0o755, Size: int64(len(program))})).To(Succeed())
	_, err = w.Write(program)
	Expect(err).NotTo(HaveOccurred())
	Expect(w.Close()).To(Succeed())
	img, err := mutate.AppendLayers(empty.Image, static.NewLayer(files.Bytes(), types.DockerUncompressedLayer))
	Expect(err).NotTo(HaveOccurred())
	config, err := img.ConfigFile()
	Expect(err).NotTo(HaveOccurred())
	config.OS, config.Architecture, config.Config.Entrypoint = "linux", "amd64", append([]string{"/labnode"}, args...)
	img, err = mutate.ConfigFile(img, config)
	Expect(err).NotTo(HaveOccurred())
	return img
}

// findings are those of a diagnosis that nothing fails for.
func (l *lab) findings(ctx context.Context) []symptom.Finding {
	GinkgoHelper()
	var report struct{ Findings []symptom.Finding }
	Expect(json.Unmarshal([]byte(l.must(ctx, "diagnose", "-o", "json")), &report)).To(Succeed())
	return report.Findings
}
