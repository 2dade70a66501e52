//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8slab/lab/command"
)

// home is a cluster that labctl did not make: foreign/build.sh did. It has what its owner knows.
type home struct {
	maker *lab // its machines; labctl knows nothing else of it there
	// cluster is what is attached to: its labctl runs as somebody who is in the cluster's network, with a home directory of its own.
	cluster *lab
	user    string
	jump    string // HOST of the jump host, whose SSH server has the usual port
	key     string // file of the login's private key
	sudo    string // the password that sudo asks for; "" for none
	nodes   []homeNode
	network int // 10.<network>.0.0/24
	options homeOptions
	faults  map[string]bool // see applies
}

// homeNode is a machine: the name of its Node in the cluster is not its own.
type homeNode struct{ machine, name, ip, role string }

// homePort is where the SSH servers of the nodes listen.
const homePort = 2222

// askEtcd begins scripts that ask a machine's own etcd, as its administrator does.
const askEtcd = `pki=/etc/kubernetes/pki/etcd
ask() { etcdctl --endpoints https://127.0.0.1:2379 --cacert $pki/ca.crt --cert $pki/healthcheck-client.crt --key $pki/healthcheck-client.key "$@"; }`

// homeOptions are what clusters differ in.
type homeOptions struct {
	controlPlanes, workers int
	externalEtcd           bool   // on a machine of its own
	password               bool   // sudo asks for one
	domain                 string // the end of the nodes' names
	kubernetes             string // "" is the lab's version
	bare                   bool   // machines without a cluster
}

// newHome builds the cluster on 10.<second>.0.0/24. It is taken down at the end of the container or spec.
func newHome(ctx context.Context, name string, second int, o homeOptions) *home {
	GinkgoHelper()
	h := &home{user: "ops", network: second, options: o}
	h.maker = &lab{name: name, home: suite.home, config: filepath.Join(suite.home, "e2e", name+".yaml")}
	Expect(os.MkdirAll(filepath.Dir(h.maker.config), 0o700)).To(Succeed())
	DeferCleanup(h.close, NodeTimeout(2*time.Minute))
	h.build(ctx)
	return h
}

// shared has the specs of an Ordered container share a cluster, attached; it is built anew after one that failed.
func shared(h **home, name string, second int, o homeOptions) {
	BeforeAll(func(ctx SpecContext) {
		*h = newHome(ctx, name, second, o)
		(*h).expectWhole(ctx)
		(*h).attach(ctx)
	}, NodeTimeout(10*time.Minute))
	AfterEach(func(ctx SpecContext) { (*h).renew(ctx) }, NodeTimeout(5*time.Minute))
}

// build makes the machines and the cluster, and gives the owner a home directory.
func (h *home) build(ctx context.Context) {
	GinkgoHelper()
	begun, o := time.Now(), h.options
	build := exec.CommandContext(ctx, "./foreign/build.sh", h.maker.config)
	build.Env = append(os.Environ(), "LABCTL="+suite.labctl, "XDG_STATE_HOME="+suite.home, fmt.Sprintf("NETWORK=10.%d.0", h.network),
		fmt.Sprintf("CONTROL_PLANES=%d", o.controlPlanes), fmt.Sprintf("WORKERS=%d", o.workers), "DOMAIN="+o.domain, "KUBERNETES="+o.kubernetes)
	if o.password {
		build.Env = append(build.Env, "SUDO=password")
	}
	if o.bare {
		build.Env = append(build.Env, "BARE=1")
	}
	if o.externalEtcd {
		build.Env = append(build.Env, "ETCD=external")
	}
	build.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	build.Cancel = func() error { return syscall.Kill(-build.Process.Pid, syscall.SIGKILL) }
	out, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "foreign/build.sh: %s", out)
	GinkgoWriter.Printf("foreign/build.sh\n%s", out)
	AddReportEntry("a cluster of kubeadm's own commands", time.Since(begun).Round(100*time.Millisecond).String())
	h.know()
}

// attach is what the owner does first. A cluster that was just built is healthy when flannel has started once more after kube-proxy.
func (h *home) attach(ctx context.Context) {
	GinkgoHelper()
	h.cluster.must(ctx, h.attachArgs()...)
	h.ignoreContainers()
	h.cluster.becomesHealthy(ctx)
}

// renew builds a cluster anew after a spec that failed: the next is about one that is whole.
func (h *home) renew(ctx context.Context) {
	GinkgoHelper()
	if h == nil || !CurrentSpecReport().Failed() {
		return
	}
	h.cluster.saveEvidence(ctx)
	h.close(ctx)
	h.build(ctx)
	h.attach(ctx)
}

// know reads what build.sh left for the owner, and gives the owner a home directory.
func (h *home) know() {
	GinkgoHelper()
	h.maker.nodes, h.nodes = nil, nil
	known := h.maker.config + ".home"
	h.key = filepath.Join(known, "id_ed25519")
	password, err := os.ReadFile(filepath.Join(known, "password"))
	Expect(err).NotTo(HaveOccurred())
	h.sudo = strings.TrimSpace(string(password))
	list, err := os.ReadFile(filepath.Join(known, "nodes"))
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(list)) {
		f := strings.Fields(line)
		n := homeNode{f[0], f[1], f[2], f[3]}
		h.maker.nodes = append(h.maker.nodes, n.machine)
		if n.role == "jump" {
			h.jump = n.ip
			continue
		}
		h.nodes = append(h.nodes, n)
	}
	serve, err := os.ReadFile(h.maker.dir("libvirt", "serve.pid"))
	Expect(err).NotTo(HaveOccurred())
	pid, _, _ := strings.Cut(strings.TrimSpace(string(serve)), " ")
	cache, err := os.UserCacheDir()
	Expect(err).NotTo(HaveOccurred())
	owner := filepath.Join(known, "owner")
	Expect(os.MkdirAll(filepath.Join(owner, ".ssh"), 0o700)).To(Succeed())
	h.cluster = &lab{
		name: "home", home: filepath.Join(owner, "state"), config: filepath.Join(owner, "cluster.yaml"),
		externalEtcd: slices.ContainsFunc(h.nodes, func(n homeNode) bool { return n.role == "etcd" }),
		enter:        []string{"nsenter", "--target=" + pid, "--net", "--", "env", "--unset=SSH_AUTH_SOCK", "HOME=" + owner, "XDG_CACHE_HOME=" + cache},
	}
	for _, n := range h.members() {
		h.cluster.nodes = append(h.cluster.nodes, n.name)
	}
}

// ignoreContainers writes down what the machines cannot have because they are containers, so that kubeadm joins them.
func (h *home) ignoreContainers() {
	GinkgoHelper()
	h.amend("ignore_preflight_errors", `(kubernetes: \{version: [^,}]*)`, "$1, ignore_preflight_errors: [SystemVerification, Mem, NumCPU]")
}

// keepLabnode has labnode stay on the nodes, as who uses labctl there all day does.
func (h *home) keepLabnode() {
	GinkgoHelper()
	h.amend("keep_labnode", `(ssh: \{.*)\}`, "$1, keep_labnode: true}")
}

// retrySoon has a join that fails be tried again after seconds: the labs' experiments wait as long as users do.
func (h *home) retrySoon() {
	GinkgoHelper()
	h.amend("tuning", `\A`, "tuning: {cp_join_retry_sleep_seconds: 2}\n")
}

// amend adds a key to the cluster.yaml, unless it is there.
func (h *home) amend(key, place, with string) {
	GinkgoHelper()
	text, err := os.ReadFile(h.cluster.config)
	Expect(err).NotTo(HaveOccurred())
	if strings.Contains(string(text), key) {
		return
	}
	changed := regexp.MustCompile(place).ReplaceAll(text, []byte(with))
	Expect(changed).NotTo(Equal(text))
	Expect(os.WriteFile(h.cluster.config, changed, 0o644)).To(Succeed())
}

// members are the nodes of the cluster: an etcd of its own is none.
func (h *home) members() []homeNode {
	return slices.DeleteFunc(slices.Clone(h.nodes), func(n homeNode) bool { return n.role == "etcd" })
}

// first is the first node of the role.
func (h *home) first(role string) homeNode {
	GinkgoHelper()
	i := slices.IndexFunc(h.nodes, func(n homeNode) bool { return n.role == role })
	Expect(i).To(BeNumerically(">=", 0), "no node is a %s", role)
	return h.nodes[i]
}

// login is the [USER@]HOST:PORT of a node.
func (h *home) login(n homeNode) string { return fmt.Sprintf("%s@%s:%d", h.user, n.ip, homePort) }

// close takes the machines down, and forgets the owner.
func (h *home) close(ctx context.Context) {
	GinkgoHelper()
	h.maker.down(ctx)
	Expect(os.RemoveAll(h.maker.config + ".home")).To(Succeed())
}

// root runs a script on a machine as somebody at its console: no login, no connection.
func (h *home) root(ctx context.Context, machine, script string) string {
	GinkgoHelper()
	controller := strings.TrimSpace(h.maker.must(ctx, "host", "exec", "--", "virsh", "-q", "-c", "lxc:///system", "domid", h.maker.name+"-"+machine))
	first, err := os.ReadFile(filepath.Join("/proc", controller, "task", controller, "children"))
	Expect(err).NotTo(HaveOccurred())
	out, err := command.Command{Argv: []string{
		"nsenter", "--target=" + strings.Fields(string(first))[0], "--mount", "--net", "--pid", "--uts", "--ipc", "--cgroup", "--",
		"env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "sh", "-c", "cd /; exec sh -s",
	}, Stdin: strings.NewReader("set -eu\n" + script + "\n")}.Run(ctx)
	Expect(err).NotTo(HaveOccurred(), "on %s: %s", machine, script)
	return out
}

// everywhere is root on each of the nodes, by the nodes' names.
func (h *home) everywhere(ctx context.Context, script string) map[string]string {
	GinkgoHelper()
	out := map[string]string{}
	for _, n := range h.nodes {
		out[n.name] = h.root(ctx, n.machine, script)
	}
	return out
}

// owner runs kubectl with the administrator's kubeconfig, on the first control plane as at its console.
func (h *home) owner(ctx context.Context, kubectl string) string {
	GinkgoHelper()
	return h.root(ctx, h.first("control-plane").machine, "kubectl --kubeconfig /etc/kubernetes/admin.conf "+kubectl)
}

// expectWhole looks by hand: every node is Ready under its own name, and every etcd is a voter of as many.
func (h *home) expectWhole(ctx context.Context) {
	GinkgoHelper()
	var names []string
	for line := range strings.Lines(h.owner(ctx, "get nodes --no-headers")) {
		f := strings.Fields(line)
		Expect(f[1]).To(Equal("Ready"), line)
		names = append(names, f[0])
	}
	Expect(names).To(ConsistOf(h.cluster.nodes))
	role := "control-plane"
	if h.cluster.externalEtcd {
		role = "etcd"
	}
	var etcd []string
	for _, n := range h.nodes {
		if n.role == role {
			etcd = append(etcd, n.name)
		}
	}
	members := h.root(ctx, h.first(role).machine, askEtcd+`
ask endpoint health --cluster >&2
ask member list`)
	var voters []string
	for line := range strings.Lines(members) {
		f := strings.Split(strings.TrimSpace(line), ", ") // ID, state, name, peer URL, client URL, whether it is a learner
		Expect(f[1]).To(Equal("started"), line)
		Expect(f[len(f)-1]).To(Equal("false"), line)
		voters = append(voters, f[2])
	}
	Expect(voters).To(ConsistOf(etcd))
}
