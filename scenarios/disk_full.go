package scenarios

import "k8slab/lab/symptom"

var diskFull = Fault{
	Name:    "disk-full",
	Story:   "the worker's disk is full before it joins: kubelet would evict every pod (enhanced-kubernetes-join)",
	Roles:   everyRole,
	Alone:   "kubeadm fails after 241 s, with a time-out",
	Outside: true,
	// A small file system of its own, because a container uses the disk of its host.
	Inject: script(`
		mkdir -p /var/lib/kubelet
		mount -t tmpfs -o size=1m fault /var/lib/kubelet
		head --bytes 1000K /dev/zero > /var/lib/kubelet/ballast.fault`),
	Effect:  refuses(symptom.DiskFull),
	Symptom: symptom.DiskFull,
	Recover: nodeVerb("join"),
	Remedy:  symptom.Unmount,
	Restore: unmounts("/var/lib/kubelet"),
}
