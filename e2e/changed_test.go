//go:build e2e

package e2e

import (
	"context"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// rewrite replaces a text of the lab's cluster.yaml, for one spec.
func (l *lab) rewrite(old, text string) {
	GinkgoHelper()
	before, err := os.ReadFile(l.config)
	Expect(err).NotTo(HaveOccurred())
	Expect(string(before)).To(ContainSubstring(old))
	Expect(os.WriteFile(l.config, []byte(strings.ReplaceAll(string(before), old, text)), 0o600)).To(Succeed())
	DeferCleanup(func() { Expect(os.WriteFile(l.config, before, 0o600)).To(Succeed()) })
}

var _ = Describe("a cluster.yaml that is edited under its lab", Label("wide"), Serial, Ordered, ContinueOnFailure, func() {
	var l *lab
	const w2 = "  - {name: w2, role: worker, ip: 10.62.0.22}\n"

	BeforeAll(func(ctx SpecContext) {
		l = newLab("e2e-changed", 62, 1, 2)
		DeferCleanup(l.down, NodeTimeout(2*time.Minute))
		l.must(ctx, "up")
	}, NodeTimeout(6*time.Minute))
	AfterEach(func(ctx SpecContext) { l.saveEvidence(ctx) }, NodeTimeout(2*time.Minute))

	domains := func(ctx context.Context) string {
		return l.must(ctx, "host", "exec", "--", "virsh", "-q", "-c", "lxc:///system", "list", "--all") +
			l.must(ctx, "host", "exec", "--", "virsh", "-q", "-c", "qemu:///system", "list", "--all")
	}
	// refused wants each command to name the keys, and up to leave everything as it is.
	refused := func(ctx context.Context, keys ...string) {
		GinkgoHelper()
		before := domains(ctx)
		r := l.run(ctx, "up")
		Expect(r.code).To(Equal(1), "up: %s", r)
		Expect(domains(ctx)).To(Equal(before))
		status, plan := l.run(ctx, "status"), l.run(ctx, "plan")
		Expect(status.code).To(BeZero(), "status: %s", status)
		for _, key := range keys {
			Expect(r.stderr).To(ContainSubstring("\n  " + key + ": made with "))
			Expect(status.stdout).To(ContainSubstring("\n  " + key + ": made with "))
			Expect(plan.stdout).To(ContainSubstring("\n  " + key + ": made with "))
			Expect(l.run(ctx, "diagnose").stderr).To(ContainSubstring(key + ": made with "))
		}
	}

	It("makes no second set of machines by another libvirt, and keeps addresses, roles, disks and versions", func(ctx SpecContext) {
		l.rewrite("name: e2e-changed\n", "name: e2e-changed\nkubernetes: {version: v1.36.2}\nresources: {worker: {disk: 30}}\n")
		l.rewrite("w2, role: worker, ip: 10.62.0.22", "w2, role: control-plane, ip: 10.62.0.29")
		keys := []string{"kubernetes.version", "resources.worker.disk", "nodes[w2].role", "nodes[w2].ip"}
		if os.Getenv("E2E_URI") == "" {
			l.rewrite("nodes:\n", "libvirt: {uri: \"qemu:///system\"}\nnodes:\n")
			keys = append(keys, "libvirt.uri")
		}
		refused(ctx, keys...)
		Expect(l.ssh(ctx, "w2", "hostname")).To(Equal("w2\n"))
	}, SpecTimeout(2*time.Minute))

	It("knows a node that is no longer in the file until it is removed, and makes it again", func(ctx SpecContext) {
		l.rewrite(w2, "")
		refused(ctx, "nodes[w2]")
		Expect(l.must(ctx, "status")).To(MatchRegexp(`(?m)^w2 .*not in cluster.yaml`))
		Expect(l.ssh(ctx, "w2", "hostname")).To(Equal("w2\n"))
		l.must(ctx, "reset", "w2")
		l.must(ctx, "join", "w2")
		l.must(ctx, "reset", "w2", "--remove")
		Expect(domains(ctx)).NotTo(ContainSubstring("-w2 "))
		Expect(l.kubectl(ctx, "get", "nodes", "-o", "name")).NotTo(ContainSubstring("w2"))
		Expect(l.must(ctx, "status")).NotTo(ContainSubstring("w2"))
		l.must(ctx, "up")
	}, SpecTimeout(3*time.Minute))

	It("adds a node, and removes one whose machine is off", Label("ci"), func(ctx SpecContext) {
		l.must(ctx, "up")
		l.expectHealthy(ctx)
		l.must(ctx, "power", "off", "w2")
		l.rewrite(w2, "")
		l.must(ctx, "reset", "w2", "--remove")
		Expect(l.kubectl(ctx, "get", "nodes", "-o", "name")).NotTo(ContainSubstring("w2"))
		l.must(ctx, "up")
	}, SpecTimeout(3*time.Minute))

	It("is applied: a node more, another size, a node less", func(ctx SpecContext) {
		const sized = "resources: {worker: {memory: 3072}}\n"
		unchanged := func() {
			GinkgoHelper()
			again := l.run(ctx, "up")
			Expect(again.code).To(BeZero(), "up: %s", again)
			Expect(again.stderr).To(ContainSubstring("nothing changed"))
			AddReportEntry("up once more", again.took.String())
		}
		l.must(ctx, "up")
		l.rewrite(w2, w2+"  - {name: w3, role: worker, ip: 10.62.0.23}\n")
		Expect(l.must(ctx, "up", "--dry-run")).To(MatchRegexp(`(?m)^join +w3 +to do: `))
		add := l.run(ctx, "up")
		Expect(add.code).To(BeZero(), "up: %s", add)
		AddReportEntry("a worker more, until proven", add.took.String())
		l.must(ctx, "status")
		unchanged()

		l.rewrite("nodes:\n", sized+"nodes:\n")
		l.must(ctx, "up")
		for _, w := range []string{"w1", "w2", "w3"} {
			Expect(l.kubectl(ctx, "get", "node", w, "-o", "jsonpath={.status.capacity.memory} {.spec.unschedulable}")).To(Or(Equal("3Gi "), MatchRegexp(`^30\d{5}Ki $`)))
		}
		unchanged()

		l.rewrite("  - {name: w3, role: worker, ip: 10.62.0.23}\n", "")
		refused(ctx, "nodes[w3]") // there is no terminal to ask on
		no := l.asked(ctx, map[string]string{"Remove w3, with machine and disk? [y/N]": "n"}, "up")
		Expect(no.code).To(Equal(1), "up: %s", no)
		Expect(domains(ctx)).To(ContainSubstring("-w3 "))
		l.must(ctx, "up", "--prune")
		Expect(domains(ctx)).NotTo(ContainSubstring("-w3 "))
		Expect(l.kubectl(ctx, "get", "nodes", "-o", "name")).NotTo(ContainSubstring("w3"))
		unchanged()
		l.rewrite(sized, "") // for the specs after this one
		l.must(ctx, "up")
	}, SpecTimeout(4*time.Minute))

	It("is not needed where the lab's name serves", func(ctx SpecContext) {
		byName := func(args ...string) result {
			return l.startAs(ctx, []string{"--lab", l.name}, nil, nil, args...).wait()
		}
		Expect(byName("kubectl", "--", "get", "nodes", "-o", "name").stdout).To(ContainSubstring("node/cp1"))
		status := byName("status")
		Expect(status.code).To(BeZero(), "status: %s", status)
		Expect(l.labs(ctx)).To(ContainElement(HaveField("Name", l.name)))
	}, SpecTimeout(time.Minute))
})
