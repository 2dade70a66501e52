package scenarios

import "k8slab/lab/symptom"

var standaloneKubelet = Fault{
	Name:    "standalone-kubelet",
	Story:   "kubelet's drop-in is gone, so it runs without a kubeconfig and never registers (worker-join-hanging)",
	Roles:   everyRole,
	Symptom: symptom.KubeletStandalone,
	Inject: script(`
		mkdir -p /etc/systemd/system/kubelet.service.d
		ln -sf /dev/null /etc/systemd/system/kubelet.service.d/10-kubeadm.conf
		systemctl daemon-reload`),
	Restore: script(`rm -f /etc/systemd/system/kubelet.service.d/10-kubeadm.conf*`),
	Join:    &Join{Cause: symptom.KubeletStandalone},
}
