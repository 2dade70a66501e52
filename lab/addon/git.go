package addon

func git() Addon {
	return Addon{
		Name:      "git",
		Purpose:   "a Git repository over HTTP, with the configuration of the lab's nodes",
		Images:    []string{"k8slab/git:lab"},
		Workloads: []Workload{{Deployment, "gitops", "git"}},
	}
}
