//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8slab/lab/command"
)

// A libvirt daemon as a distribution starts it, on sockets that are the computer's, but in a mount and network namespace of the spec's own. Labs that
// are run in there find it.
var _ = Describe("labs of virtual machines in this computer's libvirt", Label("vms", "Slow"), Serial, func() {
	It("share what they boot from, have networks of their own, and leave the daemon as it was", func(ctx SpecContext) {
		d := startComputersDaemon()
		one, two := d.lab("e2e-one"), d.lab("e2e-two")
		before := d.objects(ctx)

		up := one.run(ctx, "up", "--until", "machines")
		Expect(up.code).To(BeZero(), "%s", up)
		Expect(up.stderr).To(ContainSubstring("uploading"))
		AddReportEntry("machine of the first lab, with the upload", up.took.Round(100*time.Millisecond).String())
		Expect(d.run(ctx, "sh", "-c", `ps -o user= -p "$(cat /run/libvirt/qemu/e2e-one-cp1.pid)"`)).To(HavePrefix("libvirt-"), "QEMU is not root")
		Expect(d.virsh(ctx, "vol-list", "k8slab")).To(And(ContainSubstring("-cp1.qcow2"), ContainSubstring("k8slab-base-")))
		Expect(one.dir("machines")).NotTo(BeADirectory(), "nothing is in the state directory")
		Expect(one.run(ctx, "diagnose").stdout).NotTo(BeEmpty())

		// The same file with another name.
		up = two.run(ctx, "up", "--until", "machines")
		Expect(up.code).To(BeZero(), "%s", up)
		Expect(up.stderr).NotTo(ContainSubstring("uploading"), "it is there")
		AddReportEntry("machine of the second lab", up.took.Round(100*time.Millisecond).String())
		Expect(d.virsh(ctx, "net-dumpxml", "e2e-one")).To(ContainSubstring("10.30.0.1"))
		Expect(d.virsh(ctx, "net-dumpxml", "e2e-two")).To(ContainSubstring("10.31.0.1"))

		one.must(ctx, "down")
		Expect(two.ssh(ctx, "cp1", "hostname")).To(Equal("cp1\n"))
		two.must(ctx, "down")
		Expect(one.must(ctx, "image", "list")).To(ContainSubstring("pool k8slab: k8slab-base-"))
		one.must(ctx, "image", "prune", "--unused-for", "1h")
		Expect(d.virsh(ctx, "pool-list", "--all")).To(ContainSubstring("k8slab"), "it was uploaded just now")
		d.prune(ctx, one)
		Expect(d.objects(ctx)).To(Equal(before))
	}, SpecTimeout(25*time.Minute))
})

// computersDaemon is a running libvirtd, and the way to where it is.
type computersDaemon struct{ enter []string }

func startComputersDaemon() computersDaemon {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	Expect(os.Chmod(dir, 0o755)).To(Succeed()) // QEMU is another user
	const script = `set -e
for place in /etc/libvirt /var/lib/libvirt /run/libvirt /var/log/libvirt /var/cache/libvirt; do
    mkdir -p "$1$place" "$place"
    chmod 711 "$1$place"
    mount --bind "$1$place" "$place"
done
# No AppArmor and no systemd here, so no profiles, no virtlogd and no cgroups.
printf 'stdio_handler = "file"\nsecurity_driver = "none"\ncgroup_controllers = []\nnamespaces = []\n' >/etc/libvirt/qemu.conf
printf 'auth_unix_rw = "none"\n' >/etc/libvirt/libvirtd.conf
ip link set lo up
exec libvirtd
`
	daemon := exec.Command("unshare", "--net", "--mount", "--propagation", "private", "sh", "-c", script, "sh", dir)
	daemon.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	daemon.Stdout, daemon.Stderr = GinkgoWriter, GinkgoWriter
	Expect(daemon.Start()).To(Succeed())
	DeferCleanup(func() {
		_ = daemon.Process.Signal(syscall.SIGTERM)
		_ = daemon.Wait()
	})
	d := computersDaemon{[]string{"nsenter", fmt.Sprintf("--target=%d", daemon.Process.Pid), "--mount", "--net", "--"}}
	Eventually(func() error {
		_, err := command.Run(context.Background(), append(d.enter, "virsh", "-c", "qemu:///system", "list")...)
		return err
	}).WithTimeout(20 * time.Second).WithPolling(200 * time.Millisecond).Should(Succeed())
	return d
}

// lab is a lab of one virtual machine that finds the daemon; its file has no address.
func (d computersDaemon) lab(name string) *lab {
	GinkgoHelper()
	l := useLab(name, 0, 1, 0)
	l.enter = d.enter
	Expect(os.WriteFile(l.config, []byte("name: "+name+"\nnodes:\n  - {name: cp1, role: control-plane}\n"+virtual), 0o600)).To(Succeed())
	return l
}

func (d computersDaemon) run(ctx context.Context, argv ...string) string {
	GinkgoHelper()
	out, err := command.Run(ctx, append(d.enter[:len(d.enter):len(d.enter)], argv...)...)
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(out)
}

func (d computersDaemon) virsh(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return d.run(ctx, append([]string{"virsh", "--quiet", "-c", "qemu:///system"}, args...)...)
}

// objects are what the daemon has, by name, and the addresses that its firewall rules are about.
func (d computersDaemon) objects(ctx context.Context) string {
	GinkgoHelper()
	var all []string
	for _, kind := range []string{"list", "net-list", "pool-list"} {
		all = append(all, kind, d.virsh(ctx, kind, "--all", "--name"))
	}
	images := filepath.Join("/var/lib/libvirt", "images")
	all = append(all, d.run(ctx, "sh", "-c", "ls -A "+images+" 2>/dev/null; iptables-save | grep -E ' 10[.]3[01][.]' || true"))
	return strings.Join(all, "\n")
}

// prune removes what was uploaded, and leaves the cache of this computer alone: it is done with an empty one.
func (d computersDaemon) prune(ctx context.Context, l *lab) {
	GinkgoHelper()
	d.run(ctx, "env", "XDG_CACHE_HOME="+GinkgoT().TempDir(), "XDG_STATE_HOME="+l.home, suite.labctl, "image", "prune", "--unused-for", "0s")
}
