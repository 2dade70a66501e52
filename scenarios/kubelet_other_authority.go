package scenarios

import "k8slab/lab/symptom"

var kubeletOtherAuthority = Fault{
	Name:    "kubelet-other-authority",
	Story:   "kubelet's kubeconfig has the CA of the cluster that was here before, and trusts no API server (kubeadm#1147)",
	Roles:   everyRole,
	Symptom: symptom.X509UnknownAuthority,
	Inject:  kubeletConf.make,
	Effect:  kubeletSilent,
	Recover: repair,
	May:     []Change{Identity}, // the repair has kubelet's kubeconfig made anew, with its certificate
	Restore: kubeletConf.undo,
}

var kubeletConf = edit{
	path: "/etc/kubernetes/kubelet.conf",
	how: `
		ca=$(openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout /dev/null -subj /CN=kubernetes -days 365 | base64 --wrap 0)
		sed --in-place "s|\(certificate-authority-data: \).*|\1$ca|" "$1"`,
	then: restartKubelet,
}
