package scenarios

import "k8slab/lab/symptom"

var pauseImageRemoved = Fault{
	Name:    "pause-image-removed",
	Story:   "a clean-up of unused images took the pause image, without which no pod starts (kubernetes#81756)",
	Lab:     theImage,
	Roles:   everyRole,
	Symptom: symptom.ImagePullFailure,
	Inject:  pauseImage.remove,
	Effect:  noSandboxImage,
	Recover: repair,
	Restore: each(pauseImage.bringBack, script(dropSandboxes)),
}

var pauseImage = image{name: `sed -n "s/.*sandbox = '\(.*\)'/\1/p" ` + containerdConfig}
