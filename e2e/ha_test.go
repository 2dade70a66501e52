//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8slab/scenarios"
)

// The specs of this container share one lab, because three control planes take a minute. Each leaves it healthy; the last removes it.
var _ = Describe("a lab of three control planes and two workers", Label("wide", "Slow"), Serial, Ordered, ContinueOnFailure, func() {
	var l *lab
	var before traces
	var watched *secretWatch
	var up result

	BeforeAll(func(ctx SpecContext) {
		before = takeTraces()
		l = newLab("e2e-ha", 41, 3, 2)
		DeferCleanup(l.down, NodeTimeout(2*time.Minute))
		watched = watchSecrets(l)
		defer watched.stop()
		up = l.run(ctx, "up", "-o", "json", "--verbose")
	}, NodeTimeout(6*time.Minute))

	AfterEach(func(ctx SpecContext) { l.saveEvidence(ctx) }, NodeTimeout(2*time.Minute))

	It("comes up proven healthy", Label("ci"), func(ctx SpecContext) {
		Expect(up.code).To(BeZero(), "up: %s", up)
		AddReportEntry("bring-up", up.took.Round(100*time.Millisecond).String())
		l.expectHealthy(ctx)
		nodes := strings.Fields(l.kubectl(ctx, "get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"))
		Expect(nodes).To(ConsistOf(l.nodes))
	}, SpecTimeout(8*time.Minute)) // the bring-up counts as the first spec's

	It("has a kubeconfig that works outside the lab's namespace", Label("ci"), func(ctx SpecContext) {
		kubeconfig := strings.TrimSpace(l.must(ctx, "kubeconfig", "--path"))
		Expect(openAPI(kubeconfig).ready(ctx)).To(Succeed())
	}, SpecTimeout(3*time.Minute))

	It("plans every node after what it waits for", Label("ci"), func(ctx SpecContext) {
		var plan struct {
			Steps []struct{ Stage, Node string }
		}
		Expect(json.Unmarshal([]byte(l.must(ctx, "plan", "-o", "json")), &plan)).To(Succeed())
		var order []string
		for _, s := range plan.Steps {
			order = append(order, strings.TrimSuffix(s.Stage+" "+s.Node, " "))
		}
		Expect(order).To(Equal([]string{
			"image", "network", "machines cp1", "machines cp2", "machines cp3", "machines w1", "machines w2",
			"init cp1", "network-plugin", "join cp2", "join cp3", "join w1", "join w2", "proof",
		}))
	}, SpecTimeout(3*time.Minute))

	It("changes nothing when it is up already", Label("ci"), func(ctx SpecContext) {
		then := l.lives(ctx)
		again := l.run(ctx, "up")
		Expect(again.code).To(BeZero(), "up: %s", again)
		AddReportEntry("a second up", again.took.Round(100*time.Millisecond).String())
		Expect(again.stderr).To(ContainSubstring("verified: healthy, nothing changed"))
		Expect(l.lives(ctx)).To(Equal(then))
		Expect(l.kubectl(ctx, "get", "secrets", "-n", "kube-system", "-o", "name", "--field-selector", "type=bootstrap.kubernetes.io/token")).
			To(BeEmpty(), "bootstrap tokens are left")
	}, SpecTimeout(3*time.Minute))

	It("keeps its API and its quorum when the first control plane loses power", Label("ci", "Disruptive"), func(ctx SpecContext) {
		then := l.identity(ctx, "cp1")
		server := openAPI(strings.TrimSpace(l.must(ctx, "kubeconfig", "--path")))
		stop := server.watch(ctx)
		l.virsh(ctx, "destroy", l.name+"-cp1")
		Eventually(server.ready).WithContext(ctx).WithTimeout(30 * time.Second).WithPolling(200 * time.Millisecond).Should(Succeed())
		l.expectQuorumWithout(ctx, "cp1")
		// A write needs a quorum of etcd; a status could be an old one.
		l.kubectl(ctx, "create", "configmap", "-n", "default", "written-without-cp1")
		gap, answers := stop()
		AddReportEntry("longest time without the API", gap.Round(10*time.Millisecond).String())
		Expect(answers).To(BeNumerically(">", 5))
		Expect(gap).To(BeNumerically("<", 30*time.Second))

		l.must(ctx, "up")
		l.expectHealthy(ctx)
		Expect(l.identity(ctx, "cp1")).To(Equal(then), "machine-id and Node of cp1")
	}, SpecTimeout(5*time.Minute))

	It("completes after a machine and its disk were deleted", Label("Disruptive"), func(ctx SpecContext) {
		l.virsh(ctx, "destroy", l.name+"-cp2")
		l.virsh(ctx, "undefine", l.name+"-cp2")
		Expect(os.RemoveAll(l.dir("machines", "cp2"))).To(Succeed())
		l.must(ctx, "up")
		l.expectHealthy(ctx)
	}, SpecTimeout(5*time.Minute))

	It("leaves a healthy member as it is when it is to join", func(ctx SpecContext) {
		then := l.lives(ctx)
		l.must(ctx, "join", "w1")
		l.must(ctx, "join", "cp3")
		Expect(l.lives(ctx)).To(Equal(then))
	}, SpecTimeout(3*time.Minute))

	It("takes the first control plane out and in again", Label("Disruptive"), func(ctx SpecContext) {
		l.must(ctx, "rejoin", "cp1")
		l.becomesHealthy(ctx)
	}, SpecTimeout(4*time.Minute))

	It("is joined again by a repair that may, and not by one that may not", Label("Disruptive"), func(ctx SpecContext) {
		l.must(ctx, "fault", "inject", "etcd-data-corrupt", "--node", "cp3")
		DeferCleanup(func(ctx SpecContext) { l.run(ctx, "fault", "restore") })
		Expect(l.run(ctx, "repair", "--dry-run", "--up-to", "rejoin").stdout).To(ContainSubstring("reset it and join it again"))
		r := l.run(ctx, "repair")
		Expect(r.code).To(Equal(1), "repair: %s", r)
		Expect(strings.Join(strings.Fields(r.stdout), " ")).To(ContainSubstring("labctl repair --up-to rejoin"))
		r = l.run(ctx, "repair", "--up-to", "rejoin")
		Expect(r.code).To(BeZero(), "repair: %s", r)
		Expect(strings.Join(strings.Fields(r.stdout), " ")).To(ContainSubstring("reset it and joined it again"))
		l.expectHealthy(ctx)
	}, SpecTimeout(10*time.Minute))

	It("gets a new machine from a repair that may make one, where somebody's packet filter stands", Label("Disruptive"), func(ctx SpecContext) {
		before := l.ssh(ctx, "cp3", "cat", "/proc/sys/kernel/random/boot_id", "/etc/kubernetes/pki/apiserver.crt")
		l.must(ctx, "fault", "inject", "peer-port-blocked", "--node", "cp3")
		DeferCleanup(func(ctx SpecContext) { l.run(ctx, "fault", "restore") })
		r := l.run(ctx, "repair")
		Expect(r.code).To(Equal(1), "repair: %s", r)
		Expect(strings.Join(strings.Fields(r.stdout), " ")).To(ContainSubstring("labctl repair --up-to recreate"))
		r = l.run(ctx, "repair", "--up-to", "recreate")
		Expect(r.code).To(BeZero(), "repair: %s", r)
		l.expectHealthy(ctx)
		Expect(l.ssh(ctx, "cp3", "cat", "/proc/sys/kernel/random/boot_id", "/etc/kubernetes/pki/apiserver.crt")).NotTo(Equal(before))
	}, SpecTimeout(10*time.Minute))

	It("has a certificate, a kubeconfig, a manifest and an add-on that were lost made again by kubeadm", Label("Disruptive"), func(ctx SpecContext) {
		l.ssh(ctx, "cp2", "sh", "-ec", `: >/etc/kubernetes/pki/apiserver.crt; rm /etc/kubernetes/scheduler.conf /etc/kubernetes/manifests/kube-controller-manager.yaml`)
		l.ssh(ctx, "w1", "sh", "-ec", `: >/etc/kubernetes/kubelet.conf; rm /var/lib/kubelet/kubeadm-flags.env; systemctl restart kubelet || true`)
		l.kubectl(ctx, "delete", "-n", "kube-system", "daemonset/kube-proxy", "configmap/coredns")
		l.kubectl(ctx, "delete", "clusterrolebinding", "kubeadm:kubelet-bootstrap")
		r := l.run(ctx, "repair")
		Expect(r.code).To(BeZero(), "repair: %s", r)
		l.expectHealthy(ctx)
		Expect(l.run(ctx, "repair").stdout).To(ContainSubstring("nothing to repair"))
	}, SpecTimeout(10*time.Minute))

	It("has a control plane join where a phantom learner has etcd's only place", Label("Disruptive"), func(ctx SpecContext) {
		l.joinsAfter(ctx, "cp3", "etcd-too-many-learners", true, func(ctx context.Context, l *lab) {
			l.etcdctl(ctx, "member", "add", "phantom", "--learner", "--peer-urls=https://192.0.2.42:2380")
		})
	}, SpecTimeout(4*time.Minute))

	It("has a join go on when its labctl is interrupted, and a repair follow it to its end", Label("Disruptive"), func(ctx SpecContext) {
		l.must(ctx, "reset", "cp3")
		interrupted := l.start(ctx, func(r *running, line string) {
			if strings.Contains(parseEvent(line).Detail, "as learner") {
				r.signal(syscall.SIGINT)
			}
		}, "join", "cp3", "-o", "json").wait()
		Expect(interrupted.code).To(Equal(130), "it was interrupted as kubeadm added the etcd member")
		l.must(ctx, "join", "w1") // a healthy member; the token that cp3 still needs is none of its business
		Expect(l.run(ctx, "repair", "--dry-run").stdout).To(And(ContainSubstring("kubeadm runs on it"), Not(ContainSubstring("would"))))
		r := l.run(ctx, "repair")
		Expect(r.code).To(BeZero(), "repair: %s", r)
		Expect(r.stdout+r.stderr).NotTo(ContainSubstring("leftover-state"), "it was cleared away")
		l.becomesHealthy(ctx)
	}, SpecTimeout(4*time.Minute))

	for _, f := range scenarios.All() {
		if ofMembers[f.Name] {
			It("gets over "+f.Name+": "+f.Story, Label("Disruptive"), func(ctx SpecContext) { l.getsOver(ctx, f) }, SpecTimeout(15*time.Minute))
		}
	}

	It("shows no secret in its files, logs, output and command lines", Label("ci"), func(ctx SpecContext) {
		expectNoSecrets(ctx, l, watched, up)
	}, SpecTimeout(3*time.Minute))

	It("leaves nothing behind when it is taken down", Label("ci"), func(ctx SpecContext) {
		l.down(ctx)
		expectNoNewTraces(ctx, before)
	}, SpecTimeout(2*time.Minute))
})

// lives tells apart one life of each machine from the next: libvirt's id of the running domain, and when systemd started in it.
func (l *lab) lives(ctx context.Context) map[string]string {
	GinkgoHelper()
	lives := map[string]string{"domains": l.virsh(ctx, "list", "--all", "--uuid", "--name", "--id")}
	for _, n := range l.nodes {
		lives[n] = l.ssh(ctx, n, "sh", "-c", "cat /proc/sys/kernel/random/boot_id; cut -d' ' -f22 /proc/1/stat")
	}
	return lives
}

// identity is who the cluster takes the node for.
func (l *lab) identity(ctx context.Context, node string) string {
	GinkgoHelper()
	return l.ssh(ctx, node, "cat", "/etc/machine-id") +
		l.kubectl(ctx, "get", "node", node, "-o", "jsonpath={.metadata.uid} {.status.nodeInfo.machineID}")
}

// expectQuorumWithout wants status to name the lost node, and the other two control planes to be started voters.
func (l *lab) expectQuorumWithout(ctx context.Context, lost string) {
	GinkgoHelper()
	s, r := l.status(ctx)
	Expect(r.code).To(Equal(1), "status of a lab that lost a node")
	Expect(strings.Join(s.Problems, "\n")).To(ContainSubstring(lost))
	voters := 0
	for _, n := range s.Nodes {
		if n.Name == lost {
			Expect(n.Machine).To(Equal("off"))
		} else if n.Etcd == "voter" && n.Started {
			voters++
		}
	}
	Expect(voters).To(Equal(2), "started voters besides %s", lost)
}
