package scenarios

import "k8slab/lab/symptom"

var kubeletProxy = Fault{
	Name:    "kubelet-proxy",
	Story:   "a proxy was set for kubelet without exceptions, and it takes what kubelet asks the API server (kubeadm#2145)",
	Roles:   everyRole,
	Symptom: symptom.ProxyInterference,
	Inject: script(`
		mkdir -p ` + kubeletDropIns + `
		printf '[Service]\nEnvironment=HTTPS_PROXY=` + deadProxy + `\n' >` + proxyDropIn + `
		systemctl daemon-reload
		systemctl restart kubelet`),
	Effect:  kubeletSilent,
	Recover: repair,
	Remedy:  symptom.RemoveProxyLine,
	Restore: script(`
		if test -e ` + proxyDropIn + `; then
			rm ` + proxyDropIn + `
			systemctl daemon-reload
			systemctl restart kubelet
		fi`),
}

const (
	proxyDropIn = kubeletDropIns + "/fault-proxy.conf"
	deadProxy   = "http://127.0.0.1:3128" // where nothing listens
)
