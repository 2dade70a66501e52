//go:build e2e

package e2e

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8slab/lab/host"
	"k8slab/lab/image"
)

// network is a network namespace that a spec made.
type network struct{ file string }

// newNetwork makes one that lasts until the spec ends.
func newNetwork() network {
	GinkgoHelper()
	return network{fmt.Sprintf("/proc/%d/ns/net", untilTheEnd(exec.Command("cat"), syscall.CLONE_NEWNET))}
}

// untilTheEnd starts a command that ends with its standard input: when the spec ends, or the suite is killed. It must not end with the thread
// that started it, because threads that were in another namespace end early.
func untilTheEnd(cmd *exec.Cmd, flags uintptr) (pid int) {
	GinkgoHelper()
	in, err := cmd.StdinPipe()
	Expect(err).NotTo(HaveOccurred())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	Expect(cmd.Start()).To(Succeed())
	DeferCleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	return cmd.Process.Pid
}

// run runs a command there.
func (n network) run(ctx context.Context, line string) string {
	GinkgoHelper()
	out, err := exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + n.file, "--"}, strings.Fields(line)...)...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s: %s", line, out)
	return string(out)
}

// transport sends requests from there, and believes every server.
func (n network) transport() *http.Transport {
	return &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, kind, address string) (conn net.Conn, err error) {
			d := net.Dialer{Timeout: 5 * time.Second}
			if outer := host.InNamespace(n.file, func() { conn, err = d.DialContext(ctx, kind, address) }); outer != nil {
				return nil, outer
			}
			return conn, err
		}}
}

func (n network) get(url string) (string, error) {
	answer, err := (&http.Client{Timeout: 10 * time.Second, Transport: n.transport()}).Get(url)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(answer.Body)
	return string(text), errors.Join(err, answer.Body.Close())
}

func (n network) listen(address string) (l net.Listener) {
	GinkgoHelper()
	var err error
	Expect(host.InNamespace(n.file, func() { l, err = net.Listen("tcp4", address) })).To(Succeed())
	Expect(err).NotTo(HaveOccurred())
	return l
}

// serve answers requests there.
func (n network) serve(address string, handler http.Handler) {
	GinkgoHelper()
	n.serveOn(n.listen(address), handler)
}

func (n network) serveOn(l net.Listener, handler http.Handler) {
	s := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }()
	DeferCleanup(func() { _ = s.Close() })
}

// internet is a network with a registry and a name server, and the computer that is in it.
type internet struct {
	outside, computer network
	resolv            string       // the computer's resolv.conf
	images            http.Handler // the registry
}

const (
	internetIP       = "192.0.2.1"
	internetRegistry = "registry.example"
)

// newInternet makes the internet that a spec has, and a computer that has nothing but it.
func newInternet(ctx context.Context) internet {
	GinkgoHelper()
	w := internet{outside: newNetwork(), computer: newNetwork(), resolv: filepath.Join(GinkgoT().TempDir(), "resolv.conf")}
	Expect(os.WriteFile(w.resolv, []byte("nameserver "+internetIP+"\n"), 0o600)).To(Succeed())
	w.computer.run(ctx, "ip link set lo up")
	w.outside.run(ctx, "ip link set lo up")
	w.computer.run(ctx, "ip link add up0 type veth peer name in0 netns "+strings.Split(w.outside.file, "/")[2])
	w.computer.run(ctx, "ip address add 192.0.2.2/24 dev up0")
	w.computer.run(ctx, "ip link set up0 up")
	w.outside.run(ctx, "ip address add "+internetIP+"/24 dev in0")
	w.outside.run(ctx, "ip link set in0 up")
	w.computer.run(ctx, "ip route add default via "+internetIP)
	untilTheEnd(exec.Command("nsenter", "--net="+w.outside.file, "--", "sh", "-c", `"$@" & cat; kill $!`, "sh", "dnsmasq", "--keep-in-foreground",
		"--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--user=root", "--pid-file", "--address=/"+internetRegistry+"/"+internetIP, "--local=/"+internetRegistry+"/", "--address=/#/"), 0)
	w.images = registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	w.outside.serve(internetIP+":80", w.images)
	return w
}

// encrypted is the registry once more, in TLS; the file has the authority of its certificate.
func (w internet) encrypted() (authority string) {
	GinkgoHelper()
	public, key, err := ed25519.GenerateKey(nil)
	Expect(err).NotTo(HaveOccurred())
	its := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{internetRegistry}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, // it is its own authority
	}
	certificate, err := x509.CreateCertificate(nil, its, its, public, key)
	Expect(err).NotTo(HaveOccurred())
	pair := tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key}
	w.outside.serveOn(tls.NewListener(w.outside.listen(internetIP+":443"), &tls.Config{Certificates: []tls.Certificate{pair}}), w.images)
	authority = filepath.Join(GinkgoT().TempDir(), "authority.pem")
	Expect(os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), 0o644)).To(Succeed())
	return authority
}

// proxy is one that hands on what is encrypted, and tells what it was asked for.
func (w internet) proxy(port string) (asked func() []string) {
	GinkgoHelper()
	var mu sync.Mutex
	var all []string
	w.outside.serveOn(w.outside.listen(internetIP+":"+port), http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		all = append(all, r.Host)
		mu.Unlock()
		if r.Method != http.MethodConnect {
			http.Error(rw, "only CONNECT", http.StatusMethodNotAllowed)
			return
		}
		there, err := w.outside.transport().DialContext(r.Context(), "tcp4", strings.Replace(r.Host, internetRegistry, internetIP, 1))
		if err != nil {
			http.Error(rw, err.Error(), http.StatusBadGateway)
			return
		}
		here, _, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			_ = there.Close()
			return
		}
		_, _ = here.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
		go func() { _, _ = io.Copy(there, here); _ = there.Close() }()
		_, _ = io.Copy(here, there)
		_ = here.Close()
	}))
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// has puts an image into the registry.
func (w internet) has(ctx context.Context, reference string, img v1.Image) {
	GinkgoHelper()
	tag, err := name.NewTag(internetIP+"/"+reference, name.Insecure)
	Expect(err).NotTo(HaveOccurred())
	Expect(remote.Write(tag, img, remote.WithTransport(w.outside.transport()), remote.WithContext(ctx))).To(Succeed())
}

// enter has labctl run on the computer.
func (w internet) enter() []string {
	return []string{"nsenter", "--net=" + w.computer.file, "--", "unshare", "--mount", "--", "sh", "-c",
		`mount --bind "$0" /etc/resolv.conf && exec "$@"`, w.resolv}
}

// state is what a lab may leave nothing in.
func (w internet) state(ctx context.Context) (all string) {
	GinkgoHelper()
	for _, line := range []string{"ip -brief -4 address", "ip route", "iptables -t nat -S", "iptables -S"} {
		all += w.computer.run(ctx, line)
	}
	return all
}

// apiOnNodePort is a Service that the lab has an answer for without an image: its API server.
const apiOnNodePort = `apiVersion: v1
kind: Service
metadata: {name: api, namespace: default}
spec: {type: NodePort, ports: [{port: 443, targetPort: 6443, nodePort: 30443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: api, namespace: default, labels: {kubernetes.io/service-name: api}}
addressType: IPv4
ports: [{port: 6443}]
endpoints: [{addresses: [10.79.0.11]}]
`

var _ = Describe("a lab with an uplink", Label("wide", "Slow"), Serial, func() {
	It("gets images from a registry of the internet, is reached from the computer, and leaves nothing there", Label("ci"), func(ctx SpecContext) {
		w := newInternet(ctx)
		before := w.state(ctx)
		l := useLab("e2e-uplink", 79, 1, 1)
		l.enter = w.enter()
		l.rewrite("network: {", "network: {uplink: nat, ")
		l.rewrite("nodes:\n", "registries: [{name: "+internetRegistry+", mirrors: ['http://"+internetRegistry+"']}]\nnodes:\n")
		w.has(ctx, "shop/web:1", containerImage("--help"))

		l.must(ctx, "up")
		again := l.run(ctx, "up")
		Expect(again.stderr).To(ContainSubstring("nothing changed"), "%s", again)
		l.pulls(ctx, internetRegistry+"/shop/web:1")

		applied := l.startWith(ctx, strings.NewReader(apiOnNodePort), nil, "kubectl", "--", "apply", "--filename=-").wait()
		Expect(applied.code).To(BeZero(), "%s", applied)
		Eventually(func() (string, error) { return w.computer.get("https://10.79.0.21:30443/livez") }).WithContext(ctx).
			WithTimeout(30 * time.Second).WithPolling(time.Second).Should(Equal("ok"))

		l.must(ctx, "down")
		Expect(w.state(ctx)).To(Equal(before))
	}, SpecTimeout(6*time.Minute))

	It("asks the computer's proxy, believes the computer's authority, and tells pods of the proxy", func(ctx SpecContext) {
		w := newInternet(ctx)
		asked, authority := w.proxy("3128"), w.encrypted()
		l := useLab("e2e-proxy", 79, 1, 1)
		l.enter = w.enter()
		l.rewrite("network: {", fmt.Sprintf("network: {uplink: nat, proxy: 'http://%s:3128', ca_file: %s, ", internetIP, authority))
		l.rewrite("nodes:\n", "addons: [proxy]\nnodes:\n")
		w.has(ctx, "shop/web:1", containerImage("--help"))

		l.must(ctx, "up")
		Expect(l.run(ctx, "up").stderr).To(ContainSubstring("nothing changed"))
		l.pulls(ctx, internetRegistry+"/shop/web:1", "--env=NO_PROXY=its own")
		Expect(asked()).To(ContainElement(internetRegistry + ":443"))
		env := l.kubectl(ctx, "get", "pod", "web", "--output=jsonpath={range .spec.containers[0].env[*]}{.name}={.value}{'\\n'}{end}")
		Expect(env).To(And(ContainSubstring("HTTPS_PROXY=http://"+internetIP+":3128\n"), ContainSubstring("NO_PROXY=its own\n"), ContainSubstring("no_proxy=localhost,")))
		Expect(l.must(ctx, "ssh", "w1", "--", "sh", "-c", `tr '\0' '\n' </proc/$(pidof kubelet)/environ`)).To(ContainSubstring("HTTPS_PROXY=http://" + internetIP))
		l.expectHealthy(ctx)
	}, SpecTimeout(6*time.Minute))

	It("keeps what it pulled for the next one, which has it without the internet", func(ctx SpecContext) {
		cache, err := image.CacheDir()
		Expect(err).NotTo(HaveOccurred())
		kept := filepath.Join(cache, "pulled", internetRegistry)
		Expect(os.RemoveAll(kept)).To(Succeed()) // of a suite that was killed
		DeferCleanup(os.RemoveAll, kept)
		w := newInternet(ctx)
		l := useLab("e2e-cache", 79, 1, 1)
		l.enter = w.enter()
		l.rewrite("network: {", "network: {uplink: nat, ")
		l.rewrite("nodes:\n", "addons: [registry]\nregistries: [{name: "+internetRegistry+", mirrors: ['http://"+internetRegistry+"'], cache: true}]\nnodes:\n")
		w.has(ctx, "shop/web:1", containerImage("--help"))

		l.must(ctx, "up")
		Expect(l.run(ctx, "up").stderr).To(ContainSubstring("nothing changed"))
		l.pulls(ctx, internetRegistry+"/shop/web:1")
		l.expectHealthy(ctx)
		l.must(ctx, "down")

		w.outside.run(ctx, "ip link set in0 down")
		l.must(ctx, "up")
		l.pulls(ctx, internetRegistry+"/shop/web:1")
		l.must(ctx, "down")
	}, SpecTimeout(12*time.Minute))
})

// pulls has the pod web run with the image, which a node has to pull.
func (l *lab) pulls(ctx context.Context, image string, more ...string) {
	GinkgoHelper()
	l.kubectl(ctx, append([]string{"run", "web", "--image=" + image, "--restart=Never"}, more...)...)
	Eventually(func() string { return l.kubectl(ctx, "get", "pod", "web", "--output=jsonpath={.status.phase}") }).WithContext(ctx).
		WithTimeout(time.Minute).WithPolling(time.Second).Should(BeElementOf("Succeeded", "Failed"), "the image did not come")
}
