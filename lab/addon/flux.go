package addon

func flux() Addon {
	return Addon{
		Name:      "flux",
		Purpose:   "Flux, which applies what the Git repository has",
		Needs:     []string{"git"},
		Images:    []string{"k8slab/source-controller:lab", "k8slab/kustomize-controller:lab"},
		Workloads: []Workload{{Deployment, "flux-system", "source-controller"}, {Deployment, "flux-system", "kustomize-controller"}},
	}
}
