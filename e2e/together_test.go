//go:build e2e

package e2e

import (
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("two at once", Label("wide"), Serial, func() {
	It("a second labctl on a lab ends at once and names the first", Label("ci"), func(ctx SpecContext) {
		l := useLab("e2e-lock", 44, 1, 1)
		begun := make(chan struct{})
		once := sync.OnceFunc(func() { close(begun) })
		first := l.start(ctx, func(*running, string) { once() }, "up", "--until", "machines", "-o", "json")
		Eventually(begun).WithContext(ctx).Should(BeClosed())
		for _, verb := range []string{"up", "down"} {
			second := l.run(ctx, verb)
			Expect(second.code).To(Equal(1), verb)
			Expect(second.took).To(BeNumerically("<", 5*time.Second), verb)
			Expect(second.stderr).To(MatchRegexp(`lab e2e-lock is in use by labctl up \(process %d, `, first.cmd.Process.Pid), verb)
		}
		first.signal(syscall.SIGINT)
		Expect(first.wait().code).To(Equal(130))
		l.must(ctx, "up", "--until", "machines")
	}, SpecTimeout(2*time.Minute))

	It("two labs live side by side, and one outlives the other", Label("Slow"), func(ctx SpecContext) {
		labs := []*lab{useLab("e2e-left", 45, 1, 1), useLab("e2e-right", 46, 1, 1)}
		ups := []*running{labs[0].start(ctx, nil, "up", "-o", "json"), labs[1].start(ctx, nil, "up", "-o", "json")}
		for _, up := range ups {
			r := up.wait()
			Expect(r.code).To(BeZero(), "up: %s", r)
		}
		for _, l := range labs {
			l.expectHealthy(ctx)
		}
		lives := labs[1].lives(ctx)
		labs[0].down(ctx)
		labs[1].expectHealthy(ctx)
		Expect(labs[1].lives(ctx)).To(Equal(lives))
	}, SpecTimeout(4*time.Minute))
})
