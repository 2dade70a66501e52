package scenarios

import "k8slab/lab/symptom"

var apiServerCrashloop = Fault{
	Name:    "apiserver-crashloop",
	Story:   "a flag that its version does not know is in the API server's manifest: it ends again and again (an upgrade by hand)",
	Roles:   controlPlane,
	Symptom: symptom.ControlPlaneCrashloop,
	Applies: threeControlPlanes,
	Inject:  insecurePort.make,
	Effect:  ends("kube-apiserver", "1"),
	Recover: repair,
	Restore: insecurePort.undo,
}

var insecurePort = edit{path: manifests + "kube-apiserver.yaml", how: addFlag("kube-apiserver", "--insecure-port=8080")}
