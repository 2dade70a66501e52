package scenarios

import "k8slab/lab/symptom"

var wipedVoter = Fault{
	Name:    "wiped-voter",
	Story:   "a control plane was wiped, and etcd still counts its member, with the peer URL that the next join uses (etcd#20269)",
	Loses:   true,
	Roles:   controlPlane,
	Symptom: symptom.EtcdStaleMember,
	Inject: after(script(`
		kubeadm reset --force --skip-phases remove-etcd-member
		rm -rf /var/lib/etcd`), on(labnode, "reset", "--member-removed")),
	Applies: threeControlPlanes,
	Effect:  memberDown,
	Recover: repair,
	May:     []Change{Identity},
	Join:    &Join{Member: true, Cause: symptom.EtcdStaleMember},
}
