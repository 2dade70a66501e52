//go:build e2e

package e2e

import (
	"net"
	"os"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a libvirt daemon that appears on the computer after a lab was made", Label("ci", "Disruptive"), Serial, func() {
	It("is not taken for the one that has the lab's machines", func(ctx SpecContext) {
		l := useLab("e2e-daemon", 57, 1, 0)
		Expect(l.must(ctx, "doctor")).To(ContainSubstring("Nothing prevents the lab"))
		l.must(ctx, "up", "--until", "machines")
		if l.daemonPID() == 0 {
			Skip("the computer's own daemon serves this lab")
		}
		disk := func() uint64 {
			info, err := os.Stat(l.dir("machines", "cp1", "disk.img"))
			Expect(err).NotTo(HaveOccurred())
			return info.Sys().(*syscall.Stat_t).Ino
		}
		before := disk()
		listen("/run/libvirt/libvirt-sock")

		status, _ := l.status(ctx) // there is no cluster yet
		Expect(status.Nodes[0].Machine).To(Equal("running"))
		l.must(ctx, "up", "--until", "machines")
		Expect(disk()).To(Equal(before))
	}, SpecTimeout(3*time.Minute))
})

// listen makes a socket that somebody listens at, as systemd does for a daemon that it starts when it is asked.
func listen(path string) {
	GinkgoHelper()
	Expect(os.MkdirAll("/run/libvirt", 0o755)).To(Succeed())
	listener, err := net.Listen("unix", path)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(listener.Close)
}
