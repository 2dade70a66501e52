package addon

func prometheus() Addon {
	return Addon{
		Name:      "prometheus",
		Purpose:   "Prometheus with the metrics of nodes, kubelets and API servers, and alert rules",
		Needs:     []string{"node-exporter"}, // whose manifest has the namespace, and without which its alerts see nothing
		Images:    []string{"k8slab/prometheus:lab"},
		Workloads: []Workload{{Deployment, "monitoring", "prometheus"}},
	}
}
