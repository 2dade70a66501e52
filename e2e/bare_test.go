//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"text/template"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8slab/lab/image"
)

// What the lab's way of joining is worth: the same machines and image, and kubeadm's own commands one after another, as its manual has
// them. The figures are reported; a figure is no reason to fail.
var _ = Describe("up beside bare kubeadm on the same machines", Label("figures", "Slow"), Serial, func() {
	It("forms the same cluster", func(ctx SpecContext) {
		ours := useLab("e2e-ours", 45, 3, 2)
		up := ours.run(ctx, "up")
		Expect(up.code).To(BeZero(), "up: %s", up)
		ours.down(ctx)

		l := useLab("e2e-bare", 46, 3, 2)
		b := &bare{lab: l, endpoint: "10.46.0.10:6443"}
		b.step("machines", func() { l.must(ctx, "up", "--until", "machines") })
		b.step("init cp1", func() { b.initialise(ctx) })
		b.step("flannel", func() { b.kubectl(ctx, b.manifests(), "apply", "-f", "-") })
		join, key := b.joinCommand(ctx)
		for _, n := range l.nodes[1:] {
			b.step("join "+n, func() { b.join(ctx, n, join, key) })
		}
		b.step("ready", func() { b.waitReady(ctx) })
		AddReportEntry("bring-up", fmt.Sprintf("up %.1f s, bare kubeadm %.1f s, ratio %.2f\n%s", up.took.Seconds(), b.total().Seconds(), up.took.Seconds()/b.total().Seconds(), b))
	}, SpecTimeout(15*time.Minute))
})

// bare is a cluster made by hand.
type bare struct {
	lab      *lab
	endpoint string
	names    []string
	took     []time.Duration
}

func (b *bare) step(name string, f func()) {
	begun := time.Now()
	f()
	b.names, b.took = append(b.names, name), append(b.took, time.Since(begun))
}

func (b *bare) total() (sum time.Duration) {
	for _, d := range b.took {
		sum += d
	}
	return sum
}

func (b *bare) String() string {
	var out strings.Builder
	for i, name := range b.names {
		fmt.Fprintf(&out, "  %-10s %5.1f s\n", name, b.took[i].Seconds())
	}
	return out.String()
}

// initialise has what kubeadm needs to run in a container at all, and nothing else.
func (b *bare) initialise(ctx context.Context) {
	GinkgoHelper()
	config := fmt.Sprintf(`apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 10.46.0.11}
nodeRegistration: {ignorePreflightErrors: [SystemVerification, Mem, NumCPU]}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: %s
controlPlaneEndpoint: %s
networking: {podSubnet: 10.244.0.0/16}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
conntrack: {maxPerCore: 0}
`, strings.TrimSpace(b.lab.ssh(ctx, "cp1", "kubeadm", "version", "-o", "short")), b.endpoint)
	b.input(ctx, "cp1", config, "tee", "/run/kubeadm.yaml")
	b.lab.ssh(ctx, "cp1", "kubeadm", "init", "--config", "/run/kubeadm.yaml", "--upload-certs", "--skip-token-print", "--skip-certificate-key-print")
}

func (b *bare) manifests() string {
	GinkgoHelper()
	text, err := os.ReadFile("../lab/health/manifests.yaml")
	Expect(err).NotTo(HaveOccurred())
	var out bytes.Buffer
	Expect(template.Must(template.New("").Parse(string(text))).Execute(&out, map[string]string{
		"VirtualIP": "10.46.0.10", "PodSubnet": "10.244.0.0/16", "FlannelImage": image.FlannelImage, "ProbeImage": image.ProbeImage,
	})).To(Succeed())
	return out.String()
}

// joinCommand makes a token and a certificate key as an administrator does.
func (b *bare) joinCommand(ctx context.Context) (join []string, key string) {
	GinkgoHelper()
	join = strings.Fields(b.lab.ssh(ctx, "cp1", "kubeadm", "token", "create", "--print-join-command"))
	said := strings.Fields(b.lab.ssh(ctx, "cp1", "kubeadm", "init", "phase", "upload-certs", "--upload-certs"))
	return join, said[len(said)-1]
}

func (b *bare) join(ctx context.Context, node string, join []string, key string) {
	GinkgoHelper()
	argv := append(join, "--ignore-preflight-errors", "SystemVerification,Mem,NumCPU")
	if strings.HasPrefix(node, "cp") {
		argv = append(argv, "--control-plane", "--certificate-key", key)
	}
	b.lab.ssh(ctx, node, argv...)
}

func (b *bare) waitReady(ctx context.Context) {
	GinkgoHelper()
	b.kubectl(ctx, "", "wait", "--for=condition=Ready", "nodes", "--all", "--timeout=5m")
	b.kubectl(ctx, "", "rollout", "status", "-n", "kube-system", "deployment/coredns", "--timeout=5m")
	b.kubectl(ctx, "", "rollout", "status", "-n", "k8slab", "daemonset/probe", "--timeout=5m")
}

func (b *bare) kubectl(ctx context.Context, stdin string, args ...string) {
	GinkgoHelper()
	b.input(ctx, "cp1", stdin, append([]string{"kubectl", "--kubeconfig=/etc/kubernetes/admin.conf"}, args...)...)
}

// input runs the command on the node with the text as its standard input.
func (b *bare) input(ctx context.Context, node, stdin string, argv ...string) {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, suite.labctl, append([]string{"-c", b.lab.config, "ssh", node, "--"}, argv...)...)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+suite.home)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s: %s", argv, out)
}
