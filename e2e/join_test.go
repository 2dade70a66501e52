//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8slab/scenarios"
)

// The stories of a worker, on one lab as small as can be, because everything in it takes a fraction of the time: of joins that go wrong, what
// stands in the way is made, the join names it, and what can be repaired is. Those of control planes are in ha_test.go.
var _ = Describe("a worker", Label("wide", "Slow", "Disruptive"), Serial, Ordered, ContinueOnFailure, func() {
	var l *lab

	BeforeAll(func(ctx SpecContext) {
		l = newLab("e2e-join", 48, 1, 1)
		DeferCleanup(l.down, NodeTimeout(2*time.Minute))
		l.must(ctx, "up")
	}, NodeTimeout(6*time.Minute))

	AfterEach(func(ctx SpecContext) { l.saveEvidence(ctx) }, NodeTimeout(2*time.Minute))

	It("gives pods an image that nodes cannot pull", func(ctx SpecContext) { l.getsAnImage(ctx) }, SpecTimeout(5*time.Minute))

	DescribeTable("that joins names the cause, repairs it and is proven", func(ctx SpecContext, cause string, reset bool, inject func(context.Context, *lab)) {
		l.joinsAfter(ctx, "w1", cause, reset, inject)
	},
		Entry("containerd is stopped", SpecTimeout(2*time.Minute), "runtime-socket-missing", true, func(ctx context.Context, l *lab) {
			l.ssh(ctx, "w1", "systemctl", "stop", "containerd")
		}),
		Entry("containerd is masked", SpecTimeout(2*time.Minute), "runtime-socket-missing", true, func(ctx context.Context, l *lab) {
			l.ssh(ctx, "w1", "systemctl", "mask", "--now", "containerd")
		}),
		Entry("kubelet would run standalone", Label("ci"), SpecTimeout(2*time.Minute), "kubelet-standalone", true, func(ctx context.Context, l *lab) {
			l.ssh(ctx, "w1", "mkdir", "-p", "/etc/systemd/system/kubelet.service.d")
			l.ssh(ctx, "w1", "ln", "-s", "/dev/null", "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf")
			l.ssh(ctx, "w1", "systemctl", "daemon-reload")
		}),
		Entry("it was reset while its Node is Ready", SpecTimeout(2*time.Minute), "node-name-exists", false, func(ctx context.Context, l *lab) {
			l.ssh(ctx, "w1", "labnode", "reset")
		}),
	)

	It("stops at once with the remedy when kubeadm is missing, and goes on when it is back", Label("ci"), func(ctx SpecContext) {
		l.must(ctx, "reset", "w1")
		outside := l.run(ctx, "diagnose", "-o", "json")
		Expect(outside.code).To(Equal(1), "w1 is in no cluster: %s", outside)
		Expect(outside.stdout).To(ContainSubstring("labctl join w1"))
		l.ssh(ctx, "w1", "mv", "/usr/bin/kubeadm", "/root/kubeadm")
		said, r := l.join(ctx, "w1")
		Expect(r.code).To(Equal(1), "join: %s", r)
		Expect(said).To(ContainElement(ContainSubstring("kube-binaries-missing")))
		Expect(r.stderr).To(ContainSubstring("next:"))
		l.ssh(ctx, "w1", "mv", "/root/kubeadm", "/usr/bin/kubeadm")
		l.must(ctx, "join", "w1")
		l.becomesHealthy(ctx)
	}, SpecTimeout(2*time.Minute))

	It("never gave a pod an address of the placeholder, nor containerd a reason to miss its network", func(ctx SpecContext) {
		l.must(ctx, "reset", "w1")
		l.ssh(ctx, "w1", "sh", "-c", "rm -f /etc/cni/net.d/*")
		l.ssh(ctx, "w1", "systemctl", "restart", "containerd")
		l.must(ctx, "join", "w1")
		l.becomesHealthy(ctx)
		Expect(l.kubectl(ctx, "get", "pods", "-A", "-o", "jsonpath={.items[*].status.podIP}")).NotTo(MatchRegexp(`\b198\.1[89]\.`))
	}, SpecTimeout(2*time.Minute))

	It("is repaired in place where the node is a member: the Node stays", Label("ci"), func(ctx SpecContext) {
		uid := l.kubectl(ctx, "get", "node", "w1", "-o", "jsonpath={.metadata.uid}")
		// Of a young container kubelet forgets at its start that it was ready.
		l.kubectl(ctx, "delete", "pod", "-n", "k8slab", "-l", "app=probe", "--field-selector", "spec.nodeName=w1")
		l.becomesHealthy(ctx)
		l.ssh(ctx, "w1", "sh", "-c", "rm -f /etc/cni/net.d/*")
		l.ssh(ctx, "w1", "systemctl", "stop", "kubelet")
		Expect(l.run(ctx, "repair", "--dry-run").stdout).To(And(ContainSubstring("cni-not-initialized on w1: would be repaired"),
			ContainSubstring("kubelet-not-running on w1: would be repaired")))
		Expect(l.ssh(ctx, "w1", "ls", "/etc/cni/net.d")).To(BeEmpty(), "a dry run changed something")
		l.must(ctx, "repair")
		l.becomesHealthy(ctx)
		Consistently(l.problems).WithContext(ctx).WithTimeout(5 * time.Second).Should(BeEmpty())
		Expect(l.kubectl(ctx, "get", "node", "w1", "-o", "jsonpath={.metadata.uid}")).To(Equal(uid))
		Expect(l.run(ctx, "repair").stdout).To(ContainSubstring("nothing to repair"))
	}, SpecTimeout(2*time.Minute))

	It("is well as soon as its repair has ended, which shows every repair whole on a terminal", func(ctx SpecContext) {
		l.must(ctx, "fault", "inject", "stale-cni", "--node", "w1")
		for _, columns := range []int{60, 120} {
			screen := l.onTerminal(ctx, columns, "repair", "--dry-run")
			Expect(strings.Count(screen, "cni-stale-config on w1: would be repaired")).To(Equal(2), "%d columns:\n%s", columns, screen)
			Expect(strings.Join(strings.Fields(screen), " ")).To(And(ContainSubstring("00-old.conflist"), ContainSubstring("wins: pods of several nodes would get the same addresses"),
				ContainSubstring("delete its sandbox; kubelet recreates it")), "%d columns:\n%s", columns, screen)
		}
		r := l.run(ctx, "repair")
		for _, look := range []string{"diagnose", "status"} { // at once
			l.must(ctx, look)
		}
		Expect(r.code).To(BeZero(), "repair: %s", r)
		Expect(strings.Count(r.stdout, "cni-stale-config on w1: repaired")).To(Equal(2), "%s", r)
		l.must(ctx, "fault", "restore")
	}, SpecTimeout(2*time.Minute))

	DescribeTable("is repaired in place where its pod network broke", func(ctx SpecContext, cause, inject string) {
		uid := l.kubectl(ctx, "get", "node", "w1", "-o", "jsonpath={.metadata.uid}")
		l.ssh(ctx, "w1", "sh", "-ec", inject)
		Expect(l.must(ctx, "repair")).To(ContainSubstring(cause))
		l.expectHealthy(ctx)
		Expect(l.kubectl(ctx, "get", "node", "w1", "-o", "jsonpath={.metadata.uid}")).To(Equal(uid))
		Expect(l.must(ctx, "repair")).To(ContainSubstring("nothing to repair"))
	},
		Entry("flannel's word to the plugin is gone", SpecTimeout(2*time.Minute), "flannel-subnet-env-missing", "rm /run/flannel/subnet.env"),
		Entry("a plugin is gone", SpecTimeout(2*time.Minute), "cni-plugin-binary-missing", "rm /opt/cni/bin/host-local /opt/cni/bin/flannel"),
		Entry("nothing but loopback is left", SpecTimeout(2*time.Minute), "cni-not-initialized",
			`rm /etc/cni/net.d/*; echo '{"cniVersion": "1.0.0", "name": "lo", "type": "loopback"}' > /etc/cni/net.d/99-loopback.conf`),
	)

	It("gets its Node back when somebody deleted it, and its pods the addresses of the new one's subnet", func(ctx SpecContext) {
		l.kubectl(ctx, "delete", "node", "w1")
		l.must(ctx, "repair")
		l.becomesHealthy(ctx)
		subnet, err := netip.ParsePrefix(l.kubectl(ctx, "get", "node", "w1", "-o", "jsonpath={.spec.podCIDR}"))
		Expect(err).NotTo(HaveOccurred())
		podIPs := func() []string {
			return strings.Fields(l.kubectl(ctx, "get", "pods", "-n", "k8slab", "-l", "app=probe", "--field-selector", "spec.nodeName=w1", "-o", "jsonpath={.items[*].status.podIP}"))
		}
		Eventually(podIPs).WithContext(ctx).WithTimeout(time.Minute).Should(And(Not(BeEmpty()), HaveEach(WithTransform(netip.MustParseAddr, Satisfy(subnet.Contains)))))
	}, SpecTimeout(3*time.Minute))

	It("has its etcd's snapshot saved and its members shown", Label("ci"), func(ctx SpecContext) {
		Expect(l.must(ctx, "etcd", "members")).To(And(ContainSubstring("leader"), ContainSubstring("healthy")))
		file := l.dir("saved.db")
		l.must(ctx, "etcd", "snapshot", "save", file)
		Expect(file).To(BeAnExistingFile())
		Expect(l.run(ctx, "etcd", "snapshot", "save", file).stderr).To(ContainSubstring("--force"))
		l.must(ctx, "etcd", "snapshot", "save", file, "--force")
	}, SpecTimeout(2*time.Minute))

	It("is open to a user's own commands, journals and files", Label("ci"), func(ctx SpecContext) {
		Expect(l.must(ctx, "kubectl", "get", "pods", "-A")).To(ContainSubstring("kube-apiserver-cp1"))
		Expect(l.must(ctx, "ssh", "w1", "ls", "-d", "/etc/kubernetes")).To(Equal("/etc/kubernetes\n"))
		Expect(l.must(ctx, "host", "exec", "virsh", "-c", l.uri(ctx), "list")).To(ContainSubstring(l.name + "-w1"))
		Expect(strings.Count(l.must(ctx, "logs", "w1", "--unit", "kubelet", "--since", "1h", "-n", "2"), "\n")).To(Equal(2))
		Expect(l.run(ctx, "logs", "w1", "--unit", "kublet").stderr).To(ContainSubstring(`did you mean "kubelet"?`))
		Expect(l.run(ctx, "ssh", "w11").stderr).To(ContainSubstring(`no node "w11"; did you mean "w1"? The lab has cp1, `))

		dir := GinkgoT().TempDir()
		tree := filepath.Join(dir, "it's a \"tree\"")
		Expect(os.MkdirAll(tree, 0o750)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(tree, "a script"), []byte("#!/bin/sh\necho ran\n"), 0o750)).To(Succeed())
		l.must(ctx, "cp", tree, "w1:/tmp/")
		Expect(l.ssh(ctx, "w1", "/tmp/it's a \"tree\"/a script")).To(Equal("ran\n"))
		l.must(ctx, "cp", "w1:/tmp/it's a \"tree\"", filepath.Join(dir, "back"))
		Expect(os.Stat(filepath.Join(dir, "back", "a script"))).To(HaveField("Mode()", os.FileMode(0o750)))
		Expect(l.must(ctx, "cp", "w1:/etc/hostname", "-")).To(Equal("w1\n"))
		l.ssh(ctx, "w1", "rm", "-r", "/tmp/it's a \"tree\"")
	}, SpecTimeout(2*time.Minute))

	for _, f := range scenarios.All() {
		if ofWorkers[f.Name] {
			labels := Label()
			if f.Name == "missing-cni" {
				labels = Label("ci")
			}
			It("gets over "+f.Name+": "+f.Story, labels, func(ctx SpecContext) { l.getsOver(ctx, f) }, SpecTimeout(10*time.Minute))
		}
	}

	It("has no reason for what fails later in a pod whose image could not come", func(ctx SpecContext) {
		l.kubectl(ctx, "run", "web", "--image=docker.io/library/nginx", "--overrides", `{"spec": {"nodeName": "w1"}}`)
		Eventually(func() string {
			return l.kubectl(ctx, "get", "pod", "web", "-o", "jsonpath={.status.containerStatuses[0].state.waiting.reason}")
		}).WithContext(ctx).WithTimeout(90 * time.Second).Should(MatchRegexp("ErrImagePull|ImagePullBackOff"))
		l.kubectl(ctx, "delete", "pod", "web", "--now")
		l.must(ctx, "fault", "inject", "missing-cni", "--node", "w1")
		DeferCleanup(func(ctx SpecContext) { l.must(ctx, "fault", "restore"); l.becomesHealthy(ctx) }, NodeTimeout(2*time.Minute))
		r := l.run(ctx, "diagnose", "-o", "json")
		Expect(r.code).To(Equal(1), "%s", r)
		Expect(firstFinding(r)).To(Equal("cni-not-initialized"), "%s", r)
		Expect(r.stdout).NotTo(ContainSubstring("image-pull-failure"))
	}, SpecTimeout(3*time.Minute))
})

// joinsAfter makes what stands in the way of a join, and wants the join to name it, to repair it and to be proven.
func (l *lab) joinsAfter(ctx context.Context, node, cause string, reset bool, inject func(context.Context, *lab)) {
	GinkgoHelper()
	if reset {
		l.must(ctx, "reset", node)
	}
	inject(ctx, l)
	said, r := l.join(ctx, node)
	Expect(r.code).To(BeZero(), "join: %s", r)
	Expect(said).To(ContainElement(ContainSubstring(cause)), "what the join said")
	l.becomesHealthy(ctx)
}

// join joins the node and returns the details of the events that it showed.
func (l *lab) join(ctx context.Context, node string) (said []string, r result) {
	GinkgoHelper()
	r = l.run(ctx, "join", node, "-o", "json")
	for line := range strings.Lines(r.stdout) {
		said = append(said, parseEvent(line).Detail)
	}
	return said, r
}

// onTerminal is what labctl writes to a terminal of that many columns, without what moves its cursor.
func (l *lab) onTerminal(ctx context.Context, columns int, args ...string) string {
	GinkgoHelper()
	command := fmt.Sprintf("stty cols %d; exec %s", columns, strings.Join(append([]string{suite.labctl, "-c", l.config}, args...), " "))
	cmd := exec.CommandContext(ctx, "script", "--quiet", "--return", "--command", command, "/dev/null")
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+l.home, "TERM=xterm")
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
	return strings.ReplaceAll(regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`).ReplaceAllString(string(out), ""), "\r", "")
}

// becomesHealthy waits for the pods of a node that has just joined: they come after it is Ready.
func (l *lab) becomesHealthy(ctx context.Context) {
	GinkgoHelper()
	Eventually(l.problems).WithContext(ctx).WithTimeout(time.Minute).Should(BeEmpty())
	l.expectHealthy(ctx)
}

func (l *lab) problems(ctx context.Context) []string {
	GinkgoHelper()
	s, _ := l.status(ctx)
	return s.Problems
}

// etcdctl runs etcdctl on the first control plane.
func (l *lab) etcdctl(ctx context.Context, args ...string) {
	GinkgoHelper()
	const pki = "/etc/kubernetes/pki/etcd/"
	l.ssh(ctx, "cp1", append([]string{"etcdctl", "--endpoints", "https://127.0.0.1:2379",
		"--cacert", pki + "ca.crt", "--cert", pki + "peer.crt", "--key", pki + "peer.key"}, args...)...)
}
