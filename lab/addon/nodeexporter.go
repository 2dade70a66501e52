package addon

func nodeExporter() Addon {
	return Addon{
		Name:      "node-exporter",
		Purpose:   "metrics of every node, and what is written for it into /var/lib/k8slab/textfile there",
		Images:    []string{"k8slab/node-exporter:lab"},
		Workloads: []Workload{{DaemonSet, "monitoring", "node-exporter"}},
	}
}
