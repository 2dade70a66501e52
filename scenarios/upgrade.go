package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"k8slab/config"
	"k8slab/lab/symptom"
)

// The calls that end faults of upgrades.
var (
	upgradable = [][]string{{"upgrade", "next", "--dry-run"}} // which fails as long as something would stop the upgrade
	upgrading  = [][]string{{"upgrade"}}
)

// nextVersion is what the cluster can be upgraded to, "" if labctl knows none.
func nextVersion(ctx context.Context, t Target) (string, error) {
	out, err := t.kubectl(ctx, "get", "--raw", "/version")
	var is struct{ GitVersion string }
	if err == nil {
		err = json.Unmarshal([]byte(out), &is)
	}
	return config.NextVersion(is.GitVersion), err
}

// canUpgrade says why a fault of an upgrade cannot be made in the lab.
func (f Fault) canUpgrade(t Target) error {
	if f.Upgrade != "" && t.Next == "" {
		return fmt.Errorf("%w: labctl knows no version of Kubernetes after the lab's", errNotApplicable)
	}
	return nil
}

// to137 is for faults that only an upgrade to Kubernetes 1.37 or a later version meets.
func to137(why string) func(Target) string {
	const minor = "v1.37"
	return func(t Target) string {
		if t.Next != "" && semver.Compare(semver.MajorMinor(t.Next), minor) < 0 {
			return fmt.Sprintf("the upgrade is to %s: %s only from %s on", t.Next, why, minor)
		}
		return ""
	}
}

// whatStopsUpgrade is the first finding that would keep the upgrade from beginning, or from going on; empty for none.
func whatStopsUpgrade(ctx context.Context, t Target) (first symptom.Finding, err error) {
	out, err := t.Labctl(ctx, "upgrade", "next", "--dry-run", "-o", "json") // exit status 1 says that there is something
	var plan struct{ Findings []symptom.Finding }
	if unread := json.Unmarshal([]byte(out), &plan); unread != nil {
		return first, errors.Join(err, unread)
	}
	if len(plan.Findings) > 0 && plan.Findings[0].Level == symptom.Fail {
		first = plan.Findings[0]
	}
	return first, nil
}

// stopUpgrade begins an upgrade, which something on the nodes stops.
func (t Target) stopUpgrade(ctx context.Context) error {
	if _, err := t.Labctl(ctx, "upgrade", "next"); err == nil {
		return errors.New("the upgrade went to its end, and nothing stopped it")
	}
	return nil
}

const upgradeUnit = "fault-upgrade"

// whenUpgraded has the node run the script once, as soon as kubeadm upgrades it. $1 … are the arguments.
func (t Target) whenUpgraded(ctx context.Context, node, script string, args ...string) error {
	at := t
	at.Node = node
	return at.run(ctx, append([]string{"systemd-run", "--quiet", "--collect", "--unit", upgradeUnit, "sh", "-c",
		`until kubeadm=$(pgrep -f '^kubeadm upgrade'); do sleep 0.02; done` + "\n" + script, "sh"}, args...)...)
}

// killAt kills kubeadm's upgrade of the node as soon as it has replaced the file.
func (t Target) killAt(ctx context.Context, node, file string) error {
	return t.whenUpgraded(ctx, node, `touch /run/k8slab.fault
		until [ "$1" -nt /run/k8slab.fault ] && pkill -KILL -x kubeadm; do sleep 0.01; done
		rm /run/k8slab.fault`, file)
}

// killedAt is the injection of an upgrade that is killed on the node as soon as kubeadm has replaced the file.
func killedAt(file string) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		if err := t.killAt(ctx, t.Node, file); err != nil {
			return err
		}
		return t.stopUpgrade(ctx)
	}
}

// halfUpgraded returns nil if the node's kubeadm is of another version than its kubelet.
func halfUpgraded(ctx context.Context, t Target) error {
	out, err := t.Run(ctx, t.Node, "sh", "-ec", "kubeadm version --output short; kubelet --version")
	if err != nil {
		return err
	}
	if f := strings.Fields(out); len(f) != 3 || f[0] == f[2] { // v1.37.2 Kubernetes v1.37.2
		return absent("%s has %s", t.Node, strings.Join(f, " "))
	}
	return nil
}

// noUpgradeUnit ends what waits for an upgrade, on every node.
func noUpgradeUnit(ctx context.Context, t Target) error {
	var errs []error
	for _, m := range t.Members {
		errs = append(errs, t.shell(ctx, m.Name, `
			! systemctl --quiet is-active "$1" || systemctl stop "$1"
			rm -f /run/k8slab.fault`, upgradeUnit))
	}
	return errors.Join(errs...)
}

// EndUpgrade ends the upgrade that one of the faults has begun, if any of them does.
func EndUpgrade(ctx context.Context, d Driver, faults ...Fault) error {
	if !slices.ContainsFunc(faults, func(f Fault) bool { return f.Upgrade == During }) {
		return nil
	}
	_, err := d.Labctl(ctx, "upgrade")
	return err
}

// aWorker is the first worker of the lab, "" for none.
func (t Target) aWorker() string {
	i := slices.IndexFunc(t.Members, func(m Member) bool { return m.Role == config.Worker })
	if i < 0 {
		return ""
	}
	return t.Members[i].Name
}

func withWorker(t Target) string {
	if t.aWorker() == "" {
		return "it stops the upgrade at a worker, and the lab has none"
	}
	return ""
}
