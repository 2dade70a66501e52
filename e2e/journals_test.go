//go:build e2e

package e2e

import (
	"context"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// journalsOf are what somebody would send of a node: a unit's journal, etcd's log, or the whole boot's.
var journalsOf = map[string]string{
	"kubelet":    "journalctl -b -u kubelet --no-pager",
	"containerd": "journalctl -b -u containerd --no-pager",
	"boot":       "journalctl -b --no-pager",
	"etcd":       "ls -tr /var/log/pods/kube-system_etcd-*/etcd/*.log 2>/dev/null | xargs --no-run-if-empty cat", // a pod's in order of time
}

// past is how the verdict on a text without a cause begins. Errors of faults that are over leave a text undetermined: it does not say so.
var past = regexp.MustCompile(`^(Nothing is wrong|Undetermined)\b`)

// journalsAreHealthy has the diagnosis of text judge the journals of every node of a healthy lab, whatever it went through, and the events. By a
// journal alone nobody can tell that a failure is over before its program has gone on for a while without it; of an event, before it was due again.
func (l *lab) journalsAreHealthy(ctx context.Context) {
	GinkgoHelper()
	Eventually(l.journalsWithACause).WithContext(ctx).WithTimeout(7 * time.Minute).WithPolling(10 * time.Second).Should(BeEmpty())
}

// journalsWithACause are the verdicts on those that name a cause.
func (l *lab) journalsWithACause(ctx context.Context) map[string]string {
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
	return wrong
}
