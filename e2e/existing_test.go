//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// attachArgs are what somebody says who knows the way in: one node, their key, and the jump host.
func (h *home) attachArgs() []string {
	return []string{"attach", h.login(h.first("control-plane")), "--identity-file", h.key, "--jump", h.user + "@" + h.jump, "--name", h.cluster.name, "--accept-new", "--force"}
}

// readOnly are the verbs that only look.
func (h *home) readOnly() [][]string {
	return [][]string{
		h.attachArgs(), {"status"}, {"diagnose"}, {"diagnose", "-o", "json"}, {"validate", "cluster"}, {"logs", h.nodes[0].name}, {"etcd", "members"},
		{"kubectl", "--", "get", "nodes"},
	}
}

// A cluster that labctl did not make, over SSH.
var _ = Describe("a cluster that exists", Label("foreign", "Slow", "Disruptive"), Serial, Ordered, ContinueOnFailure, func() {
	var h *home
	shared(&h, "e2e-home", 70, homeOptions{controlPlanes: 3, workers: 2})

	It("is looked after as docs/existing-clusters.md tells", func(ctx SpecContext) { h.tellStories(ctx) }, SpecTimeout(20*time.Minute))

	It("is attached within 5 s, in a file without a secret", func(ctx SpecContext) {
		r := h.cluster.run(ctx, h.attachArgs()...)
		Expect(r.code).To(BeZero(), "%s", r)
		Expect(r.stdout).To(ContainSubstring("nothing on the cluster was changed"))
		AddReportEntry("attach", r.took.Round(10*time.Millisecond).String())
		file, err := os.ReadFile(h.cluster.config)
		Expect(err).NotTo(HaveOccurred())
		h.ignoreContainers()
		Expect(string(file)).To(And(ContainSubstring("machines: ssh"), ContainSubstring("k8s.home.lan:6443"), Not(ContainSubstring("PRIVATE KEY"))))
		h.cluster.expectHealthy(ctx)
		Expect(r.took).To(BeNumerically("<=", 5*time.Second))
	}, SpecTimeout(2*time.Minute))

	It("is read without a trace", func(ctx SpecContext) {
		before := h.settledCensus(ctx)
		for _, args := range h.readOnly() {
			h.cluster.must(ctx, args...)
			h.expectNoTrace(ctx, before)
		}
		h.ignoreContainers()
	}, SpecTimeout(10*time.Minute))

	DescribeTable("whose jump host is lost in the middle is a cluster that cannot be reached, and says so", func(ctx SpecContext, lose, back func(context.Context, *home, string)) {
		jump := h.maker.nodes[len(h.maker.nodes)-1]
		before := h.settledCensus(ctx)
		r := h.cluster.start(ctx, nil, "diagnose")
		time.Sleep(moment(random(), 800*time.Millisecond)) // labctl is a process, and the moment is any
		lose(ctx, h, jump)
		ended := r.wait()
		again := h.cluster.run(ctx, "diagnose")
		back(ctx, h, jump)
		for _, r := range []result{ended, again} {
			Expect(r.took).To(BeNumerically("<", time.Minute), "%s", r)
		}
		Expect(again.code).NotTo(BeZero(), "%s", again)
		Expect(again.stdout + again.stderr).To(ContainSubstring(h.jump))
		h.cluster.becomesHealthy(ctx)
		h.expectNoTrace(ctx, before)
	},
		Entry("its SSH server ends", SpecTimeout(4*time.Minute),
			func(ctx context.Context, h *home, jump string) {
				h.root(ctx, jump, "systemctl stop ssh; pkill sshd || true")
			},
			func(ctx context.Context, h *home, jump string) { h.root(ctx, jump, "systemctl start ssh") }),
		Entry("it hangs", SpecTimeout(4*time.Minute),
			func(ctx context.Context, h *home, jump string) { h.maker.virsh(ctx, "suspend", h.maker.name+"-"+jump) },
			func(ctx context.Context, h *home, jump string) { h.maker.virsh(ctx, "resume", h.maker.name+"-"+jump) }),
	)

	It("loses connections at any moment, and has nothing left of them", func(ctx SpecContext) {
		moments, before := random(), h.settledCensus(ctx)
		for range 5 {
			r := h.cluster.start(ctx, nil, "diagnose")
			time.Sleep(moment(moments, 2*time.Second)) // see above
			for _, n := range h.nodes {
				h.root(ctx, n.machine, "pkill -u ops sshd || true")
			}
			Expect(r.wait().took).To(BeNumerically("<", time.Minute))
			h.cluster.must(ctx, "diagnose")
			h.expectNoTrace(ctx, before)
		}
	}, SpecTimeout(5*time.Minute))

	It("has a node on whose disk the login has no room, which is named", func(ctx SpecContext) {
		west := h.first("worker")
		// What a tmpfs of 64 KiB has room for is the key.
		h.root(ctx, west.machine, `cp -a /home/ops /home/.ops
mount -t tmpfs -o size=64k,mode=750 none /home/ops
cp -a /home/.ops/. /home/ops
head -c 1M /dev/zero >/home/ops/full || true`)
		r := h.cluster.run(ctx, "diagnose")
		h.root(ctx, west.machine, "umount --lazy /home/ops; rm -rf /home/.ops")
		Expect(r.took).To(BeNumerically("<", time.Minute))
		if r.code != 0 { // else it found room somewhere else
			Expect(r.stdout + r.stderr).To(And(ContainSubstring(west.name), MatchRegexp("(?i)no space|no room|disk is full")))
		}
		h.cluster.becomesHealthy(ctx)
	}, SpecTimeout(2*time.Minute))

	It("has a worker that got another address, which is named", func(ctx SpecContext) {
		west := h.first("worker")
		const moved = "10.70.0.99"
		move := func(from, to string) {
			h.root(ctx, west.machine, fmt.Sprintf(`dev=$(ip -oneline address show to %s | awk '{ print $2 }')
ip address add %s/24 dev "$dev" && ip address delete %s/24 dev "$dev"
ip route replace default via 10.70.0.1 dev "$dev"
systemctl restart kubelet`, from, to, from))
			Eventually(ctx, func() string { return h.owner(ctx, "get node "+west.name+" -o wide --no-headers") }, time.Minute, time.Second).Should(ContainSubstring(to))
			h.owner(ctx, "delete pods -n kube-flannel --field-selector spec.nodeName="+west.name)
			file, err := os.ReadFile(h.cluster.config)
			Expect(err).NotTo(HaveOccurred())
			r := h.cluster.run(ctx, "diagnose")
			Expect(r.code).To(Equal(1), "%s", r)
			Expect(r.stdout).To(And(ContainSubstring("node-unreachable on "+west.name), ContainSubstring("ip: "+to)))
			Expect(os.WriteFile(h.cluster.config, []byte(strings.ReplaceAll(string(file), from, to)), 0o600)).To(Succeed())
			h.cluster.must(ctx, "status", "--accept-new")
			h.cluster.must(ctx, "diagnose")
		}
		move(west.ip, moved)
		move(moved, west.ip)
	}, SpecTimeout(5*time.Minute))

	It("takes a worker in, in nine phases, and undoes that", func(ctx SpecContext) {
		worker := h.first("worker").name
		h.cluster.must(ctx, "reset", worker, "--yes")
		plan := h.cluster.must(ctx, "onboard", worker, "--dry-run")
		Expect(plan).To(ContainSubstring("join " + worker + " as worker"))
		r := h.cluster.run(ctx, "onboard", worker)
		Expect(r.code).NotTo(BeZero(), "nobody has agreed: %s", r)
		h.cluster.must(ctx, "onboard", worker, "--resume", "--yes")
		h.expectWhole(ctx)
		h.cluster.must(ctx, "onboard", worker, "--rollback", "--yes")
		Expect(h.owner(ctx, "get nodes -o name")).NotTo(ContainSubstring(worker))
		h.cluster.must(ctx, "join", worker, "--yes")
		h.expectWhole(ctx)
	}, SpecTimeout(10*time.Minute))
})

var _ = Describe("a cluster that exists", Label("figures", "Slow"), Serial, func() {
	It("is diagnosed as fast as a lab", func(ctx SpecContext) { // one after the other: both at once are too much for a small computer
		l := useLab("e2e-measure", 71, 3, 2)
		l.must(ctx, "up")
		ours := l.diagnoseTime(ctx)
		l.down(ctx)
		h := newHome(ctx, "e2e-beside", 70, homeOptions{controlPlanes: 3, workers: 2})
		h.expectWhole(ctx)
		h.attach(ctx)
		theirs := h.cluster.diagnoseTime(ctx)
		ratio := theirs.Seconds() / ours.Seconds()
		AddReportEntry("diagnose", fmt.Sprintf("a lab %.2f s, over SSH %.2f s, ratio %.2f", ours.Seconds(), theirs.Seconds(), ratio))
		Expect(ratio).To(BeNumerically("<=", 1.3))
	}, SpecTimeout(20*time.Minute))
})

// diagnoseTime is the median of five.
func (l *lab) diagnoseTime(ctx context.Context) time.Duration {
	GinkgoHelper()
	var took []time.Duration
	for range 5 {
		r := l.run(ctx, "diagnose")
		Expect(r.code).To(BeZero(), "diagnose: %s", r)
		took = append(took, r.took)
	}
	slices.Sort(took)
	return took[2]
}

var _ = Describe("clusters of other layouts", Label("foreign", "Slow"), Serial, func() {
	DescribeTable("are attached and healthy", func(ctx SpecContext, name string, second int, o homeOptions) {
		h := newHome(ctx, name, second, o)
		h.expectWhole(ctx)
		h.attach(ctx)
		h.cluster.must(ctx, "diagnose")
		h.cluster.must(ctx, "etcd", "members")
		h.cluster.must(ctx, "rejoin", h.first("worker").name, "--yes")
		h.expectWhole(ctx)
	},
		Entry("etcd on a machine of its own, and nodes with names of a domain", SpecTimeout(5*time.Minute), "e2e-vault", 74,
			homeOptions{controlPlanes: 1, workers: 1, externalEtcd: true, domain: ".home.lan"}),
		Entry("Kubernetes 1.35", SpecTimeout(30*time.Minute), "e2e-older", 78, homeOptions{controlPlanes: 1, workers: 1, kubernetes: "v1.35.4"}),
	)

	It("are one control plane alone, reached through a jump host by a user whose sudo wants a password", func(ctx SpecContext) {
		h := newHome(ctx, "e2e-sudo", 76, homeOptions{controlPlanes: 1, password: true})
		h.expectWhole(ctx)
		known, err := filepath.Glob(filepath.Join(filepath.Dir(h.cluster.config), ".ssh", "*"))
		Expect(err).NotTo(HaveOccurred())
		Expect(known).To(BeEmpty(), "nobody has logged in yet")
		const question = "assword for sudo"
		right := map[string]string{"[y/N]": "y", question: h.sudo}
		attach := slices.DeleteFunc(h.attachArgs(), func(arg string) bool { return arg == "--accept-new" })
		for _, args := range [][]string{attach, {"status"}, {"diagnose"}, {"etcd", "members"}} {
			r := h.cluster.asked(ctx, right, args...)
			Expect(r.code).To(BeZero(), "%s", r)
			Expect(strings.Count(r.stdout, question)).To(Equal(1), "it is asked for once: %s", r)
			Expect(r.stdout).NotTo(ContainSubstring(h.sudo))
		}
		Expect(h.cluster.keeps(h.sudo)).To(BeEmpty(), "files that have the password")

		wrong := h.cluster.asked(ctx, map[string]string{question: "wrong"}, "diagnose")
		Expect(wrong.code).To(Equal(1), "%s", wrong)
		Expect(wrong.stdout).To(ContainSubstring("password"))
		Expect(wrong.took).To(BeNumerically("<", 30*time.Second))

		nobody := h.cluster.run(ctx, "diagnose") // as cron has it
		Expect(nobody.code).To(Equal(1), "%s", nobody)
		Expect(nobody.stdout + nobody.stderr).To(ContainSubstring("password"))
	}, SpecTimeout(6*time.Minute))
})

// keeps are the files of the owner's that have the text.
func (l *lab) keeps(text string) (files []string) {
	GinkgoHelper()
	Expect(filepath.WalkDir(filepath.Dir(l.config), func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), text) {
			files = append(files, path)
		}
		return err
	})).To(Succeed())
	return files
}

// Machines with kubeadm, kubelet and a runtime, and no cluster.
var _ = Describe("machines that exist", Label("foreign", "Slow"), Serial, func() {
	It("become a cluster, and are taken apart", func(ctx SpecContext) {
		h := newHome(ctx, "e2e-bare", 77, homeOptions{controlPlanes: 3, workers: 2, bare: true})
		h.describe(ctx)
		r := h.cluster.run(ctx, "up", "--accept-new")
		Expect(r.code).To(Equal(2), "nobody has agreed: %s", r)
		r = h.cluster.run(ctx, "up", "--yes")
		Expect(r.code).To(Equal(1), "there is no pod network yet: %s", r)
		Expect(r.stderr).To(ContainSubstring("--pod-network FILE"))

		network, err := filepath.Abs("foreign/flannel.yaml")
		Expect(err).NotTo(HaveOccurred())
		killed := h.cluster.start(ctx, nil, "up", "--yes", "--pod-network", network)
		time.Sleep(moment(random(), time.Minute)) // labctl is a process, and the moment is any
		killed.kill()
		killed.wait()
		h.cluster.must(ctx, "up", "--yes", "--pod-network", network)
		h.expectWhole(ctx)
		Expect(h.owner(ctx, "get secrets -n kube-system --no-headers")).NotTo(Or(ContainSubstring("bootstrap-token-"), ContainSubstring("kubeadm-certs")))
		h.cluster.must(ctx, "up")

		r = h.cluster.run(ctx, "dismantle", "--name", "other", "--yes")
		Expect(r.code).To(Equal(2), "another name: %s", r)
		h.expectWhole(ctx)
		h.cluster.must(ctx, "dismantle", "--name", "home", "--yes")
		for node, left := range h.everywhere(ctx, "ls /etc/kubernetes/*.conf /etc/kubernetes/manifests/*.yaml /var/lib/etcd/member /var/lib/k8slab/joined 2>/dev/null || true") {
			Expect(left).To(BeEmpty(), node)
		}
		h.cluster.must(ctx, "up", "--yes", "--pod-network", network)
		h.expectWhole(ctx)
	}, SpecTimeout(20*time.Minute))
})

// describe writes the cluster.yaml that somebody writes who has machines and no cluster.
func (h *home) describe(ctx context.Context) {
	GinkgoHelper()
	version := strings.TrimSpace(h.root(ctx, h.nodes[0].machine, "kubeadm version -o short"))
	var text strings.Builder
	fmt.Fprintf(&text, `name: home
machines: ssh
ssh: {user: %s, port: %d, identity_file: %s, jump: %s@%s, sudo: true}
kubernetes: {version: %s, ignore_preflight_errors: [SystemVerification, Mem, NumCPU]}
network: {endpoint: "k8s.home.lan:6443", pod_subnet: 10.244.0.0/16}
nodes:
`, h.user, homePort, h.key, h.user, h.jump, version)
	for _, n := range h.nodes {
		fmt.Fprintf(&text, "  - {name: %s, role: %s, ip: %s}\n", n.name, n.role, n.ip)
	}
	Expect(os.WriteFile(h.cluster.config, []byte(text.String()), 0o600)).To(Succeed())
}
