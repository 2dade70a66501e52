//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a labctl that was copied", Label("ci"), func() {
	It("needs no file beside it", func(ctx SpecContext) {
		l := useLab("e2e-copied", 69, 1, 0)
		dir := GinkgoT().TempDir()
		program, err := os.ReadFile(suite.labctl)
		Expect(err).NotTo(HaveOccurred())
		copied := filepath.Join(dir, "labctl")
		Expect(os.WriteFile(copied, program, 0o755)).To(Succeed())
		up := exec.CommandContext(ctx, copied, "-c", l.config, "up", "--until", "image")
		up.Dir, up.Env = dir, append(os.Environ(), "XDG_STATE_HOME="+l.home)
		out, err := up.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", out)
		Expect(filepath.Glob(filepath.Join(dir, "*"))).To(Equal([]string{copied}), "what is beside it")
	}, SpecTimeout(2*time.Minute))
})
