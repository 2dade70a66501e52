//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// The files are those that another lab's image was built from, so that nothing is compiled and the image made of them is found again.
var _ = Describe("a lab whose Kubernetes comes from a directory", Label("nightly", "Slow"), Serial, func() {
	It("refuses files that were changed, and comes up proven healthy", func(ctx SpecContext) {
		built := newLab("e2e-built", 58, 1, 0)
		built.must(ctx, "image", "build")
		cache, err := os.UserCacheDir()
		Expect(err).NotTo(HaveOccurred())
		found, err := filepath.Glob(filepath.Join(cache, "k8slab", "kubernetes-v*", "kubeadm"))
		Expect(err).NotTo(HaveOccurred())
		Expect(found).NotTo(BeEmpty())
		version := strings.Split(filepath.Base(filepath.Dir(found[0])), "-")[1]
		dir := GinkgoT().TempDir()
		copied, err := exec.CommandContext(ctx, "sh", "-c", `cd "$1" && cp kube* "$2" && cd "$2" && sha256sum kube* > SHA256SUMS`, "sh", filepath.Dir(found[0]), dir).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", copied)

		l := useLab("e2e-source", 58, 1, 1)
		l.configure(fmt.Sprintf("kubernetes: {version: %s, source: %s}\n", version, dir))
		kubelet := filepath.Join(dir, "kubelet")
		Expect(os.Rename(kubelet, kubelet+".good")).To(Succeed())
		Expect(os.WriteFile(kubelet, []byte("no program"), 0o755)).To(Succeed())
		refused := l.run(ctx, "up")
		Expect(refused.code).To(Equal(1))
		Expect(refused.stderr).To(ContainSubstring("kubelet has the SHA-256"))

		Expect(os.Rename(kubelet+".good", kubelet)).To(Succeed())
		l.must(ctx, "up")
		l.expectHealthy(ctx)
	}, SpecTimeout(10*time.Minute))
})
