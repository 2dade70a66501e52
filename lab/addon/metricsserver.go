package addon

func metricsServer() Addon {
	return Addon{
		Name:      "metrics-server",
		Purpose:   "CPU and memory of nodes and pods (kubectl top)",
		Images:    []string{"k8slab/metrics-server:lab"},
		Workloads: []Workload{{Deployment, "kube-system", "metrics-server"}},
	}
}
