package scenarios

import (
	"context"
	"errors"

	"k8slab/lab/symptom"
)

// natAddress is the address of Vagrant's first interface, the same on every machine.
const natAddress = "10.0.2.15"

var wrongPeerAddress = Fault{
	Name:    "wrong-peer-address",
	Story:   "a control plane joins with the address of its NAT interface, where no other node reaches it (kubeadm#1359, kubeadm#2275)",
	Roles:   controlPlane,
	Alone:   "kubeadm fails after 124 s, with a time-out",
	Symptom: symptom.AdvertiseAddressWrong, // beside it the learner, with its detail
	Applies: threeControlPlanes,
	Outside: true,
	Inject: func(ctx context.Context, t Target) error {
		if err := t.shell(ctx, t.Node, `ip address replace "$1/32" dev lo label lo:fault`, natAddress); err != nil {
			return err
		}
		return t.joinByHand(ctx, natAddress, "15s")
	},
	Effect:  joinFailed,
	Recover: repair,
	Restore: func(ctx context.Context, t Target) error {
		err := t.shell(ctx, t.Node, `! ip address show dev lo | grep -qw lo:fault || ip address del "$1/32" dev lo`, natAddress)
		return errors.Join(err, forgetJoinByHand(ctx, t))
	},
}
