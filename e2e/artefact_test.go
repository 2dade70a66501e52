//go:build e2e

package e2e

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a node image as an artefact", Label("wide", "Slow"), Serial, func() {
	It("goes to a registry, and makes a lab on a computer that has built nothing", func(ctx SpecContext) {
		server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithBlobHandler(registry.NewDiskBlobHandler(GinkgoT().TempDir()))))
		DeferCleanup(server.Close)
		repository := strings.TrimPrefix(server.URL, "http://") + "/k8slab/node"
		here, err := os.UserCacheDir()
		Expect(err).NotTo(HaveOccurred())
		elsewhere, err := os.MkdirTemp(here, "e2e-artefact-")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(os.RemoveAll, elsewhere) // after the lab
		l := useLab("e2e-artefact", 75, 1, 1)
		said := l.must(ctx, "image", "push", repository+":v1")
		from := regexp.MustCompile(`image: \{from: .*\}`).FindString(said) // the line for the other computer's file
		Expect(from).To(ContainSubstring(repository+"@sha256:"), said)

		// The other computer has no cache, and no program that builds.
		GinkgoT().Setenv("XDG_CACHE_HOME", elsewhere)
		GinkgoT().Setenv("PATH", withoutPrograms("go", "mmdebstrap"))
		l.configure(from + "\n")
		begun := time.Now()
		l.must(ctx, "up")
		AddReportEntry("labctl up with an image that is fetched, 1 + 1", time.Since(begun).Round(100*time.Millisecond).String())
		l.expectHealthy(ctx)
		Expect(filepath.Glob(filepath.Join(elsewhere, "k8slab", "kubernetes-*"))).To(BeEmpty(), "it was compiled")
	}, SpecTimeout(8*time.Minute))
})

// withoutPrograms is a PATH that has all programs of this one but those.
func withoutPrograms(names ...string) string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	for _, from := range filepath.SplitList(os.Getenv("PATH")) {
		programs, _ := os.ReadDir(from)
		for _, p := range programs {
			_ = os.Symlink(filepath.Join(from, p.Name()), filepath.Join(dir, p.Name())) // the first of a name counts
		}
	}
	for _, name := range names {
		Expect(os.Remove(filepath.Join(dir, name))).To(Succeed())
	}
	return dir
}
