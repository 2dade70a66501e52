//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("what runs in a lab", Label("nightly", "Slow", "Disruptive"), Serial, func() {
	It("is reached from this computer, by kubectl, through a port, and at an address that moves to another node", func(ctx SpecContext) {
		kubeconfig := filepath.Join(GinkgoT().TempDir(), "config")
		GinkgoT().Setenv("KUBECONFIG", kubeconfig)
		l := useLab("e2e-reach", 72, 1, 2)
		l.must(ctx, "up")
		l.must(ctx, "kubeconfig", "--merge")
		Expect(openAPI(kubeconfig).ready(ctx)).To(Succeed())
		info, err := os.Stat(kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))

		l.must(ctx, "addons", "install", "load-balancer")
		l.kubectl(ctx, "-n", "kube-system", "expose", "deployment", "coredns", "--name=web", "--type=LoadBalancer", "--port=80", "--target-port=9153")
		l.openAnswers(ctx, "web", "coredns_build_info")

		address := ""
		Eventually(func() string {
			address = l.kubectl(ctx, "-n", "kube-system", "get", "service", "web", "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}")
			return address
		}).WithContext(ctx).WithTimeout(30 * time.Second).WithPolling(time.Second).Should(Equal("10.72.0.240"))
		answers := func() string {
			return l.run(ctx, "host", "exec", "curl", "--silent", "--max-time", "2", fmt.Sprintf("http://%s/metrics", address)).stdout
		}
		Eventually(answers).WithContext(ctx).WithTimeout(30 * time.Second).WithPolling(time.Second).Should(ContainSubstring("coredns_build_info"))
		owner := strings.TrimSpace(l.kubectl(ctx, "get", "servicel2statuses", "-A", "-o", "jsonpath={.items[0].status.node}"))
		if owner != "cp1" { // without which there is no cluster
			l.must(ctx, "power", "off", owner)
			Eventually(answers).WithContext(ctx).WithTimeout(90 * time.Second).WithPolling(time.Second).Should(ContainSubstring("coredns_build_info"))
		}

		l.down(ctx)
		text, err := os.ReadFile(kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).NotTo(ContainSubstring("e2e-reach"))
	}, SpecTimeout(12*time.Minute)) // the first build of the add-on takes minutes

	It("comes from a registry of the lab, which has one name on nodes and on this computer", func(ctx SpecContext) {
		l := useLab("e2e-registry", 80, 1, 1)
		l.rewrite("nodes:\n", "addons: [registry]\nnodes:\n")
		l.must(ctx, "up")
		url, closed := l.open(ctx, "registry")
		tag, err := name.NewTag(strings.TrimPrefix(url, "http://") + "/shop/web:1")
		Expect(err).NotTo(HaveOccurred())
		Expect(remote.Write(tag, containerImage("--help"), remote.WithContext(ctx))).To(Succeed())
		closed()
		l.pulls(ctx, "localhost:5000/shop/web:1")
		l.expectHealthy(ctx)
	}, SpecTimeout(12*time.Minute))
})

// open opens the Service until closed is called.
func (l *lab) open(ctx context.Context, service string) (url string, closed func()) {
	GinkgoHelper()
	urls := make(chan string, 10)
	r := l.start(ctx, func(_ *running, line string) {
		if strings.HasPrefix(line, "http") {
			urls <- line
		}
	}, "open", service, "--url")
	Eventually(urls).WithContext(ctx).WithTimeout(30 * time.Second).Should(Receive(&url))
	return url, func() {
		GinkgoHelper()
		r.signal(syscall.SIGINT)
		Expect(r.wait().code).To(BeZero())
	}
}

// openAnswers opens the Service, wants the text from it, and closes it again.
func (l *lab) openAnswers(ctx context.Context, service, want string) {
	GinkgoHelper()
	url, closed := l.open(ctx, service)
	answer, err := http.Get(url + "/metrics")
	Expect(err).NotTo(HaveOccurred())
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(string(text)).To(ContainSubstring(want))
	closed()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err == nil {
		_ = conn.Close()
	}
	Expect(err).To(HaveOccurred(), "after the command's end somebody listens at %s", url)
}
