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

	"k8slab/lab/command"
	"k8slab/lab/host"
)

// Labs of virtual machines in a computer with systemd, and libvirt as Debian installs it. That computer is a container, so that the machines are
// emulated at one level only.
var _ = Describe("in a Debian with its own libvirt, labs of virtual machines", Label("hosts", "container", "Slow"), Serial, Ordered, ContinueOnFailure, func() {
	var c containerComputer
	var before string
	BeforeAll(func(ctx SpecContext) {
		c = bootContainer(ctx)
		before = c.objects(ctx)
	}, NodeTimeout(20*time.Minute))

	It("come up proven healthy for a member of group libvirt, with a machine of vagrant's", func(ctx SpecContext) {
		l := c.lab("me", "mine", 1)
		v := vagrant{l, "/home/me/vagrant"}
		l.must(ctx, "vagrant", "box")
		added := v.run(ctx, "up", "cp1")
		Expect(added.code).To(BeZero(), "%s", added)
		up := l.run(ctx, "up")
		Expect(up.code).To(BeZero(), "%s", up)
		AddReportEntry("bring-up", up.took.Round(100*time.Millisecond).String())
		l.expectHealthy(ctx)

		v.must(ctx, "destroy", "-f", "cp1")
		l.must(ctx, "down")
		// Root filled this user's cache, but the pool is empty.
		Expect(l.run(ctx, "image", "prune", "--unused-for", "0s").stderr).To(ContainSubstring("next: sudo rm -rf /var/lib/me/cache/k8slab/"))
		Expect(c.objects(ctx)).To(Equal(before))
	}, SpecTimeout(35*time.Minute))

	It("come up proven healthy for root, beside Docker's firewall and after libvirt was restarted", func(ctx SpecContext) {
		l := c.lab("root", "whole", 1)
		c.dropForwarded(ctx)
		checks, _ := l.doctor(ctx)
		Expect(checks["forwarding"].Result).To(Equal(host.Warn))
		c.run(ctx, "sh", "-c", strings.TrimPrefix(checks["forwarding"].Do, "sudo "))
		up := l.run(ctx, "up")
		Expect(up.code).To(BeZero(), "%s", up)
		Expect(up.stderr).To(ContainSubstring("uploading"))
		AddReportEntry("bring-up", up.took.Round(100*time.Millisecond).String())
		c.run(ctx, "systemctl", "daemon-reload")
		c.run(ctx, "systemctl", "restart", "libvirtd")
		Expect(l.run(ctx, "up").stderr).To(ContainSubstring("verified: healthy, nothing changed"))
		l.must(ctx, "down")
	}, SpecTimeout(35*time.Minute))

	// The last, because it prunes the cache.
	It("share what they boot from, have networks of their own, and leave the daemon as it was", func(ctx SpecContext) {
		one, two := c.lab("root", "one", 0), c.lab("root", "two", 0)
		up := one.run(ctx, "up", "--until", "machines")
		Expect(up.code).To(BeZero(), "%s", up)
		AddReportEntry("machine of the first lab", up.took.Round(100*time.Millisecond).String())
		Expect(c.run(ctx, "sh", "-c", `ps -o user= -p "$(cat /run/libvirt/qemu/one-cp1.pid)"`)).To(Equal("libvirt-qemu\n"), "QEMU is not root")
		Expect(c.virsh(ctx, "vol-list", "k8slab")).To(And(ContainSubstring("-cp1.qcow2"), ContainSubstring("k8slab-base-")))
		Expect(one.run(ctx, "diagnose").stdout).NotTo(BeEmpty())

		// The same file with another name.
		up = two.run(ctx, "up", "--until", "machines")
		Expect(up.code).To(BeZero(), "%s", up)
		Expect(up.stderr).NotTo(ContainSubstring("uploading"), "it is there")
		AddReportEntry("machine of the second lab", up.took.Round(100*time.Millisecond).String())
		Expect(c.virsh(ctx, "net-dumpxml", "one")).To(ContainSubstring("10.30.0.1"))
		Expect(c.virsh(ctx, "net-dumpxml", "two")).To(ContainSubstring("10.31.0.1"))

		one.must(ctx, "down")
		Expect(two.ssh(ctx, "cp1", "hostname")).To(Equal("cp1\n"))
		two.must(ctx, "down")
		Expect(one.must(ctx, "image", "list")).To(ContainSubstring("pool k8slab: k8slab-base-"))
		one.must(ctx, "image", "prune", "--unused-for", "1h")
		Expect(c.virsh(ctx, "pool-list", "--all", "--name")).To(ContainSubstring("k8slab"), "it was used just now")
		one.must(ctx, "image", "prune", "--unused-for", "0s")
		Expect(c.objects(ctx)).To(Equal(before))
	}, SpecTimeout(25*time.Minute))
})

// containerComputer is a running one.
type containerComputer struct {
	enter  []string // what runs a command in it
	shared string   // its /var/lib here
}

// vmPackages are for virtual machines, beside hostPackages.
var vmPackages = []string{"libvirt-daemon-driver-qemu", "qemu-system-x86", "uidmap", "vagrant", "vagrant-libvirt"}

// bootContainer has a lab's daemon run the computer: what is left in the lab's cgroups goes when the lab goes.
func bootContainer(ctx context.Context) containerComputer {
	GinkgoHelper()
	l := newLab("e2e-computer", 59, 1, 0)
	node := strings.TrimSpace(l.must(ctx, "image", "build", "--disk"))
	tree := cachedTree(ctx, "bookworm", slices.Concat(hostPackages, vmPackages), filepath.Join(node, "root/etc/apt/sources.list"))
	dir, err := os.MkdirTemp(cacheDir(), "e2e-host.partial-") // beside what it is linked to
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	DeferCleanup(l.down, NodeTimeout(2*time.Minute))
	l.must(ctx, "up", "--until", "network")

	root := filepath.Dir(filepath.Dir(suite.labctl))
	copies := map[string]string{ // into the tree, where the machine's first process expects them, and into the computer's own files
		filepath.Join(node, "root/usr/lib/k8slab"): filepath.Join(tree, "usr/lib/k8slab"),
		suite.labctl: filepath.Join(dir, "seed", suite.labctl), filepath.Join(root, "Vagrantfile"): filepath.Join(dir, "seed", root, "Vagrantfile"),
	}
	for from, to := range copies {
		Expect(os.MkdirAll(filepath.Dir(to), 0o755)).To(Succeed())
		_, err := command.Run(ctx, "cp", "--archive", "--no-target-directory", from, to)
		Expect(err).NotTo(HaveOccurred())
	}
	for _, place := range []string{filepath.Join(tree, "disk"), filepath.Join(tree, "seed"), filepath.Join(dir, "disk")} {
		Expect(os.MkdirAll(place, 0o755)).To(Succeed())
	}
	Expect(os.Chmod(dir, 0o755)).To(Succeed())
	id, err := os.ReadFile(l.dir("id"))
	Expect(err).NotTo(HaveOccurred())
	domain := filepath.Join(dir, "domain.xml")
	Expect(os.WriteFile(domain, fmt.Appendf(nil, containerXML, l.name, id[:8], tree, dir), 0o600)).To(Succeed())
	l.virsh(ctx, "create", domain)
	DeferCleanup(func(ctx SpecContext) { l.virsh(ctx, "destroy", "computer") }, NodeTimeout(time.Minute))

	controller := strings.TrimSpace(l.virsh(ctx, "domid", "computer"))
	first, err := os.ReadFile(filepath.Join("/proc", controller, "task", controller, "children"))
	Expect(err).NotTo(HaveOccurred())
	c := containerComputer{
		enter:  []string{"nsenter", "--target=" + strings.Fields(string(first))[0], "--mount", "--net", "--pid", "--uts", "--ipc", "--cgroup", "--"},
		shared: filepath.Join(dir, "disk/lib"),
	}
	Eventually(func() error {
		_, err := command.Run(ctx, slices.Concat(c.enter, []string{"virsh", "-c", "qemu:///system", "list"})...)
		return err
	}).WithContext(ctx).WithTimeout(time.Minute).WithPolling(200 * time.Millisecond).Should(Succeed())
	c.run(ctx, "useradd", "--create-home", "--groups", "libvirt", "me")
	for _, user := range []string{"root", "me"} {
		cache := filepath.Join(c.shared, user, "cache/k8slab")
		computer{disk: true}.fillCache(ctx, cache, node)
		c.run(ctx, "chown", user, "/var/lib/"+user, "/var/lib/"+user+"/cache", "/var/lib/"+user+"/cache/k8slab")
	}
	return c
}

const containerXML = `<domain type="lxc"><name>computer</name><memory unit="GiB">10</memory><vcpu>2</vcpu>
<resource><partition>/k8slab-%s-%s</partition></resource>
<os><type>exe</type><init>/usr/lib/k8slab/init</init></os>
<features><privnet/><capabilities policy="allow"/></features>
<devices>
<filesystem type="mount"><source dir="%s"/><target dir="/"/></filesystem>
<filesystem type="mount"><source dir="%[4]s/seed"/><target dir="/seed"/></filesystem>
<filesystem type="mount"><source dir="%[4]s/disk"/><target dir="/disk"/></filesystem>
<console type="pty"/>
<hostdev mode="capabilities" type="misc"><source><char>/dev/net/tun</char></source></hostdev>
</devices></domain>
`

// lab is one of the user's, with a control plane and that many workers; its file has no address.
func (c containerComputer) lab(user, name string, workers int) *lab {
	GinkgoHelper()
	l := &lab{name: name, home: "/var/lib/" + user + "/state", config: "/var/lib/" + user + "/" + name + ".yaml", nodes: []string{"cp1"}}
	l.enter = slices.Concat(c.enter, []string{"runuser", "-u", user, "--", "env", "HOME=/root", "XDG_CACHE_HOME=/var/lib/" + user + "/cache"})
	if user != "root" {
		l.enter = append(l.enter, "HOME=/home/"+user, "PATH=/usr/local/bin:/usr/bin:/bin") // as a login has them
	}
	yaml := "name: " + name + "\nnodes:\n  - {name: cp1, role: control-plane}\n"
	for i := range workers {
		l.nodes = append(l.nodes, fmt.Sprintf("w%d", i+1))
		yaml += fmt.Sprintf("  - {name: w%d, role: worker}\n", i+1)
	}
	Expect(os.WriteFile(filepath.Join(c.shared, user, name+".yaml"), []byte(yaml+virtual), 0o644)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		l.saveEvidence(ctx)
		l.run(ctx, "down", "--adopted")
	}, NodeTimeout(4*time.Minute))
	return l
}

func (c containerComputer) run(ctx context.Context, argv ...string) string {
	GinkgoHelper()
	out, err := command.Run(ctx, slices.Concat(c.enter, argv)...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

func (c containerComputer) virsh(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return c.run(ctx, append([]string{"virsh", "--quiet", "-c", "qemu:///system"}, args...)...)
}

// dropForwarded has its firewall drop what machines send to one another, as Docker's does.
func (c containerComputer) dropForwarded(ctx context.Context) {
	GinkgoHelper()
	_, err := command.Run(ctx, "nsenter", c.enter[1], "--net", "sysctl", "--quiet", "--write", "net.bridge.bridge-nf-call-iptables=1") // read-only in there
	Expect(err).NotTo(HaveOccurred())
	c.run(ctx, "sh", "-e", "-c", "iptables --policy FORWARD DROP; iptables --new-chain DOCKER-USER; iptables --append FORWARD --jump DOCKER-USER")
	DeferCleanup(func(ctx SpecContext) {
		c.run(ctx, "sh", "-c", "iptables --policy FORWARD ACCEPT; iptables --flush DOCKER-USER")
	}, NodeTimeout(time.Minute))
}

// objects are what its libvirt and its systemd have, by name, and the addresses that its firewall rules are about.
func (c containerComputer) objects(ctx context.Context) string {
	GinkgoHelper()
	return c.run(ctx, "sh", "-c", `
for kind in list net-list pool-list; do virsh --quiet -c qemu:///system $kind --all --name; done
ls -A /var/lib/libvirt/images /etc/systemd/system /etc/modules-load.d
systemctl list-units --all --no-legend --plain 'k8slab*' 'machine-*'
nft list ruleset | grep -E ' 10[.]3[01][.]'
true`)
}
