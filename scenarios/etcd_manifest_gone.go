package scenarios

import "k8slab/lab/symptom"

var etcdManifestGone = Fault{
	Name:    "etcd-manifest-gone",
	Story:   "etcd's manifest was moved away for a backup, and not back: the member is gone, and its API server with it (kubeadm#2823)",
	Roles:   controlPlane,
	Symptom: symptom.EtcdUnreachable,
	Applies: threeControlPlanes,
	Inject:  etcdGone.make,
	Effect:  memberDown,
	Recover: repair,
	Restore: etcdGone.undo,
}

var etcdGone = edit{path: manifests + "etcd.yaml", how: removeFile}
