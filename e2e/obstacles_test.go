//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8slab/lab/host"
)

// For who is where a lab's own daemon is, that daemon and its network are the computer's.
var _ = Describe("a computer with five obstacles at once", Label("ci"), func() {
	It("is told all five, and of a free network", func(ctx SpecContext) {
		theirs := useLab("e2e-neighbour", 30, 1, 0)
		theirs.must(ctx, "up", "--until", "network")
		pid := theirs.daemonPID()
		if pid == 0 {
			Skip("the computer's own daemon serves this lab")
		}
		ours := newLabIn(GinkgoT().TempDir(), "ours", 30, 1, 0)
		ours.enter = []string{"nsenter", "--target=" + strconv.Itoa(pid), "--mount", "--net", "--", "unshare", "--mount", "--", "sh", "-e", "-c", fiveObstacles, "-"}
		write := func(network string) {
			text := fmt.Sprintf("name: ours\nlibvirt: {uri: 'qemu:///system'}\n%snodes:\n  - {name: cp1, role: control-plane}\n", network)
			Expect(os.WriteFile(ours.config, []byte(text), 0o600)).To(Succeed())
		}

		write("network: {cidr: 10.30.0.0/24}\n")
		checks, r := ours.doctor(ctx)
		for id, want := range map[string]host.Result{"network": host.Fails, "go": host.Fails, "packages": host.Mends, "forwarding": host.Warn, "firewall": host.Warn} {
			Expect(checks).To(HaveKeyWithValue(id, HaveField("Result", want)), "%s", r)
		}
		Expect(r.code).To(Equal(1))
		AddReportEntry("doctor", r.took.Round(time.Millisecond).String())

		up := ours.run(ctx, "up")
		Expect(up.code).To(Equal(1))
		Expect(up.stderr).To(And(ContainSubstring("10.30.0.0/24 overlaps with 10.30.0.0/24"), ContainSubstring("https://go.dev/dl")))
		Expect(filepath.Join(ours.home, "k8slab", "ours")).NotTo(BeAnExistingFile(), "nothing was changed")

		write("")
		Expect(ours.must(ctx, "plan")).To(ContainSubstring("network 10.31.0.0/24"))
	}, SpecTimeout(3*time.Minute))
})

// doctor returns what it found by ID.
func (l *lab) doctor(ctx context.Context) (map[string]host.Check, result) {
	GinkgoHelper()
	r := l.run(ctx, "doctor", "-o", "json")
	var all []host.Check
	Expect(json.Unmarshal([]byte(r.stdout), &all)).To(Succeed(), "%s", r)
	found := map[string]host.Check{}
	for _, c := range all {
		found[c.ID] = c
	}
	return found, r
}

// fiveObstacles are no packages, no go that could compile an image for an empty cache, Docker's firewall, ufw, and the network that the lab is to have.
const fiveObstacles = `
mount -t tmpfs none /var/lib/dpkg
mkdir /var/lib/dpkg/info /var/lib/dpkg/updates /var/lib/dpkg/etc /var/lib/dpkg/work
touch /var/lib/dpkg/status
mkdir /var/lib/dpkg/etc/ufw
echo ENABLED=yes >/var/lib/dpkg/etc/ufw/ufw.conf
mount -t overlay -o lowerdir=/etc,upperdir=/var/lib/dpkg/etc,workdir=/var/lib/dpkg/work none /etc
iptables --policy FORWARD DROP
sysctl --quiet --write net.bridge.bridge-nf-call-iptables=1
PATH=/usr/sbin:/usr/bin:/sbin:/bin XDG_CACHE_HOME=$XDG_STATE_HOME exec "$@"`
