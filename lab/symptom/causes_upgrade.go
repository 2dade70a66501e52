package symptom

// upgradeCauses are what an upgrade would end at half-way, or break. It is looked for before one begins.
var upgradeCauses = []Symptom{
	{
		ID:      FlagRemoved,
		Meaning: "A component of the control plane is started with a flag or feature gate that its next version no longer knows.",
		Hint: "Remove it from extraArgs in the cluster's configuration (`kubectl -n kube-system edit configmap kubeadm-config`) and " +
			"from the manifest in /etc/kubernetes/manifests, on each control plane; kubelet then starts the component anew.",
		Sources:  []string{"etcd-io/website#1165"},
		Measured: true,
	},
	{
		ID:      APIRemoved,
		Meaning: "Somebody uses a version of an API that the next version of Kubernetes no longer serves.",
		Hint: "`kubectl get --raw /metrics | grep apiserver_requested_deprecated_apis` names it, the audit log who asks for it; move it to " +
			"the version that replaces it. The count starts anew when the API servers do.",
		Measured: true,
	},
	{
		ID:      EvictionBlocked,
		Meaning: "A PodDisruptionBudget lets no pod be evicted, so a node that has one cannot be drained.",
		Hint: "`kubectl get poddisruptionbudgets -A` shows how many disruptions each allows; run more replicas, make the unhealthy ones " +
			"healthy, or change the budget.",
		Measured: true,
	},
	{
		ID:       UpgradeUnfinished,
		Meaning:  "An upgrade to another version of Kubernetes has begun and not ended, so the nodes have different versions.",
		Hint:     "`labctl upgrade` goes on where it ended.",
		Measured: true,
	},
}
