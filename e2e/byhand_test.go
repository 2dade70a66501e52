//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8slab/lab/join"
)

// A machine on which somebody runs labnode by hand, with the join command that they were given: the lab does nothing but make the command.
var _ = Describe("labnode join by hand", Label("wide", "Slow", "Disruptive"), Serial, Ordered, ContinueOnFailure, func() {
	var l *lab

	BeforeAll(func(ctx SpecContext) {
		l = newLab("e2e-byhand", 51, 2, 1)
		DeferCleanup(l.down, NodeTimeout(2*time.Minute))
		l.must(ctx, "up")
		l.must(ctx, "reset", "w1")
	}, NodeTimeout(6*time.Minute))

	AfterEach(func(ctx SpecContext) { l.saveEvidence(ctx) }, NodeTimeout(2*time.Minute))

	DescribeTable("names at once what it cannot repair, and says what to do", func(ctx SpecContext, node, cause string, spoil func(context.Context, *lab, string) string) {
		args := []string{"join-command"}
		if node != "w1" {
			l.must(ctx, "reset", node)
			args = append(args, "--control-plane")
		}
		causes, r := l.joinByHand(ctx, node, spoil(ctx, l, l.must(ctx, args...)))
		Expect(r.code).To(Equal(1), "labnode join: %s", r)
		Expect(causes).NotTo(BeEmpty(), "labnode join: %s", r)
		AddReportEntry(cause, causes[0].String())
		Expect(causes[0].text).To(HavePrefix(cause + ":"))
	},
		Entry("the token is unknown", SpecTimeout(8*time.Minute), "w1", "token-expired-or-invalid", func(_ context.Context, _ *lab, command string) string {
			return regexp.MustCompile(`--token \S+`).ReplaceAllString(command, "--token aaaaaa.bbbbbbbbbbbbbbbb")
		}),
		Entry("the token has expired", SpecTimeout(time.Minute), "w1", "token-expired-or-invalid", func(ctx context.Context, l *lab, command string) string {
			id := regexp.MustCompile(`--token ([a-z0-9]+)\.`).FindStringSubmatch(command)[1]
			l.kubectl(ctx, "delete", "secret", "-n", "kube-system", "bootstrap-token-"+id)
			return command
		}),
		Entry("the CA's hash is another cluster's", SpecTimeout(time.Minute), "w1", "ca-cert-hash-mismatch", func(_ context.Context, _ *lab, command string) string {
			return regexp.MustCompile(`sha256:\S+`).ReplaceAllString(command, "sha256:"+strings.Repeat("ab", 32))
		}),
		Entry("the API server's address answers nothing", SpecTimeout(time.Minute), "w1", "apiserver-unreachable", func(_ context.Context, _ *lab, command string) string {
			return strings.Replace(command, "10.51.0.10:6443", "10.51.0.77:6443", 1)
		}),
		Entry("the uploaded certificates are gone", SpecTimeout(time.Minute), "cp2", "certificate-key-expired", func(ctx context.Context, l *lab, command string) string {
			l.kubectl(ctx, "delete", "secret", "-n", "kube-system", "kubeadm-certs")
			return command
		}),
		Entry("a later upload has changed the certificate key", SpecTimeout(time.Minute), "cp2", "certificate-key-invalid", func(_ context.Context, _ *lab, command string) string {
			return regexp.MustCompile(`--certificate-key \S+`).ReplaceAllString(command, "--certificate-key "+strings.Repeat("ab", 32))
		}),
	)

	It("gets a new token through a login on the control plane when its own has expired", func(ctx SpecContext) {
		l.trust(ctx, "w1", "cp1")
		command := regexp.MustCompile(`--token \S+`).ReplaceAllString(l.must(ctx, "join-command"), "--token aaaaaa.bbbbbbbbbbbbbbbb")
		causes, r := l.joinByHand(ctx, "w1", command, "--control-plane-ssh", "root@10.51.0.11")
		Expect(r.code).To(BeZero(), "labnode join: %s", r)
		Expect(causes[0].text).To(HavePrefix("token-expired-or-invalid:"))
	}, SpecTimeout(time.Minute))

	It("deletes its own Node, which a reset has left, through that login", func(ctx SpecContext) {
		l.ssh(ctx, "w1", "labnode", "reset")
		causes, r := l.joinByHand(ctx, "w1", l.must(ctx, "join-command"), "--control-plane-ssh", "root@10.51.0.11")
		Expect(r.code).To(BeZero(), "labnode join: %s", r)
		Expect(causes).NotTo(BeEmpty(), "labnode join: %s", r)
		Expect(causes[0].text).To(HavePrefix("node-name-exists:"))
	}, SpecTimeout(time.Minute))

	It("has kubectl of a control plane's root use the administrator's kubeconfig", func(ctx SpecContext) {
		Expect(l.ssh(ctx, "cp1", "kubectl", "get", "nodes", "-o", "name")).To(ContainSubstring("node/cp1"))
		Expect(l.ssh(ctx, "cp1", "bash", "-lc", "kubectl get nodes -o name")).To(ContainSubstring("node/cp1"))
		r := l.run(ctx, "ssh", "w1", "--", "kubectl", "get", "nodes")
		Expect(r.code).NotTo(BeZero())
		Expect(r.stderr).To(ContainSubstring("localhost:8080"), "a worker has no kubeconfig")
	}, SpecTimeout(time.Minute))

	It("joins, and then changes nothing", func(ctx SpecContext) {
		command := l.must(ctx, "join-command", "--control-plane")
		looked := l.startWith(ctx, strings.NewReader(command), nil, "ssh", "cp2", "--", "labnode", "preflight", "--command-file", "-").wait()
		Expect(looked.code).To(BeZero(), "labnode preflight: %s", looked)
		_, r := l.joinByHand(ctx, "cp2", command)
		Expect(r.code).To(BeZero(), "labnode join: %s", r)
		l.becomesHealthy(ctx)
		again := l.run(ctx, "ssh", "w1", "--", "labnode", "join", "--", "kubeadm", "join", "10.51.0.10:6443", "--token", "aaaaaa.bbbbbbbbbbbbbbbb",
			"--discovery-token-unsafe-skip-ca-verification")
		Expect(again.code).To(BeZero(), "labnode join on a healthy member: %s", again)
		Expect(again.stdout + again.stderr).To(And(ContainSubstring("already a healthy member"), ContainSubstring("warning: the token is on a command line")))
	}, SpecTimeout(2*time.Minute))
})

// cause is one that a join has named, and when.
type cause struct {
	text  string
	after time.Duration
}

func (c cause) String() string { return fmt.Sprintf("%s after %.2f s", c.text, c.after.Seconds()) }

// joinByHand runs labnode on the node with the join command.
func (l *lab) joinByHand(ctx context.Context, node, command string, flags ...string) (causes []cause, r result) {
	GinkgoHelper()
	begun := time.Now()
	run := l.startWith(ctx, strings.NewReader(command), func(_ *running, line string) {
		if text, found := strings.CutPrefix(parseEvent(line).Detail, join.CauseMark); found {
			causes = append(causes, cause{text, time.Since(begun)})
		}
	}, append([]string{"ssh", node, "--", "labnode", "join", "--command-file", "-", "-o", "json"}, flags...)...)
	r = run.wait()
	return causes, r
}

// trust lets root of one node log in as root of another, as the owner of two machines would set it up.
func (l *lab) trust(ctx context.Context, from, to string) {
	GinkgoHelper()
	l.ssh(ctx, from, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/root/.ssh/id_ed25519")
	key := strings.TrimSpace(l.ssh(ctx, from, "cat", "/root/.ssh/id_ed25519.pub"))
	l.ssh(ctx, to, "sh", "-c", `printf '%s\n' "$1" >> /root/.ssh/authorized_keys`, "sh", key)
	host := strings.TrimSpace(l.ssh(ctx, to, "sh", "-c", "cat /etc/ssh/ssh_host_ed25519_key.pub"))
	l.ssh(ctx, from, "sh", "-c", `printf '10.51.0.11 %s\n' "$1" >> /root/.ssh/known_hosts`, "sh", host)
}
