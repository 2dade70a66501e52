package scenarios

import (
	"context"
	"fmt"
	"strconv"

	"k8slab/lab/symptom"
)

var etcdMemberRemoved = Fault{
	Name:    "etcd-member-removed",
	Story:   "somebody removed the wrong member from etcd: the control plane's etcd is told so and ends, and its API server with it (rke#2512)",
	Loses:   true,
	Roles:   controlPlane,
	Symptom: symptom.EtcdMemberMismatch,
	Applies: threeControlPlanes,
	Inject: func(ctx context.Context, t Target) error {
		members, err := t.etcdMembers(ctx)
		if err != nil {
			return err
		}
		for _, m := range members {
			if m.Name == t.Node {
				return t.etcdctl(ctx, "member", "remove", strconv.FormatUint(m.ID, 16))
			}
		}
		return fmt.Errorf("etcd has no member %s", t.Node)
	},
	Effect:  memberDown,
	Recover: nodeVerb("rejoin"),
	May:     []Change{Identity},
	Restore: rejoinIfDown,
}
