//go:build e2e

package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8slab/config"
	"k8slab/scenarios"
)

// Each lab goes through several versions, with a fault in each upgrade: the recovery is the end of the upgrade. That a fault is met on another node,
// or in an upgrade to another version, is a thing of its own.
var _ = Describe("an upgrade gets over", Label("versions", "Slow", "Disruptive"), Serial, func() {
	It("what would stop it, before it changes anything", func(ctx SpecContext) {
		l := useLab("e2e-upgrade-before", 90, 3, 1)
		l.atVersion(olderVersion)
		l.must(ctx, "up")
		for _, f := range scenarios.All() {
			if f.Upgrade == scenarios.Before {
				l.getsOverInUpgrade(ctx, f.Name)
			}
		}
		l.expectVersion(ctx, olderVersion)
	}, SpecTimeout(15*time.Minute))

	DescribeTable("what stops it half-way", func(ctx SpecContext, number, controlPlanes int, faults ...string) {
		l := useLab("e2e-upgrade-during", number, controlPlanes, 1)
		versions := config.Pinned[len(config.Pinned)-1-len(faults):]
		l.atVersion(versions[0])
		l.must(ctx, "up")
		for i, fault := range faults {
			l.getsOverInUpgrade(ctx, fault)
			l.expectVersion(ctx, versions[i+1])
		}
	},
		Entry("of three control planes", SpecTimeout(25*time.Minute), 91, 3,
			"upgrade-killed-at-etcd@cp1", "upgrade-etcd-broken@cp3", "upgrade-killed-at-apiserver@cp2"),
		Entry("of three control planes, two of which are away", SpecTimeout(25*time.Minute), 92, 3,
			"upgrade-two-at-once", "upgrade-quorum-lost", "upgrade-apiserver-put-back"),
		Entry("of one control plane and a worker", SpecTimeout(15*time.Minute), 93, 1,
			"upgrade-killed-on-worker", "upgrade-image-missing", "upgrade-disk-filled@w1"),
	)
})

// getsOverInUpgrade runs the experiment NAME[@NODE], which must pass.
func (l *lab) getsOverInUpgrade(ctx SpecContext, round string) {
	GinkgoHelper()
	placed, err := scenarios.ParseRound(round)
	Expect(err).NotTo(HaveOccurred())
	var args []string
	if on := placed[0].Node; on != "" {
		args = []string{"--node", on}
	}
	r := l.experiment(ctx, placed[0].Fault, args...)
	Expect(r.Class).To(Equal(scenarios.Passed), "%s: %s", round, r.Reason)
}
