//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8slab/scenarios"
)

// Every change is tried with one fault of each kind; the nightly run makes all of them in a large lab. Those of a worker are made in a lab of one
// control plane and one worker, in which everything is several times faster: of containers with every change, of virtual machines every night.
var ofWorkers = map[string]bool{
	"missing-cni": true, "dead-containerd": true, "kubelet-stopped": true, "duplicate-node": true, "kubeadm-missing": true, "worker-powered-off": true,
}

// ofMembers are those of them that need three members of etcd.
var ofMembers = map[string]bool{"stale-learner": true, "wiped-voter": true}

// Each fault goes the whole way: a healthy lab, the fault, its effect, the diagnosis that names it, the recovery, and the proof that the lab
// is as healthy as before and lost nothing.
var _ = Describe("a lab gets over", Label("faults", "Slow", "Disruptive"), Serial, Ordered, ContinueOnFailure, func() {
	var l *lab
	BeforeAll(func(ctx SpecContext) {
		l = newLab("e2e-faults", 52, 3, 2)
		DeferCleanup(l.down, NodeTimeout(2*time.Minute))
		l.must(ctx, "up")
	}, NodeTimeout(5*time.Minute))
	AfterEach(func(ctx SpecContext) { l.saveEvidence(ctx) }, NodeTimeout(2*time.Minute))

	for _, f := range ofNoUpgrade() {
		It(f.Name+": "+f.Story, Label(f.Name, "nightly"), func(ctx SpecContext) { l.getsOver(ctx, f) }, SpecTimeout(15*time.Minute)) // one that fails ends in a rescue
	}

	It("a lossy link of the control plane that answers for CoreDNS", Label("nightly"), func(ctx SpecContext) {
		DeferCleanup(func(ctx SpecContext) { l.dnsOn(ctx, "null") }, NodeTimeout(2*time.Minute))
		l.dnsOn(ctx, `"cp3"`)
		lossy, _ := scenarios.Lookup("lossy-link")
		l.getsOver(ctx, lossy, "--node", "cp3")
	}, SpecTimeout(15*time.Minute))

	// Those of which an injector's own undoing would leave something: in containerd, in pods' addresses, in etcd.
	It("faults that are taken back as they are", Label("nightly"), func(ctx SpecContext) {
		for _, fault := range []string{"cni-config-moved", "stale-cni", "stale-learner", "etcd-data-corrupt", "quorum-lost"} {
			l.must(ctx, "fault", "inject", fault)
			l.must(ctx, "fault", "restore")
			l.expectHealthy(ctx)
		}
	}, SpecTimeout(10*time.Minute))

	// Others every night: all would take as long as their experiments.
	It("faults whose injection is killed", Label("nightly"), func(ctx SpecContext) {
		moments := random()
		all := ofNoUpgrade()
		kills := 0
		for _, i := range moments.Perm(len(all))[:10] {
			if l.killed(ctx, moment(moments, 2*time.Second), "fault", "inject", all[i].Name) {
				kills++
			}
			l.must(ctx, "fault", "restore")
			l.becomesHealthy(ctx)
		}
		Expect(kills).NotTo(BeZero())
	}, SpecTimeout(10*time.Minute))

	// The last, so that the journals tell of all faults that there were.
	It("leaving nothing in its journals that a diagnosis of text takes for a cause", Label("nightly"), func(ctx SpecContext) {
		l.journalsAreHealthy(ctx)
	}, SpecTimeout(10*time.Minute))
})

var _ = Describe("an experiment that is killed", Label("faults", "nightly", "Slow", "Disruptive"), Serial, func() {
	It("leaves a fault that the next one takes back first", func(ctx SpecContext) {
		l := useLab("e2e-killed", 55, 1, 1)
		l.must(ctx, "up")
		r := l.start(ctx, nil, "fault", "run", "missing-cni")
		Eventually(func() string { return l.must(ctx, "ssh", "w1", "--", "ls", "/etc/cni/net.d") }).WithContext(ctx).WithTimeout(time.Minute).
			WithPolling(50 * time.Millisecond).Should(BeEmpty())
		r.kill()
		Expect(r.wait().code).To(BeNumerically("<", 0), "it was killed in the middle")
		Expect(l.must(ctx, "fault", "list", "-o", "json")).To(ContainSubstring(`"on": "w1"`))

		missing, _ := scenarios.Lookup("missing-cni")
		l.getsOver(ctx, missing)
		Expect(l.must(ctx, "fault", "list", "-o", "json")).NotTo(ContainSubstring(`"on": "w1"`))
	}, SpecTimeout(5*time.Minute))
})

// ofNoUpgrade are the faults of a lab that keeps its version.
func ofNoUpgrade() []scenarios.Fault {
	return slices.DeleteFunc(scenarios.All(), func(f scenarios.Fault) bool { return f.Upgrade != "" })
}

// getsOver runs the experiment of a fault and wants it to pass. A fault that cannot be made in this kind of lab is skipped with the reason, and
// counted apart by the nightly report; none that every change is tried with may be.
func (l *lab) getsOver(ctx SpecContext, f scenarios.Fault, args ...string) {
	GinkgoHelper()
	r := l.experiment(ctx, f, args...)
	if r.Class == scenarios.NotApplicable && !ofWorkers[f.Name] && !ofMembers[f.Name] {
		Skip(r.Reason)
	}
	Expect(r.Class).To(Equal(scenarios.Passed), "%s", r.Reason)
	Expect(r.Detected.Cause).To(Equal(f.Symptom))
	l.expectHealthy(ctx)
}

// dnsOn has both CoreDNS pods on one node, given as JSON, or anywhere.
func (l *lab) dnsOn(ctx context.Context, node string) {
	GinkgoHelper()
	l.kubectl(ctx, "patch", "deployment", "coredns", "-n", "kube-system", "--patch", `{"spec": {"template": {"spec": {"nodeSelector": {"kubernetes.io/hostname": `+node+`}}}}}`)
	l.kubectl(ctx, "rollout", "status", "deployment", "coredns", "-n", "kube-system", "--timeout=90s")
	l.becomesHealthy(ctx)
}

// experiment has labctl run the experiment of a fault.
func (l *lab) experiment(ctx SpecContext, f scenarios.Fault, args ...string) scenarios.Result {
	GinkgoHelper()
	r := l.run(ctx, append([]string{"fault", "run", f.Name, "-o", "json", "--evidence", suite.results}, args...)...)
	var report scenarios.Report
	Expect(json.Unmarshal([]byte(r.stdout), &report)).To(Succeed(), "%s", r)
	Expect(report.Results).To(HaveLen(1))
	AddReportEntry("circle", report.Results[0], ReportEntryVisibilityFailureOrVerbose)
	return report.Results[0]
}
