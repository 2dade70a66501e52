package scenarios

import (
	"context"
	"errors"

	"k8slab/lab/symptom"
)

const promoter = "fault-promote"

var learnerPromotedLate = Fault{
	Name:    "learner-promoted-late",
	Story:   "kubeadm gave up on a learner that was promoted all the same: it votes, and its node is in no cluster (kubernetes#130782)",
	Roles:   controlPlane,
	Alone:   "kubeadm fails after 124 s, with a time-out",
	Symptom: symptom.EtcdLearnerNotInSync,
	Applies: threeControlPlanes,
	Outside: true,
	Inject: func(ctx context.Context, t Target) error {
		// etcd refuses until the learner has caught up, which takes longer than kubeadm waits.
		_, err := t.Run(ctx, t.ControlPlane, "systemd-run", "--quiet", "--collect", "--unit", promoter, "sh", "-c", ownEtcdctl+`
			pki=/etc/kubernetes/pki/etcd
			ask() { etcdctl --endpoints https://127.0.0.1:2379 --cacert $pki/ca.crt --cert $pki/peer.crt --key $pki/peer.key "$@"; }
			until id=$(ask member list | sed -n 's/^\([0-9a-f]*\), started, .*, true$/\1/p') && test -n "$id" && ask member promote "$id"; do sleep 1; done`)
		if err != nil {
			return err
		}
		return t.joinSlowly(ctx, "4mbit", "15s")
	},
	Effect: func(ctx context.Context, t Target) error {
		if err := joinFailed(ctx, t); err != nil {
			return err
		}
		if err := t.votes(ctx); err != nil {
			return err
		}
		return t.freePeers(ctx) // the link was slow for a while
	},
	Recover: repair,
	Restore: func(ctx context.Context, t Target) error {
		err := t.shell(ctx, t.ControlPlane, `! systemctl --quiet is-active "$1" || systemctl stop "$1"`, promoter)
		return errors.Join(err, endSlowJoin(ctx, t))
	},
}
