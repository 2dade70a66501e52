package scenarios

import "k8slab/lab/symptom"

var kubeProxyConfigBroken = Fault{
	Name:    "kube-proxy-config-broken",
	Story:   "kube-proxy's configuration has a mode that an upgrade removed: it ends on every node on which it starts anew (microk8s#3600)",
	Roles:   workers,
	Symptom: symptom.KubeProxyCrash,
	Of:      hereOrCluster,
	Inject:  after(kubeProxyMode.make, renewPods("kube-system", kubeProxyPods)),
	Effect:  podFails("kube-system", kubeProxyPods),
	Recover: repair,
	May:     []Change{Others},
	Restore: kubeProxyMode.undo,
}

var kubeProxyMode = object{namespace: "kube-system", name: "configmap/kube-proxy", how: `s/^\( *mode: \).*/\1userspace/`}
