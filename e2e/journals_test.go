//go:build e2e

package e2e

import (
	"context"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// journalsOf are what somebody would send of a node: a unit's journal, etcd's log, or the whole boot's.
var journalsOf = map[string]string{
	"kubelet":    "journalctl -b -u kubelet --no-pager",
	"containerd": "journalctl -b -u containerd --no-pager",
	"boot":       "journalctl -b --no-pager",
	"etcd":       "cat /var/log/pods/kube-system_etcd-*/etcd/*.log 2>/dev/null || true",
}

// past is how the verdict on a text without a cause begins. Errors of faults that are over leave a text undetermined: it does not say so.
var past = regexp.MustCompile(`^(Nothing is wrong|Undetermined)\b`)

// journalsAreHealthy has the diagnosis of text judge the journals of every node of a healthy lab, whatever it went through, and the events.
func (l *lab) journalsAreHealthy(ctx context.Context) {
	GinkgoHelper()
	wrong := map[string]string{}
	judge := func(what, text string) {
		if strings.TrimSpace(text) == "" { // a worker has no etcd
			return
		}
		if r := l.startWith(ctx, strings.NewReader(text), nil, "diagnose", "--from", "-").wait(); r.code != 0 || !past.MatchString(r.stdout) {
			wrong[what] = r.String()
		}
	}
	for _, node := range l.nodes {
		for name, command := range journalsOf {
			judge(node+" "+name, l.ssh(ctx, node, "sh", "-c", command))
		}
	}
	judge("events", l.kubectl(ctx, "get", "events", "-A"))
	Expect(wrong).To(BeEmpty())
}
