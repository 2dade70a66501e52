package addon

func nodeExporter() Addon {
	return Addon{
		Name:      "node-exporter",
		Purpose:   "metrics of every node, also those in its directory /var/lib/k8slab/textfile",
		Images:    []string{"k8slab/node-exporter:lab"},
		Workloads: []Workload{{DaemonSet, "monitoring", "node-exporter"}},
	}
}
