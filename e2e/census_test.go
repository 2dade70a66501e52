//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// census lists what a login could leave on a machine: files with the time of their last change, processes of logins, units, logins, sockets,
// loaded modules. What a node of a cluster changes by itself is left out. A directory has no time: a file in it may have come and gone.
const census = `
find /etc /usr /opt /srv /root /home /tmp /var/tmp /dev/shm /run /var/lib/kubelet -xdev \( -type d -printf 'file %p %m %u %g\n' \) -o -printf 'file %p %y %m %u %g %s %C@\n' |
	grep -vE '^file /run/(containerd|systemd|udev|log|flannel|netns|runc|utmp)|^file /var/lib/kubelet/(pods|plugins|device-plugins)/'
ps -eo user:20=,comm=,args= | grep -E '^ops |labnode|sshd: ' | grep -v 'sshd: /usr/sbin/sshd' | sed 's/^/process /' || true
systemctl list-units --all --plain --no-legend --type=service,socket,timer,path | awk '$1 !~ /^systemd-tmpfiles-clean/ { print "unit", $1, $3 }'
who | sed 's/^/login /'
ss -Hltn | awk '{ print "socket", $4 }'
nft list tables | sed 's/^/firewall /'
! test -e /proc/modules || cut -d ' ' -f 1 /proc/modules | sed 's/^/module /' # a kernel may have none
`

// takeCensus is the census of each node.
func (h *home) takeCensus(ctx context.Context) map[string]bool {
	GinkgoHelper()
	all := map[string]bool{}
	for node, text := range h.everywhere(ctx, census) {
		for line := range strings.Lines(text) {
			all[node+": "+strings.TrimSpace(line)] = true
		}
	}
	return all
}

// settledCensus is the census when nothing changes any more: the pod network of a young cluster still comes up.
func (h *home) settledCensus(ctx context.Context) map[string]bool {
	GinkgoHelper()
	before := h.takeCensus(ctx)
	Eventually(func() []string {
		now := h.takeCensus(ctx)
		defer func() { before = now }()
		return differences(before, now)
	}).WithContext(ctx).WithTimeout(time.Minute).WithPolling(3*time.Second).Should(BeEmpty(), "the nodes do not come to rest")
	return before
}

// expectNoTrace wants each node to be as it was: a connection takes a moment to end.
func (h *home) expectNoTrace(ctx context.Context, before map[string]bool) {
	GinkgoHelper()
	Eventually(func() []string { return differences(before, h.takeCensus(ctx)) }).WithContext(ctx).WithTimeout(30*time.Second).
		WithPolling(time.Second).Should(BeEmpty(), "left on the nodes")
}

// differences are the lines that only one of the two has.
func differences(before, after map[string]bool) (lines []string) {
	for line := range before {
		if !after[line] {
			lines = append(lines, "gone: "+line)
		}
	}
	for line := range after {
		if !before[line] {
			lines = append(lines, "new: "+line)
		}
	}
	slices.Sort(lines)
	return lines
}

var _ = Describe("the census of a machine", Label("foreign"), Serial, func() {
	It("finds what a login leaves, and nothing where there was none", func(ctx SpecContext) {
		h := newHome(ctx, "e2e-census", 72, homeOptions{controlPlanes: 1})
		h.expectWhole(ctx)
		before := h.settledCensus(ctx)
		h.expectNoTrace(ctx, before)
		north := h.first("control-plane").machine
		for change, back := range map[string]string{
			"touch /tmp/left": "rm /tmp/left", "mkdir /home/ops/left": "rmdir /home/ops/left",
			"systemd-run --quiet --unit=left sleep 600":     "systemctl stop left",
			"runuser -u ops -- sleep 600 >/dev/null 2>&1 &": "pkill -u ops sleep",
		} {
			h.root(ctx, north, change)
			Expect(differences(before, h.takeCensus(ctx))).NotTo(BeEmpty(), change)
			h.root(ctx, north, back)
		}
		h.expectNoTrace(ctx, before)
		AddReportEntry("lines of a census", fmt.Sprint(len(slices.Collect(maps.Keys(before)))))
	}, SpecTimeout(5*time.Minute))
})
