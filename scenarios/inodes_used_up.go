package scenarios

import "k8slab/lab/symptom"

var inodesUsedUp = Fault{
	Name:    "inodes-used-up",
	Story:   "the disk has space and no inodes: a million small files, and kubelet would evict every pod (kubernetes#74169)",
	Roles:   everyRole,
	Alone:   "kubeadm cannot write kubelet's configuration, and fails",
	Outside: true,
	// A file system of its own, because a container uses the disk of its host.
	Inject: script(`
		mkdir -p /var/lib/kubelet
		mount -t tmpfs -o nr_inodes=32 fault /var/lib/kubelet
		for i in $(seq 40); do
			touch /var/lib/kubelet/$i.fault || break
		done`),
	Effect:  refuses(symptom.DiskFull),
	Symptom: symptom.DiskFull,
	Recover: nodeVerb("join"),
	Remedy:  symptom.Unmount,
	Restore: unmounts("/var/lib/kubelet"),
}
