//go:build e2e

package e2e

import (
	"encoding/json"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8slab/lab/symptom"
)

// What a node has is what its image has: a file that differs and an image that is gone are named, and labctl repair brings them back.
var _ = Describe("a node that lost a part of its image", Label("wide", "Slow", "Disruptive"), Serial, Ordered, ContinueOnFailure, func() {
	var l *lab

	BeforeAll(func(ctx SpecContext) {
		l = newLab("e2e-files", 63, 1, 1)
		DeferCleanup(l.down, NodeTimeout(2*time.Minute))
		l.must(ctx, "up")
	}, NodeTimeout(6*time.Minute))

	AfterEach(func(ctx SpecContext) { l.saveEvidence(ctx) }, NodeTimeout(2*time.Minute))

	It("differs in nothing while it is healthy", func(ctx SpecContext) {
		for _, name := range l.nodes {
			Expect(l.ssh(ctx, name, "labnode", "files")).To(BeEmpty(), name)
		}
		unpinned := `ctr -n k8s.io images list | grep -v '^REF\|^sha256:' | grep -v io.cri-containerd.pinned=pinned || true`
		Expect(l.ssh(ctx, "w1", "sh", "-c", unpinned)).To(BeEmpty(), "images that kubelet may remove")
	}, SpecTimeout(time.Minute))

	DescribeTable("says what is lost, and gets it back", func(ctx SpecContext, cause symptom.ID, evidence, damage string) {
		l.ssh(ctx, "w1", "sh", "-c", damage)
		var report struct{ Findings []symptom.Finding }
		r := l.run(ctx, "diagnose", "-o", "json")
		Expect(json.Unmarshal([]byte(r.stdout), &report)).To(Succeed(), "%s", r)
		Expect(r.code).To(Equal(1), "%s", r)
		first := report.Findings[0]
		Expect(first.Symptom).To(Equal(cause), "%s", r)
		Expect(first.Repairable).To(BeTrue(), "%s", r)
		Expect(first.Evidence).To(ContainElement(HaveField("Text", ContainSubstring(evidence))), "%s", r)
		Expect(l.run(ctx, "repair", "--dry-run").stdout).To(ContainSubstring(string(cause) + " on w1: would be repaired"))
		Expect(l.must(ctx, "repair")).To(ContainSubstring(string(cause) + " on w1: repaired"))
		l.expectHealthy(ctx)
		Expect(l.must(ctx, "repair")).To(ContainSubstring("nothing to repair"))
		Expect(l.ssh(ctx, "w1", "labnode", "files")).To(BeEmpty())
	},
		Entry("runc is empty", SpecTimeout(3*time.Minute), symptom.FileChanged, "/usr/sbin/runc: it is empty",
			`cp --preserve /usr/sbin/runc /root/runc; : >/root/empty; mv /root/empty /usr/sbin/runc`),
		Entry("labnode is gone", SpecTimeout(3*time.Minute), symptom.FileChanged, "labnode", `rm /usr/bin/labnode`),
		Entry("the pause image was removed", SpecTimeout(3*time.Minute), symptom.ImagePullFailure, "/pause:",
			`crictl rmi "$(ctr -n k8s.io images list -q | grep /pause:)"`),
		Entry("every image that no pod uses was removed", SpecTimeout(3*time.Minute), symptom.ImagePullFailure, "/kube-apiserver:",
			`crictl rmi $(ctr -n k8s.io images list -q | grep '/kube-apiserver:\|/etcd:')`),
		Entry("the configuration of the pod network is cut short", SpecTimeout(3*time.Minute), symptom.CNINotInitialized, "10-flannel.conflist",
			`truncate -s 100 /etc/cni/net.d/10-flannel.conflist`),
		Entry("containerd's configuration cannot be read", SpecTimeout(3*time.Minute), symptom.FileChanged, "/etc/containerd/config.toml",
			`echo '[[[' >>/etc/containerd/config.toml; systemctl restart containerd; true`),
		Entry("a plugin is another program", SpecTimeout(3*time.Minute), symptom.FileChanged, "/opt/cni/bin/bridge", `cp /bin/true /opt/cni/bin/bridge`),
	)

	It("keeps what an administrator had written", func(ctx SpecContext) {
		l.ssh(ctx, "w1", "sh", "-c", `echo '# mine' >>/etc/crictl.yaml`)
		l.must(ctx, "repair")
		Expect(l.ssh(ctx, "w1", "tail", "--lines=1", "/etc/crictl.yaml.k8slab-saved")).To(ContainSubstring("# mine"))
		l.expectHealthy(ctx)
	}, SpecTimeout(2*time.Minute))
})
