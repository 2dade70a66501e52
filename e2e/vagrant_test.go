//go:build e2e

package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("machines that vagrant made", Label("vms", "vagrant", "Slow"), Serial, func() {
	It("are adopted, and neither tool removes the other's", func(ctx SpecContext) {
		installVagrant(ctx)
		before := takeTraces()
		l := useLab("e2e-vagrant", 54, 1, 1)
		l.configure(virtual)
		DeferCleanup(func(ctx SpecContext) { l.run(ctx, "down", "--adopted") }, NodeTimeout(2*time.Minute))
		v := vagrant{l, GinkgoT().TempDir()}
		l.must(ctx, "vagrant", "box")
		l.must(ctx, "up", "--until", "network") // a daemon of the lab's own has to be there before vagrant can be run beside it

		Expect(v.must(ctx, "status")).To(MatchRegexp(`cp1 +not created \(libvirt\)\nw1 +not created`))
		added := v.run(ctx, "up", "cp1") // the first one fetches the box
		Expect(added.code).To(BeZero(), "%s", added)
		v.must(ctx, "destroy", "-f", "cp1")
		up := v.run(ctx, "up", "cp1")
		Expect(up.code).To(BeZero(), "%s", up)
		AddReportEntry("vagrant up cp1, with its box", up.took.Round(100*time.Millisecond).String())
		Expect(v.must(ctx, "ssh", "cp1", "-c", "sudo hostname; ip -4 -o addr show dev eth0")).To(And(HavePrefix("cp1"), ContainSubstring("10.54.0.11/24")))

		// w1 is labctl's own.
		l.must(ctx, "up")
		l.expectHealthy(ctx)
		s, _ := l.status(ctx)
		Expect(s.Nodes[0].Maker).To(Equal("vagrant"))
		Expect(s.Nodes[1].Maker).To(BeEmpty())
		Expect(v.must(ctx, "ssh", "cp1", "-c", "sudo journalctl -u kubelet | tail -n 1; timeout 3 bash -c '</dev/tcp/10.54.0.11/2380' && echo open")).
			To(And(ContainSubstring("kubelet"), ContainSubstring("open")))
		Expect(v.run(ctx, "up", "w1").stderr).To(ContainSubstring("already taken"), "vagrant leaves labctl's machine alone")

		refused := l.run(ctx, "down")
		Expect(refused.code).To(Equal(1))
		Expect(refused.stderr).To(ContainSubstring("vagrant destroy cp1"))
		l.expectHealthy(ctx)

		v.must(ctx, "halt", "cp1")
		l.must(ctx, "up")
		l.expectHealthy(ctx)
		Expect(v.must(ctx, "status", "cp1")).To(ContainSubstring("running"))
		Expect(v.run(ctx, "destroy", "-f").stderr).To(ContainSubstring("already taken"), "all of them are not vagrant's")
		v.must(ctx, "destroy", "-f", "cp1")
		Expect(strings.Fields(l.virsh(ctx, "list", "--name"))).To(ConsistOf(l.name + "-w1"))
		Expect(l.virsh(ctx, "net-list", "--name")).To(ContainSubstring(l.name))

		l.down(ctx)
		expectNoNewTraces(ctx, before)
	}, SpecTimeout(30*time.Minute))
})

// installVagrant installs Debian's vagrant where it is missing: the lab does not need it.
func installVagrant(ctx context.Context) {
	GinkgoHelper()
	if _, err := exec.LookPath("vagrant"); err == nil {
		return
	}
	out, err := exec.CommandContext(ctx, "sh", "-c", "apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends vagrant vagrant-libvirt").CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
}

// vagrant is run where the lab's libvirt daemon is, with boxes and notes on machines of its own.
type vagrant struct {
	lab  *lab
	home string
}

func (v vagrant) run(ctx context.Context, args ...string) result {
	GinkgoHelper()
	root := filepath.Dir(filepath.Dir(suite.labctl))
	argv := []string{"host", "exec", "--", "env", "VAGRANT_HOME=" + v.home, "VAGRANT_DOTFILE_PATH=" + filepath.Join(v.home, "machines"), "VAGRANT_CWD=" + root,
		"CLUSTER_YAML=" + v.lab.config, "LABCTL=" + suite.labctl, "vagrant"}
	return v.lab.run(ctx, append(argv, args...)...)
}

func (v vagrant) must(ctx context.Context, args ...string) string {
	GinkgoHelper()
	r := v.run(ctx, args...)
	Expect(r.code).To(BeZero(), "vagrant %s: %s", strings.Join(args, " "), r)
	return r.stdout
}
