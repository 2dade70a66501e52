//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var onboardingPhases = []string{
	"pre_validation", "gitops_activation", "node_join_monitoring", "storage_integration", "network_validation",
	"monitoring_integration", "security_validation", "post_validation", "health_verification",
}

// addons are all add-ons of a lab, and w3 is the node that is onboarded.
const addons = `addons: [flux, git, sops, local-path, metrics-server, node-exporter, prometheus]
`

// withNewcomer adds the add-ons, the onboarding's configuration and a worker w3 that `up` leaves out.
func (l *lab) withNewcomer(second int, onboard string) {
	GinkgoHelper()
	text, err := os.ReadFile(l.config)
	Expect(err).NotTo(HaveOccurred())
	described, _, _ := strings.Cut(string(text), "addons:")
	newcomer := fmt.Sprintf("  - {name: w3, role: worker, ip: 10.%d.0.23, onboard: true}\n", second)
	all := strings.TrimSuffix(described, newcomer) + newcomer + addons + onboard
	Expect(os.WriteFile(l.config, []byte(all), 0o600)).To(Succeed())
}

var _ = Describe("onboarding a worker", Label("onboard", "Slow"), Serial, Ordered, ContinueOnFailure, func() {
	const second = 59
	var l *lab
	var before string
	BeforeAll(func(ctx SpecContext) {
		l = newLab("e2e-onboard", second, 3, 2)
		DeferCleanup(l.down, NodeTimeout(2*time.Minute))
		l.withNewcomer(second, "")
		l.must(ctx, "up")
		before = l.world(ctx)
	}, NodeTimeout(18*time.Minute))
	AfterEach(func(ctx SpecContext) {
		l.saveEvidence(ctx)
		l.withNewcomer(second, "")
		l.run(ctx, "onboard", "w3", "--rollback", "--yes")
	}, NodeTimeout(3*time.Minute))

	It("changes nothing in a dry run", func(ctx SpecContext) {
		state := l.stateFiles()
		Expect(l.must(ctx, "onboard", "w3", "--dry-run")).To(And(ContainSubstring("push the commit"), ContainSubstring("9. health_verification")))
		Expect(l.world(ctx)).To(Equal(before))
		Expect(l.stateFiles()).To(Equal(state))
	}, SpecTimeout(20*time.Minute)) // with the lab's bring-up, and cold with the compiling of the add-ons

	It("takes it through nine phases, can be watched, and takes it out again", func(ctx SpecContext) {
		var seen onboarding
		r := l.start(ctx, func(_ *running, line string) {
			if e := parseEvent(line); e.Phase == "network_validation" && e.State == "started" {
				seen = l.onboarding(ctx)
			}
		}, "onboard", "w3", "--report", "-o", "json").wait()
		Expect(r.code).To(BeZero(), "%s", r)
		AddReportEntry("onboarding w3", r.took.Round(100*time.Millisecond).String())
		Expect(seen.Condition).To(Equal("working"))
		Expect(seen.CurrentPhase).To(Equal("network_validation"))
		Expect(seen.CompletedPhases).To(Equal(4))

		Expect(l.onboarding(ctx).Condition).To(Equal("completed"))
		l.nodes = append(l.nodes, "w3")
		l.expectHealthy(ctx)
		l.must(ctx, "up")
		Expect(l.kubectl(ctx, "-n", "nodes", "get", "configmap", "node-w3", "-o", "name")).To(ContainSubstring("node-w3"))
		reports, err := filepath.Glob(filepath.Join(l.home, "k8slab", ".logs", l.name, "node-onboarding-w3-*"))
		Expect(err).NotTo(HaveOccurred())
		Expect(reports).To(HaveLen(2), "Markdown and HTML")
		Expect(l.ssh(ctx, "w3", "cat", "/var/lib/k8slab/textfile/k8slab_join.prom")).To(ContainSubstring(`k8slab_join_attempts_total{`))

		l.nodes = l.nodes[:len(l.nodes)-1]
		l.must(ctx, "onboard", "w3", "--rollback", "--yes")
		l.expectWorld(ctx, before)
	}, SpecTimeout(8*time.Minute))

	It("goes on after a kill at every phase, and so does the rollback at every step", func(ctx SpecContext) {
		commits := l.commits(ctx)
		args := []string{"onboard", "w3", "-o", "json"}
		for i, phase := range onboardingPhases {
			Expect(l.killedAt(ctx, phase, args...)).To(BeTrue(), "it came to %s", phase)
			if i > 0 { // when the first phase begins nothing is written yet
				args = []string{"onboard", "w3", "--resume", "-o", "json"}
			}
		}
		l.must(ctx, args...)
		done := l.onboarding(ctx)
		Expect(done.Condition).To(Equal("completed"))
		Expect(l.commits(ctx)).To(Equal(commits+1), "the entry was committed once")

		kills := 0
		for kills < len(done.Changes) && l.killedAt(ctx, "undo ", "onboard", "w3", "--rollback", "--yes", "-o", "json") {
			kills++
		}
		Expect(kills).To(BeNumerically(">", 0), "kills of a rollback of %d changes", len(done.Changes))
		if l.onboarding(ctx).Condition != "rolled_back" {
			l.must(ctx, "onboard", "w3", "--rollback", "--yes")
		}
		Expect(l.commits(ctx)).To(Equal(commits+2), "and taken back once")
		l.expectWorld(ctx, before)
	}, SpecTimeout(15*time.Minute))

	for _, phase := range []string{"node_join_monitoring", "storage_integration", "network_validation"} {
		It("is rolled back from where "+phase+" begins", func(ctx SpecContext) {
			Expect(l.killedAt(ctx, phase, "onboard", "w3", "--skip-validation", "-o", "json")).To(BeTrue())
			l.must(ctx, "onboard", "w3", "--rollback", "--yes")
			l.expectWorld(ctx, before)
		}, SpecTimeout(4*time.Minute))
	}

	It("says what is wrong with the cluster before anything is done", func(ctx SpecContext) {
		l.kubectl(ctx, "-n", "kube-system", "scale", "deployment/coredns", "--replicas=0")
		l.kubectl(ctx, "-n", "kube-system", "wait", "--for=delete", "pod", "-l", "k8s-app=kube-dns", "--timeout=60s")
		refused := l.run(ctx, "onboard", "w3")
		Expect(refused.code).To(Equal(1))
		Expect(refused.stderr).To(And(ContainSubstring("pre_validation"), ContainSubstring("CoreDNS")))
		l.kubectl(ctx, "-n", "kube-system", "scale", "deployment/coredns", "--replicas=2")
		l.kubectl(ctx, "-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=60s")
		l.must(ctx, "onboard", "w3", "--rollback", "--yes")
		l.expectWorld(ctx, before)
	}, SpecTimeout(5*time.Minute))

	It("repairs what the pre-validation finds, if it may", func(ctx SpecContext) {
		l.must(ctx, "fault", "inject", "stale-learner")
		Expect(l.killedAt(ctx, "gitops_activation", "onboard", "w3", "--auto-fix", "-o", "json")).To(BeTrue())
		Expect(l.must(ctx, "etcd", "members")).NotTo(ContainSubstring("learner"))
		l.must(ctx, "fault", "restore")
		l.must(ctx, "onboard", "w3", "--rollback", "--yes")
		l.expectWorld(ctx, before)
	}, SpecTimeout(5*time.Minute))

	It("says who refuses the commit", func(ctx SpecContext) {
		password := filepath.Join(GinkgoT().TempDir(), "password")
		Expect(os.WriteFile(password, []byte("wrong"), 0o600)).To(Succeed())
		l.withNewcomer(second, "onboard: {git: {password_file: "+password+"}}\n")
		refused := l.run(ctx, "onboard", "w3", "--skip-validation")
		Expect(refused.code).To(Equal(1))
		Expect(refused.stderr).To(And(ContainSubstring("gitops_activation"), ContainSubstring("refuses the credentials")))
	}, SpecTimeout(3*time.Minute))

	It("says which budget ran out when the node does not join in time, and goes on", func(ctx SpecContext) {
		l.withNewcomer(second, "onboard: {timeouts: {node_join_monitoring: 2s}}\n")
		late := l.run(ctx, "onboard", "w3", "--skip-validation")
		Expect(late.code).To(Equal(1))
		Expect(late.stderr).To(And(ContainSubstring("node_join_monitoring"), ContainSubstring("2s budget ran out")))
		l.withNewcomer(second, "")
		l.must(ctx, "onboard", "w3", "--resume")
	}, SpecTimeout(6*time.Minute))

	It("says what is wrong with storage, and goes on when it is mended", func(ctx SpecContext) {
		l.kubectl(ctx, "-n", "local-path-storage", "scale", "deployment/local-path-provisioner", "--replicas=0")
		l.withNewcomer(second, "onboard: {timeouts: {storage_integration: 20s}}\n")
		broken := l.run(ctx, "onboard", "w3", "--skip-validation")
		Expect(broken.code).To(Equal(1))
		Expect(broken.stderr).To(And(ContainSubstring("storage_integration"), ContainSubstring("local-path-provisioner")))
		l.kubectl(ctx, "-n", "local-path-storage", "scale", "deployment/local-path-provisioner", "--replicas=1")
		l.withNewcomer(second, "")
		l.must(ctx, "onboard", "w3", "--resume")
	}, SpecTimeout(6*time.Minute))

	It("shuts the known holes of local-path-provisioner", func(ctx SpecContext) {
		class := strings.NewReader(`{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "out"},
			"provisioner": "rancher.io/local-path", "parameters": {"pathPattern": "../../etc"}}`)
		refused := l.startWith(ctx, class, nil, "kubectl", "--", "create", "-f", "-").wait()
		Expect(refused.code).NotTo(BeZero())
		Expect(refused.stderr).To(ContainSubstring("a pathPattern can lead to any directory of the node"))

		const namespace = "local-path-storage"
		l.kubectl(ctx, "-n", namespace, "create", "rolebinding", "editor", "--clusterrole=edit", "--serviceaccount=default:default")
		refused = l.run(ctx, "kubectl", "--", "-n", namespace, "patch", "configmap", "local-path-config", "--as=system:serviceaccount:default:default",
			"--type=merge", "-p", `{"data": {"setup": "id"}}`)
		Expect(refused.code).NotTo(BeZero())
		Expect(refused.stderr).To(ContainSubstring("only the cluster's administrators may say"))
		l.kubectl(ctx, "-n", namespace, "delete", "rolebinding", "editor")
	}, SpecTimeout(time.Minute))

	It("says what is wrong with the pod network of the node, and goes on when it is mended", func(ctx SpecContext) {
		Expect(l.killedAt(ctx, "network_validation", "onboard", "w3", "--skip-validation", "-o", "json")).To(BeTrue())
		l.ssh(ctx, "w3", "mv", "/opt/cni/bin/bridge", "/opt/cni/bin/bridge.gone")
		l.withNewcomer(second, "onboard: {timeouts: {storage_integration: 20s, network_validation: 20s}}\n")
		broken := l.run(ctx, "onboard", "w3", "--resume")
		Expect(broken.code).To(Equal(1))
		Expect(broken.stderr).To(ContainSubstring("bridge"))
		l.ssh(ctx, "w3", "mv", "/opt/cni/bin/bridge.gone", "/opt/cni/bin/bridge")
		l.withNewcomer(second, "")
		l.must(ctx, "onboard", "w3", "--resume")
	}, SpecTimeout(8*time.Minute))
})

var _ = Describe("the metrics of joins", Label("onboard", "Slow"), Serial, func() {
	It("have an alert fire for an attempt that failed", func(ctx SpecContext) {
		l := useLab("e2e-alert", 59, 1, 1)
		text, err := os.ReadFile(l.config)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(l.config, append(text, "addons: [prometheus]\n"...), 0o600)).To(Succeed())
		l.must(ctx, "up")
		alerts := func() string {
			return l.kubectl(ctx, "get", "--raw", "/api/v1/namespaces/monitoring/services/prometheus:http/proxy/api/v1/alerts")
		}
		Expect(alerts()).NotTo(ContainSubstring("NodeJoinFailed"))

		l.must(ctx, "reset", "w1")
		l.ssh(ctx, "w1", "systemd-run", "--quiet", "--collect", "--unit", "holder", "labnode", "validate", "--serve", "127.0.0.1:10250")
		Expect(l.run(ctx, "join", "w1").code).To(Equal(1), "kubelet's port is taken")
		l.ssh(ctx, "w1", "systemctl", "stop", "holder")
		l.must(ctx, "join", "w1")
		Eventually(alerts).WithContext(ctx).WithTimeout(2 * time.Minute).WithPolling(2 * time.Second).Should(
			MatchRegexp(`"alertname":"NodeJoinFailed"[^}]*"node":"w1"[^}]*}.*"state":"firing"`))
	}, SpecTimeout(15*time.Minute))
})

// onboarding is what `onboard --status -o json` says.
type onboarding struct {
	Condition       string `json:"condition"`
	CurrentPhase    string `json:"current_phase"`
	CompletedPhases int    `json:"completed_phases"`
	Changes         []struct {
		Kind, Status string
	} `json:"changes"`
}

func (l *lab) onboarding(ctx context.Context) onboarding {
	GinkgoHelper()
	var o onboarding
	out := l.must(ctx, "onboard", "w3", "--status", "-o", "json")
	Expect(json.Unmarshal([]byte(out), &o)).To(Succeed(), out)
	return o
}

// killedAt runs labctl and kills it with all that it started when a phase begins whose name begins so. It tells whether it came to that.
func (l *lab) killedAt(ctx context.Context, phase string, args ...string) bool {
	GinkgoHelper()
	r := l.start(ctx, func(r *running, line string) {
		if e := parseEvent(line); strings.HasPrefix(e.Phase, phase) && e.State == "started" {
			r.kill()
		}
	}, args...).wait()
	if r.code >= 0 {
		Expect(r.code).To(BeZero(), "%s", r)
	}
	return r.code < 0
}

// world is what an onboarding changes: nodes, etcd's members, machines, the repository's files, and what Flux applied of them.
func (l *lab) world(ctx context.Context) string {
	GinkgoHelper()
	return strings.Join([]string{
		l.kubectl(ctx, "get", "nodes", "-o", "custom-columns=NAME:.metadata.name,UID:.metadata.uid", "--no-headers"),
		l.ssh(ctx, "cp1", "etcdctl", "--endpoints=https://127.0.0.1:2379", "--cacert=/etc/kubernetes/pki/etcd/ca.crt",
			"--cert=/etc/kubernetes/pki/etcd/server.crt", "--key=/etc/kubernetes/pki/etcd/server.key", "member", "list"),
		l.virsh(ctx, "list", "--all", "--name"),
		l.git(ctx, "rev-parse", "main^{tree}"),
		l.kubectl(ctx, "-n", "nodes", "get", "configmaps,secrets", "-o", "name"),
		l.kubectl(ctx, "get", "namespaces", "-o", "name"),
		l.kubectl(ctx, "get", "persistentvolumes", "-o", "name"),
	}, "\n")
}

// expectWorld waits until the world is as before: a namespace of test pods takes a moment to go.
func (l *lab) expectWorld(ctx context.Context, before string) {
	GinkgoHelper()
	Eventually(func() string { return l.world(ctx) }).WithContext(ctx).WithTimeout(30 * time.Second).WithPolling(time.Second).Should(Equal(before))
}

// git asks the lab's repository, in the pod that serves it.
func (l *lab) git(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return l.kubectl(ctx, append([]string{"-n", "gitops", "exec", "deployment/git", "--", "git", "--git-dir=/git/lab.git"}, args...)...)
}

func (l *lab) commits(ctx context.Context) int {
	GinkgoHelper()
	return len(strings.Fields(l.git(ctx, "rev-list", "main")))
}

// stateFiles are the files of onboardings and what they say.
func (l *lab) stateFiles() map[string]string {
	GinkgoHelper()
	files := map[string]string{}
	found, err := filepath.Glob(l.dir("onboard", "*", "*"))
	Expect(err).NotTo(HaveOccurred())
	for _, path := range found {
		data, _ := os.ReadFile(path) // a directory has none
		files[path] = string(data)
	}
	return files
}
