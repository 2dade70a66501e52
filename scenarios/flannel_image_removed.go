package scenarios

import "k8slab/lab/symptom"

var flannelImageRemoved = Fault{
	Name:    "flannel-image-removed",
	Story:   "a node without an uplink was short of disk, and kubelet deleted an image that nothing can pull again (k3s#3193)",
	Lab:     theImage,
	Roles:   workers,
	Symptom: symptom.ImagePullFailure,
	Inject:  after(flannelImage.remove, renewPods("kube-flannel", flannelPods)),
	Effect:  podFails("kube-flannel", flannelPods),
	Recover: repair,
	Restore: flannelImage.bringBack,
}

var flannelImage = image{name: `crictl images --output json | sed -n 's/.*"\([^"]*flannel:[^"]*\)".*/\1/p' | head -n 1`}
