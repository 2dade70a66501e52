package scenarios

import "k8slab/lab/symptom"

var workerSuspended = Fault{
	Name:    "worker-suspended",
	Story:   "the computer under a worker sleeps: its connections stay open, and nothing answers",
	Roles:   workers,
	Symptom: symptom.MachinePaused,
	Inject:  power("pause"),
	Effect:  kubeletSilent,
	Recover: [][]string{{"power", "resume", Node}},
	Restore: power("resume"),
}
