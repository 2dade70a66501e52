package scenarios

import "k8slab/lab/symptom"

var standaloneKubelet = Fault{
	Name:    "standalone-kubelet",
	Story:   "another drop-in hides kubeadm's, so kubelet runs without a kubeconfig, serves no cluster and ends its pods (worker-join-hanging)",
	Roles:   everyRole,
	Symptom: symptom.KubeletStandalone,
	Inject: script(`
		mkdir -p ` + kubeletDropIns + `
		printf '[Service]\nExecStart=\nExecStart=/usr/bin/kubelet --fail-cgroupv1=false --container-runtime-endpoint=unix:///run/containerd/containerd.sock\n' \
			>` + kubeletDropIns + `/10-kubeadm.conf
		systemctl daemon-reload
		! systemctl --quiet is-active kubelet || systemctl restart kubelet`),
	Effect:  kubeletForgot,
	Recover: repair,
	Restore: script(`
		hiding=` + kubeletDropIns + `/10-kubeadm.conf
		rm -f $hiding.k8slab-saved*
		if test -e $hiding; then
			rm $hiding
			systemctl daemon-reload
			! systemctl --quiet is-active kubelet || systemctl restart kubelet
		fi`),
	Join: &Join{Cause: symptom.KubeletStandalone},
}

const kubeletDropIns = "/etc/systemd/system/kubelet.service.d"
