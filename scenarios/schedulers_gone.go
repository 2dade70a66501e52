package scenarios

import "k8slab/lab/symptom"

var schedulersGone = Fault{
	Name:    "schedulers-gone",
	Story:   "the manifests of all schedulers are gone: pods stay Pending, and nothing else shows it (kubeadm's guide to certificates)",
	Roles:   controlPlane,
	Symptom: symptom.ControlPlaneCrashloop,
	Of:      anywhere,
	Inject:  schedulerGone.everywhere,
	Effect:  leaderless("kube-scheduler"),
	Recover: repair,
	May:     []Change{Others},
	Restore: schedulerGone.undoEverywhere,
}

var schedulerGone = edit{path: manifests + "kube-scheduler.yaml", how: removeFile}
