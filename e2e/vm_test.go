//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8slab/lab/host"
	"k8slab/scenarios"
)

// ofVMs are the labels of what every change is tried with on a computer that has hardware virtualization. Elsewhere the machines are emulated,
// which takes a quarter of an hour on a slow one: then the nightly run alone does it.
func ofVMs() Labels {
	if host.KVM() {
		return Label("ci", "vms", "Slow")
	}
	return Label("vms", "Slow")
}

// The lab is as small as can be.
var _ = Describe("a lab of virtual machines", ofVMs(), Serial, func() {
	It("comes up proven healthy, survives a lost machine and leaves nothing", func(ctx SpecContext) {
		before := takeTraces()
		l := useLab("e2e-vm", 47, 1, 1)
		l.configure(virtual)
		up := l.run(ctx, "up")
		Expect(up.code).To(BeZero(), "up: %s", up)
		AddReportEntry("bring-up", up.took.Round(100*time.Millisecond).String())
		l.expectHealthy(ctx)
		Expect(l.ssh(ctx, "cp1", "systemd-detect-virt", "--vm")).NotTo(ContainSubstring("none"))
		// libvirtd leaves the parent of such cgroups; where it once did, the search for traces below finds nothing new.
		for _, hierarchy := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} { // of cgroup v2, and those of v1
			Expect(filepath.Glob(hierarchy + "/machine/*" + l.name + "*")).To(BeEmpty())
		}

		for _, process := range qemus(l.name) {
			owner, err := os.ReadFile(filepath.Join(process, "status"))
			Expect(err).NotTo(HaveOccurred())
			Expect(string(owner)).NotTo(MatchRegexp(`(?m)^Uid:\s+0\s`), "QEMU runs as root")
		}

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

// qemus are the processes of the lab's virtual machines, as directories of /proc.
func qemus(lab string) (found []string) {
	GinkgoHelper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	Expect(err).NotTo(HaveOccurred())
	for _, path := range all {
		if line, err := os.ReadFile(path); err == nil && strings.Contains(string(line), "guest="+lab+"-") {
			found = append(found, filepath.Dir(path))
		}
	}
	Expect(found).NotTo(BeEmpty())
	return found
}

// Each fault finds the lab as a snapshot has it, whatever the one before left.
var _ = Describe("a lab of virtual machines gets over", Label("vms", "Slow", "Disruptive"), Serial, Ordered, ContinueOnFailure, func() {
	var l *lab
	BeforeAll(func(ctx SpecContext) {
		l = newLab("e2e-vm-faults", 53, 1, 1)
		l.configure(virtual)
		DeferCleanup(l.down, NodeTimeout(3*time.Minute))
		l.must(ctx, "up")
		saved := l.run(ctx, "snapshot", "save", "healthy")
		Expect(saved.code).To(BeZero(), "%s", saved)
		AddReportEntry("snapshot saved", saved.took.Round(100*time.Millisecond).String())
	}, NodeTimeout(15*time.Minute))
	BeforeEach(func(ctx SpecContext) {
		steps := map[string]float64{}
		restored := l.start(ctx, func(_ *running, line string) {
			if e := parseEvent(line); e.State == "done" {
				steps[e.Phase] = e.Elapsed
			}
		}, "snapshot", "restore", "healthy", "-o", "json").wait()
		Expect(restored.code).To(BeZero(), "%s", restored)
		Expect(steps).To(HaveKey("API server"))
		AddReportEntry("snapshot restored and proven", fmt.Sprintf("%s, of which the API server's first answer took %.1f s and the Leases' renewal %.1f s",
			restored.took.Round(100*time.Millisecond), steps["API server"], steps["leases"]))
	}, NodeTimeout(5*time.Minute))
	AfterEach(func(ctx SpecContext) { l.saveEvidence(ctx) }, NodeTimeout(3*time.Minute))

	It("the loss of what it did since a snapshot", func(ctx SpecContext) {
		Expect(l.run(ctx, "snapshot", "save", "healthy").stderr).To(ContainSubstring("there is a snapshot healthy"))
		l.kubectl(ctx, "create", "configmap", "later")
		l.must(ctx, "up", "--from", "healthy")
		Expect(l.kubectl(ctx, "get", "configmap", "--output=name")).NotTo(ContainSubstring("later"))
		l.expectHealthy(ctx)
	}, SpecTimeout(25*time.Minute)) // of which the lab itself may take 15

	It("a learner that nobody is, in an etcd of one member", func(ctx SpecContext) {
		l.must(ctx, "fault", "inject", "stale-learner")
		Expect(firstFinding(l.run(ctx, "diagnose", "-o", "json"))).To(Equal("etcd-stale-member"))
		l.must(ctx, "repair")
		Expect(l.must(ctx, "etcd", "members")).NotTo(ContainSubstring("learner"))
		l.must(ctx, "fault", "restore")
		l.expectHealthy(ctx)
	}, SpecTimeout(10*time.Minute))

	It("a labctl that is killed at a write of its state while it saves a snapshot", func(ctx SpecContext) {
		for n := 1; ; n++ {
			r, _ := l.killedAtWrite(ctx, n, "snapshot", "save", "writes")
			l.must(ctx, "up")
			if strings.Contains(l.must(ctx, "snapshot", "list"), "writes") {
				l.must(ctx, "snapshot", "delete", "writes")
			}
			if r.code >= 0 {
				Expect(r.code).To(BeZero(), "%s", r)
				Expect(n).To(BeNumerically(">", 1), "it was never killed")
				break
			}
		}
		l.expectHealthy(ctx)
	}, SpecTimeout(15*time.Minute))

	for _, f := range scenarios.All() {
		if ofWorkers[f.Name] {
			It(f.Name+": "+f.Story, Label(f.Name), func(ctx SpecContext) { l.getsOver(ctx, f) }, SpecTimeout(25*time.Minute))
		}
	}
})

// firstFinding is the cause that a diagnosis says first.
func firstFinding(r result) string {
	GinkgoHelper()
	var report struct {
		Findings []struct{ Symptom string }
	}
	Expect(json.Unmarshal([]byte(r.stdout), &report)).To(Succeed(), "%s", r)
	Expect(report.Findings).NotTo(BeEmpty(), "%s", r)
	return report.Findings[0].Symptom
}

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
