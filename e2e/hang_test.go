//go:build e2e

package e2e

import (
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8slab/lab/health"
)

var _ = Describe("a libvirt daemon that hangs", Label("Disruptive"), Serial, func() {
	It("makes up and status fail in time and is named", Label("ci"), func(ctx SpecContext) {
		l := useLab("e2e-hang", 47, 1, 1)
		l.must(ctx, "up", "--until", "machines")
		resume := l.suspendDaemon()
		// A call to the daemon has 10 seconds; two more are for what is around it.
		for verb, budget := range map[string]time.Duration{"up": 12 * time.Second, "status": health.StatusBudget(2) + 2*time.Second} {
			r := l.run(ctx, verb)
			Expect(r.code).To(Equal(1), "%s: %s", verb, r)
			Expect(r.took).To(BeNumerically("<", budget), verb)
			Expect(r.stderr).To(ContainSubstring("the daemon at "+l.dir("libvirt", "run", "libvirt-sock")+" did not answer in time"), verb)
		}
		resume()
		l.must(ctx, "up", "--until", "machines")
	}, SpecTimeout(3*time.Minute))

	It("does not keep down from removing the lab", Label("nightly", "Slow"), func(ctx SpecContext) {
		before := takeTraces()
		l := useLab("e2e-hang-down", 47, 1, 1)
		l.must(ctx, "up", "--until", "machines")
		l.suspendDaemon()
		l.down(ctx)
		expectNoNewTraces(ctx, before)
	}, SpecTimeout(5*time.Minute))
})

// suspendDaemon stops the lab's own daemon until resume is called, at the latest at the end of the spec.
func (l *lab) suspendDaemon() (resume func()) {
	GinkgoHelper()
	pid := l.daemonPID()
	if pid == 0 {
		Skip("the computer's own daemon serves; it is not the suite's to stop")
	}
	Expect(syscall.Kill(pid, syscall.SIGSTOP)).To(Succeed())
	resume = func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
	DeferCleanup(resume)
	return resume
}
