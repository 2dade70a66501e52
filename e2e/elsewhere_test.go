//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8slab/lab/image"
	"k8slab/lab/validate"
)

var _ = Describe("a cluster that is not as the lab makes them", Label("onboard", "Slow"), Serial, Ordered, ContinueOnFailure, func() {
	var l *lab
	BeforeAll(func(ctx SpecContext) {
		l = newLab("e2e-elsewhere", 60, 1, 1)
		DeferCleanup(l.down, NodeTimeout(2*time.Minute))
		text, err := os.ReadFile(l.config)
		Expect(err).NotTo(HaveOccurred())
		text = append(text, "  - {name: cp2, role: control-plane, ip: 10.60.0.12, onboard: true}\n"...)
		Expect(os.WriteFile(l.config, text, 0o600)).To(Succeed())
		l.must(ctx, "up")
	}, NodeTimeout(8*time.Minute))
	AfterEach(func(ctx SpecContext) { l.saveEvidence(ctx) }, NodeTimeout(2*time.Minute))

	It("has its Longhorn and CSI drivers looked at", func(ctx SpecContext) {
		const longhorn, csi = "Longhorn has the disks of w1", "CSI drivers are registered on w1"
		Expect(l.storage(ctx, longhorn)).To(HavePrefix("not-applicable"))
		Expect(l.storage(ctx, csi)).To(HavePrefix("not-applicable"))

		l.kubectl(ctx, "apply", "--server-side", "-f", longhornKinds(ctx))
		l.kubectl(ctx, "wait", "--for=condition=Established", "crd/nodes.longhorn.io")
		l.kubectl(ctx, "create", "namespace", "longhorn-system")
		Expect(l.storage(ctx, longhorn)).To(And(HavePrefix("failed"), ContainSubstring("longhorn-manager has not run there")))
		l.create(ctx, `{"apiVersion": "longhorn.io/v1beta2", "kind": "Node", "metadata": {"name": "w1", "namespace": "longhorn-system"}, "spec": {"allowScheduling": true}}`)
		disk := func(ready string) {
			conditions := fmt.Sprintf(`[{"type": "Ready", "status": %q, "reason": "DiskGone", "message": "no such mount"}, {"type": "Schedulable", "status": "True"}]`, ready)
			l.kubectl(ctx, "-n", "longhorn-system", "patch", "nodes.longhorn.io", "w1", "--subresource=status", "--type=merge", "-p", fmt.Sprintf(
				`{"status": {"conditions": %s, "diskStatus": {"d1": {"diskPath": "/var/lib/longhorn", "storageMaximum": 21474836480, "storageAvailable": 10737418240, "conditions": %s}}}}`,
				strings.ReplaceAll(conditions, ready, "True"), conditions))
		}
		disk("False")
		Expect(l.storage(ctx, longhorn)).To(And(HavePrefix("failed"), ContainSubstring("disk d1 (/var/lib/longhorn)"), ContainSubstring("DiskGone: no such mount")))
		disk("True")
		Expect(l.storage(ctx, longhorn)).To(Equal("passed: w1: 1 disks, 10Gi of 20Gi free"))

		l.create(ctx, `{"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "disk.example"}, "spec": {"storageCapacity": true}}`)
		Expect(l.storage(ctx, csi)).To(And(HavePrefix("warned"), ContainSubstring("no Node has registered a driver")))
		l.kubectl(ctx, "patch", "csinode", "w1", "--type=merge", "-p", `{"spec": {"drivers": [{"name": "disk.example", "nodeID": "w1", "topologyKeys": null}]}}`)
		Expect(l.storage(ctx, csi)).To(And(HavePrefix("failed"), ContainSubstring("publishes no capacity")))
		l.create(ctx, `{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "disk"}, "provisioner": "disk.example"}`)
		l.create(ctx, `{"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity", "metadata": {"name": "w1", "namespace": "longhorn-system"},
			"storageClassName": "disk", "capacity": "5Gi", "nodeTopology": {"matchLabels": {"kubernetes.io/hostname": "w1"}}}`)
		Expect(l.storage(ctx, csi)).To(Equal("passed: w1: disk.example, 5Gi free"))
	}, SpecTimeout(5*time.Minute))

	It("is given a control plane, and loses it again", func(ctx SpecContext) {
		members := func() int { return strings.Count(l.must(ctx, "etcd", "members"), "https://10.60.0.") }
		before := members()
		l.must(ctx, "onboard", "cp2")
		Expect(members()).To(BeNumerically(">", before))
		l.nodes = append(l.nodes, "cp2")
		l.expectHealthy(ctx)
		l.nodes = l.nodes[:len(l.nodes)-1]
		l.must(ctx, "onboard", "cp2", "--rollback", "--yes")
		Expect(members()).To(Equal(before))
		l.becomesWhole(ctx)
	}, SpecTimeout(8*time.Minute))

	It("is joined by a machine of its own while labctl looks on", func(ctx SpecContext) {
		kubeconfig := strings.TrimSpace(l.must(ctx, "kubeconfig", "--path"))
		l.must(ctx, "reset", "w1")
		there := []string{"onboard", "w1", "--kubeconfig", kubeconfig, "--image", image.ProbeImage}
		joins := make(chan result, 1)
		r := l.start(ctx, func(_ *running, line string) {
			if e := parseEvent(line); e.Phase == "node_join_monitoring" && e.State == "started" {
				go func() {
					defer GinkgoRecover()
					joins <- l.run(ctx, "join", "w1")
				}()
			}
		}, append(there, "-o", "json")...).wait()
		Expect(r.code).To(BeZero(), "%s", r)
		Expect((<-joins).code).To(BeZero())

		Expect(l.must(ctx, append(there, "--rollback", "--yes")...)).To(ContainSubstring("onboarding of w1: rolled back"))
		Expect(l.kubectl(ctx, "get", "nodes", "-o", "name")).NotTo(ContainSubstring("w1"))
		l.must(ctx, "rejoin", "w1")
		l.becomesWhole(ctx)
	}, SpecTimeout(8*time.Minute))
})

// becomesWhole waits until nothing is wrong with the nodes that are not to be onboarded: pods come after the nodes.
func (l *lab) becomesWhole(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() []string {
		s, _ := l.status(ctx)
		return s.Problems
	}).WithContext(ctx).WithTimeout(time.Minute).WithPolling(time.Second).Should(BeEmpty())
}

// storage is what `validate storage` finds of w1, as STATUS: DETAIL.
func (l *lab) storage(ctx context.Context, check string) string {
	GinkgoHelper()
	r := l.run(ctx, "validate", "storage", "--node", "w1", "-o", "json")
	var findings []validate.Finding
	Expect(json.Unmarshal([]byte(r.stdout), &findings)).To(Succeed(), "%s", r)
	for _, f := range findings {
		if f.Check == check {
			return string(f.Status) + ": " + f.Detail
		}
	}
	Fail("no check " + check)
	return ""
}

// create makes an object of its JSON.
func (l *lab) create(ctx context.Context, object string) {
	GinkgoHelper()
	r := l.startWith(ctx, strings.NewReader(object), nil, "kubectl", "--", "create", "-f", "-").wait()
	Expect(r.code).To(BeZero(), "%s", r)
}

// longhornKinds is a file with the definitions of Longhorn's kinds of objects, of the module that its manager is built of.
func longhornKinds(ctx context.Context) string {
	GinkgoHelper()
	const module, sum = "github.com/longhorn/longhorn-manager@v1.8.1", "h1:RWAfhAVxxLgQQR+C9VWLNf9oirdz14S69ZW7w/rfkTg="
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Dir = GinkgoT().TempDir() // it is no dependency of this module
	out, err := cmd.Output()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
	var got struct{ Dir, Sum string }
	Expect(json.Unmarshal(out, &got)).To(Succeed())
	Expect(got.Sum).To(Equal(sum))
	return filepath.Join(got.Dir, "k8s", "crds.yaml")
}
