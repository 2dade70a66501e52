package scenarios

import (
	"context"
	"errors"
	"strings"

	"k8slab/lab/symptom"
)

// What an upgrade itself changes.
var byUpgrade = []Change{Quorum}

// unfinished is a fault that leaves its node half upgraded, and no other sign.
func unfinished(f Fault) Fault {
	f.Upgrade, f.Effect = During, halfUpgraded
	f.Symptom, f.Of = symptom.UpgradeUnfinished, theCluster
	f.Recover, f.May, f.Restore = upgrading, byUpgrade, noUpgradeUnit
	return f
}

var upgradeKilledAtEtcd = unfinished(Fault{
	Name:   "upgrade-killed-at-etcd",
	Story:  "kubeadm is killed when it has replaced etcd and not yet the API server (kubeadm's guide to upgrades: run it again)",
	Roles:  controlPlane,
	Inject: killedAt(manifests + "etcd.yaml"),
})

var upgradeKilledAtAPIServer = unfinished(Fault{
	Name:   "upgrade-killed-at-apiserver",
	Story:  "kubeadm is killed when the API server is of the new version and the controller manager and the scheduler are of the old one (kubeadm's guide to upgrades: run it again)",
	Roles:  controlPlane,
	Inject: killedAt(manifests + "kube-apiserver.yaml"),
})

var upgradeKilledOnWorker = unfinished(Fault{
	Name:   "upgrade-killed-on-worker",
	Story:  "kubeadm is killed on a worker when it is about to write kubelet's new configuration (kubeadm's guide to upgrades: run it again)",
	Roles:  workers,
	Inject: killedAt(backups),
})

var upgradeEtcdBroken = unfinished(Fault{
	Name:  "upgrade-etcd-broken",
	Story: "a mirror has something else behind the tag of the new etcd, so that it does not come up and kubeadm rolls it back (etcd's guide to 3.7)",
	Roles: controlPlane,
	Inject: func(ctx context.Context, t Target) error {
		err := t.whenUpgraded(ctx, t.Node, `
			images() { ctr --namespace k8s.io images "$@"; }
			images tag --force "$(images ls --quiet | grep '/pause:' | head -n 1)" "$(images ls --quiet | grep '/etcd:' | sort -V | tail -n 1)"`)
		if err != nil {
			return err
		}
		return t.stopUpgrade(ctx)
	},
})

var upgradeImageMissing = unfinished(Fault{
	Name:  "upgrade-image-missing",
	Story: "kubelet's garbage collection, or somebody, has removed an image of the new version before kubeadm uses it (kubeadm's guide to upgrades)",
	Roles: controlPlane,
	Inject: func(ctx context.Context, t Target) error {
		err := t.whenUpgraded(ctx, t.Node, `
			images() { ctr --namespace k8s.io images "$@"; }
			images rm --sync "$(images ls --quiet | grep '/kube-apiserver:' | sort -V | tail -n 1)"`)
		if err != nil {
			return err
		}
		return t.stopUpgrade(ctx)
	},
})

// backups is where kubeadm keeps what it replaces: manifests, etcd's data, kubelet's configuration.
const backups = "/etc/kubernetes/tmp"

var upgradeDiskFilled = Fault{
	Name:    "upgrade-disk-filled",
	Story:   "the disk is full when kubeadm, in the middle of the upgrade, copies what it is about to replace (kubeadm's guide to upgrades)",
	Roles:   everyRole,
	Upgrade: During,
	// A small file system of its own, because a container uses the disk of its host.
	Inject: func(ctx context.Context, t Target) error {
		err := t.whenUpgraded(ctx, t.Node, `
			mkdir -p "$1"
			mount -t tmpfs -o size=1m fault "$1"
			head --bytes 1M /dev/zero > "$1/ballast.fault"`, backups)
		if err != nil {
			return err
		}
		return t.stopUpgrade(ctx)
	},
	Effect:  halfUpgraded,
	Symptom: symptom.DiskFull,
	Recover: upgrading,
	ByHand:  "somebody makes room on the disk",
	May:     byUpgrade,
	Restore: func(ctx context.Context, t Target) error {
		return errors.Join(noUpgradeUnit(ctx, t), unmounts(backups)(ctx, t))
	},
}

var upgradeAPIServerPutBack = Fault{
	Name:    "upgrade-apiserver-put-back",
	Story:   "somebody has put kubeadm's copy of the API server's old manifest back, and the node's kubelet is newer than its API server (version skew policy)",
	Roles:   controlPlane,
	Upgrade: During,
	Applies: withWorker,
	Inject: func(ctx context.Context, t Target) error {
		if err := t.killAt(ctx, t.aWorker(), backups); err != nil {
			return err
		}
		if err := t.stopUpgrade(ctx); err != nil {
			return err
		}
		return t.shell(ctx, t.Node, `cp "$(ls -t "$1"/kubeadm-backup-manifests-*/kube-apiserver.yaml | head -n 1)" "$2"`, backups, manifests+"kube-apiserver.yaml")
	},
	Effect:  apiServerBehind,
	Symptom: symptom.VersionSkew,
	Recover: upgrading,
	May:     append(byUpgrade, Others),
	Restore: noUpgradeUnit,
}

// apiServerBehind returns nil if the node's API server answers and is of another version than its kubelet.
func apiServerBehind(ctx context.Context, t Target) error {
	out, err := t.Run(ctx, t.Node, "sh", "-ec", `curl -sfk --max-time 3 https://127.0.0.1:6443/version | grep gitVersion; kubelet --version`)
	if err != nil {
		return err
	}
	if f := strings.Fields(out); len(f) != 4 || strings.Contains(f[1], `"`+f[3]+`"`) { // "gitVersion": "v1.37.2", Kubernetes v1.37.2
		return absent("%s has %s", t.Node, strings.Join(f, " "))
	}
	return nil
}

var upgradeTwoAtOnce = Fault{
	Name:    "upgrade-two-at-once",
	Story:   "somebody upgrades two control planes at the same time, and loses patience: of three members of etcd two are away (k8s-snap#2795)",
	Roles:   controlPlane,
	Upgrade: During,
	Applies: threeControlPlanes,
	Inject: func(ctx context.Context, t Target) error {
		// The first control plane is done when the upgrade of the second is killed.
		planes := t.controlPlanes()
		second, third := planes[len(planes)-2].Name, planes[len(planes)-1].Name
		if err := t.whenUpgraded(ctx, second, `pkill -KILL -x kubeadm`); err != nil {
			return err
		}
		if err := t.stopUpgrade(ctx); err != nil {
			return err
		}
		for _, node := range []string{second, third} {
			at := t
			at.Node = node
			err := at.run(ctx, "systemd-run", "--quiet", "--collect", "--unit", upgradeUnit, "kubeadm", "upgrade", "node", "--ignore-preflight-errors", "all")
			if err != nil {
				return err
			}
		}
		var errs []error
		for _, node := range []string{second, third} {
			errs = append(errs, t.shell(ctx, node, `
				tries=0
				until [ /etc/kubernetes/manifests/etcd.yaml -nt /usr/bin/kubeadm ] || [ $tries = 300 ]; do sleep 0.2; tries=$((tries + 1)); done
				sleep 2
				systemctl kill --signal KILL "$1" 2>/dev/null || true`, upgradeUnit))
		}
		return errors.Join(errs...)
	},
	Effect: func(ctx context.Context, t Target) error {
		if err := halfUpgraded(ctx, t); err != nil {
			return err
		}
		return healthyEtcd(ctx, t)
	},
	Symptom: symptom.UpgradeUnfinished,
	Of:      theCluster,
	Recover: upgrading,
	May:     append(byUpgrade, Others),
	Restore: noUpgradeUnit,
}

// healthyEtcd returns nil if the members of all control planes are healthy.
func healthyEtcd(ctx context.Context, t Target) error {
	_, err := t.etcd(ctx, "endpoint", "health", "--cluster")
	return err
}

var upgradeQuorumLost = Fault{
	Name:    "upgrade-quorum-lost",
	Story:   "in the middle of an upgrade two of three control planes lose power, and etcd its quorum (kubeadm's high availability)",
	Roles:   controlPlane,
	Upgrade: During,
	Applies: threeControlPlanes,
	Inject: func(ctx context.Context, t Target) error {
		if err := t.whenUpgraded(ctx, t.Node, `pkill -KILL -x kubeadm`); err != nil {
			return err
		}
		if err := t.stopUpgrade(ctx); err != nil {
			return err
		}
		for _, m := range t.otherControlPlanes() {
			if _, err := t.Labctl(ctx, "power", "off", m.Name); err != nil {
				return err
			}
		}
		return nil
	},
	Effect:  quorumLost.Effect,
	Symptom: symptom.MachineNotRunning,
	Of:      anywhere,
	Recover: [][]string{{"up"}, {"upgrade"}},
	May:     []Change{Quorum, Boot, Others},
	Restore: noUpgradeUnit,
}
