//go:build e2e

package e2e

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// An emulated machine takes minutes for cloud-init alone, and the bundle is 1.2 GB for each.
var _ = Describe("a lab of a stock cloud image", Label("hosts", "Slow"), Serial, func() {
	It("is provisioned over SSH and comes up proven healthy, and a machine of it can be lost and started again", func(ctx SpecContext) {
		base := stockImage(ctx)
		before := takeTraces()
		sum := checksum(base)
		l := useLab("e2e-stock", 61, 1, 1)
		l.configure(virtual + fmt.Sprintf("image: {base: %q, distribution: bookworm}\n", base))
		machines := l.run(ctx, "up", "--until", "machines")
		Expect(machines.code).To(BeZero(), "up: %s", machines)
		AddReportEntry("machines booted and provisioned", machines.took.Round(100*time.Millisecond).String())
		up := l.run(ctx, "up")
		Expect(up.code).To(BeZero(), "up: %s", up)
		AddReportEntry("bring-up on provisioned machines", up.took.Round(100*time.Millisecond).String())
		Expect(up.stderr).NotTo(ContainSubstring("provision"))
		l.expectHealthy(ctx)

		Expect(l.ssh(ctx, "w1", "cat", "/proc/cmdline")).To(ContainSubstring("root=LABEL=root"), "its own boot loader's")
		Expect(l.ssh(ctx, "w1", "cloud-init", "status")).To(ContainSubstring("done"))
		Expect(l.ssh(ctx, "w1", "hostname")).To(Equal("w1\n"))
		_, size, _ := strings.Cut(l.ssh(ctx, "w1", "df", "--output=size", "--block-size=1G", "/"), "\n")
		gib, err := strconv.Atoi(strings.TrimSpace(size))
		Expect(err).NotTo(HaveOccurred())
		Expect(gib).To(BeNumerically(">=", 9), "the root has the disk's 10 GiB")

		again := l.run(ctx, "up")
		Expect(again.stderr).To(ContainSubstring("verified: healthy, nothing changed"), "up: %s", again)

		// What it was made to be, it is after a boot too.
		l.virsh(ctx, "destroy", l.name+"-w1")
		l.must(ctx, "up")
		l.expectHealthy(ctx)

		l.down(ctx)
		expectNoNewTraces(ctx, before)
		Expect(checksum(base)).To(Equal(sum), "the image itself is never written")
	}, SpecTimeout(55*time.Minute))
})

func checksum(file string) [sha256.Size]byte {
	GinkgoHelper()
	data, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	return sha256.Sum256(data)
}
