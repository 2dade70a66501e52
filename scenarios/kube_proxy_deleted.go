package scenarios

import "k8slab/lab/symptom"

var kubeProxyDeleted = Fault{
	Name:    "kube-proxy-deleted",
	Story:   "kube-proxy's DaemonSet was deleted: the Services stay as they are, and new ones lead nowhere (kubespray#4600)",
	Roles:   workers,
	Symptom: symptom.KubeProxyCrash,
	Of:      theCluster,
	Inject:  kubeProxySet.make,
	Effect:  noPods(kubeProxyPods),
	Recover: repair,
	May:     []Change{Others},
	Restore: kubeProxySet.undo,
}

var kubeProxySet = object{namespace: "kube-system", name: "daemonset/kube-proxy"}

const kubeProxyPods = "k8s-app=kube-proxy"
