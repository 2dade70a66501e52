package scenarios

import "k8slab/lab/symptom"

var kubeletConfigMissing = Fault{
	Name:    "kubelet-config-missing",
	Story:   "a clean-up deleted kubelet's configuration on a member, and kubelet does not start again (worker-join-hanging)",
	Roles:   everyRole,
	Symptom: symptom.KubeletConfigMissing,
	Inject: script(`
		cp --preserve /var/lib/kubelet/config.yaml /var/lib/kubelet/config.yaml.fault
		rm /var/lib/kubelet/config.yaml
		systemctl restart kubelet`),
	Effect:  kubeletSilent,
	Recover: repair,
	Restore: script(`
		saved=/var/lib/kubelet/config.yaml.fault
		if test -e $saved; then
			test -e /var/lib/kubelet/config.yaml || cp --preserve $saved /var/lib/kubelet/config.yaml
			rm $saved
			systemctl start kubelet
		fi`),
}
