package scenarios

import (
	"context"
	"errors"

	"k8slab/lab/symptom"
)

const (
	lateUnit = "fault-late" // does something on the node when its etcd has been added
	// etcdAdded is a file that appears when kubeadm has added the node's member to etcd.
	etcdAdded = "/etc/kubernetes/manifests/etcd.yaml"
)

var learnerPortBlocked = Fault{
	Name:    "learner-port-blocked",
	Story:   "a firewall comes up while a control plane joins: its member was added to etcd but reaches no other (kubeadm#3269)",
	Roles:   controlPlane,
	Alone:   "kubeadm fails after 122 s, with a time-out",
	Symptom: symptom.FirewallBlocked,
	Applies: threeControlPlanes,
	Outside: true,
	Inject: func(ctx context.Context, t Target) error {
		err := t.late(ctx, `exec nft "$2"`, wallText("tcp dport 2380 drop", "tcp dport 2380 drop"))
		if err != nil {
			return err
		}
		return t.joinByHand(ctx, t.Address, "15s")
	},
	Effect:  joinFailed,
	Recover: nodeVerb("join"),
	Remedy:  symptom.DeleteRule,
	Restore: func(ctx context.Context, t Target) error {
		return errors.Join(stopLate(ctx, t), openWall(ctx, t), forgetJoinByHand(ctx, t))
	},
}

// late has the node run a script once, as soon as etcd's manifest exists. value is the script's $2.
func (t Target) late(ctx context.Context, text, value string) error {
	return t.run(ctx, "systemd-run", "--quiet", "--collect", "--unit", lateUnit, "sh", "-c",
		`until test -e "$1"; do sleep 0.1; done; `+text, "sh", etcdAdded, value)
}

var stopLate = script(`! systemctl --quiet is-active ` + lateUnit + ` || systemctl stop ` + lateUnit)
