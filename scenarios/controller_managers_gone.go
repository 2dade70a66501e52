package scenarios

import "k8slab/lab/symptom"

var controllerManagersGone = Fault{
	Name:    "controller-managers-gone",
	Story:   "the manifests of all controller managers were moved away, and not back: nothing is signed or assigned (kubeadm's guide to certificates)",
	Roles:   controlPlane,
	Symptom: symptom.ControllerManagerFailing,
	Of:      anywhere,
	Inject:  controllerManagerGone.everywhere,
	Effect:  leaderless("kube-controller-manager"),
	Recover: repair,
	May:     []Change{Others},
	Restore: controllerManagerGone.undoEverywhere,
}

var controllerManagerGone = edit{path: manifests + "kube-controller-manager.yaml", how: removeFile}
