package scenarios

import "k8slab/lab/symptom"

var proxyInEnvironment = Fault{
	Name:    "proxy-in-environment",
	Story:   "the machine's services use a proxy, which takes what a joining kubeadm and kubelet ask the API server (kubeadm#2145)",
	Roles:   everyRole,
	Outside: true,
	Symptom: symptom.ProxyInterference,
	Alone:   "kubeadm finds no API server, and fails",
	Inject:  on("systemctl", "set-environment", "HTTPS_PROXY="+deadProxy),
	Effect:  refuses(symptom.ProxyInterference),
	Recover: nodeVerb("join"),
	Remedy:  symptom.UnsetVariable,
	Restore: on("systemctl", "unset-environment", "HTTPS_PROXY"),
}
