package addon

func localPath() Addon {
	return Addon{
		Name:      "local-path",
		Purpose:   "storage: volumes in a directory of the node that a pod runs on (StorageClass local-path)",
		Images:    []string{"k8slab/local-path-provisioner:lab", "k8slab/busybox:lab"},
		Workloads: []Workload{{Deployment, "local-path-storage", "local-path-provisioner"}},
	}
}
