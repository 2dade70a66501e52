//go:build e2e

package e2e

import (
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// On a computer without hardware virtualization the machines are emulated, so this takes minutes, and the lab is as small as can be.
var _ = Describe("a lab of virtual machines", Label("ci", "vms", "Slow"), Serial, func() {
	It("comes up proven healthy, survives a lost machine and leaves nothing", func(ctx SpecContext) {
		before := takeTraces()
		l := useLab("e2e-vm", 47, 1, 1)
		l.configure(virtual)
		up := l.run(ctx, "up")
		Expect(up.code).To(BeZero(), "up: %s", up)
		AddReportEntry("bring-up", up.took.Round(100*time.Millisecond).String())
		l.expectHealthy(ctx)
		Expect(l.ssh(ctx, "cp1", "systemd-detect-virt", "--vm")).NotTo(ContainSubstring("none"))

		again := l.run(ctx, "up")
		Expect(again.stderr).To(ContainSubstring("verified: healthy, nothing changed"), "up: %s", again)

		l.virsh(ctx, "destroy", l.name+"-w1")
		l.must(ctx, "up")
		l.expectHealthy(ctx)
		Expect(strings.Fields(l.kubectl(ctx, "get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"))).To(ConsistOf(l.nodes))

		l.down(ctx)
		expectNoNewTraces(ctx, before)
	}, SpecTimeout(15*time.Minute))
})

// virtual makes a lab one of virtual machines, as small as they can be.
const virtual = "libvirt: {uri: 'qemu:///system'}\nresources: {control_plane: {memory: 4096, disk: 10}, worker: {memory: 2048, disk: 10}}\n"

// configure adds keys to the lab's cluster.yaml.
func (l *lab) configure(yaml string) {
	GinkgoHelper()
	f, err := os.OpenFile(l.config, os.O_APPEND|os.O_WRONLY, 0)
	Expect(err).NotTo(HaveOccurred())
	_, err = f.WriteString(yaml)
	Expect(err).NotTo(HaveOccurred())
	Expect(f.Close()).To(Succeed())
}
