package scenarios

import "k8slab/lab/symptom"

var corednsScaledToZero = Fault{
	Name:    "coredns-scaled-to-zero",
	Story:   "CoreDNS was scaled to zero and forgotten: no pod finds a Service by its name (kubespray#5308)",
	Roles:   workers,
	Symptom: symptom.Unexplained,
	Of:      anywhere,
	Inject:  scaledToZero.make,
	Effect:  noPods("k8s-app=kube-dns"),
	Recover: repair,
	May:     []Change{Others},
	Restore: scaledToZero.undo,
}

var scaledToZero = object{namespace: "kube-system", name: "deployment/coredns", how: `s/^\(  replicas: \).*/\10/`}
