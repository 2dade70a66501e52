package scenarios

import "k8slab/lab/symptom"

var readOnlyConfiguration = Fault{
	Name:    "read-only-configuration",
	Story:   "the kernel found an error on a disk and mounted it read-only: kubeadm cannot write its configuration (kubeadm#2031)",
	Roles:   everyRole,
	Alone:   "kubeadm cannot write kubelet's configuration, and fails",
	Outside: true,
	Inject: script(`
		mkdir -p /etc/kubernetes
		mount -t tmpfs -o ro fault /etc/kubernetes`),
	Effect:  refuses(symptom.ReadOnlyFilesystem),
	Symptom: symptom.ReadOnlyFilesystem,
	Recover: nodeVerb("join"),
	Remedy:  symptom.Unmount,
	Restore: unmounts("/etc/kubernetes"),
}
