package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var duplicateLiveNode = Fault{
	Name:    "duplicate-live-node",
	Story:   "another machine has joined under the worker's name and lives: its Node is in use and must stay (worker-join-hanging)",
	Roles:   workers,
	Alone:   "kubeadm refuses after 0.3 s",
	Outside: true,
	Inject: func(ctx context.Context, t Target) error {
		if err := t.shell(ctx, t.ControlPlane, liveNode, t.Node); err != nil {
			return err
		}
		return t.atControlPlane().run(ctx, "systemd-run", "--quiet", "--collect", "--unit", heartbeat, "sh", "-c", liveLease, "sh", t.Node)
	},
	Effect:  refuses(symptom.NodeNameExists),
	Symptom: symptom.NodeNameExists,
	Recover: nodeVerb("join"),
	ByHand:  "somebody turns the other machine off",
	// As a person would: turn the other machine off, and delete its Node.
	Restore: func(ctx context.Context, t Target) error {
		if err := stopUnit(heartbeat)(ctx, t.atControlPlane()); err != nil {
			return err
		}
		return t.shell(ctx, t.ControlPlane, `
			kubectl --kubeconfig /etc/kubernetes/admin.conf delete nodes --selector fault=duplicate-live-node --ignore-not-found
			kubectl --kubeconfig /etc/kubernetes/admin.conf --namespace kube-node-lease delete leases --selector fault=duplicate-live-node --ignore-not-found`)
	},
}

const heartbeat = "fault-heartbeat"

// liveNode creates the Node of the other machine, as its kubelet would.
const liveNode = `
	export KUBECONFIG=/etc/kubernetes/admin.conf
	printf '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "%s", "labels": {"fault": "duplicate-live-node", "kubernetes.io/os": "linux"}}}' "$1" |
		kubectl create -f -
	kubectl patch node "$1" --subresource=status --type=merge --patch '{"status": {
		"nodeInfo": {"machineID": "fa017000000000000000000000000001", "systemUUID": "fa017000-0000-0000-0000-000000000001", "kubeletVersion": "v1.36.3"},
		"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}]}}'`

// liveLease renews the Lease of the other machine, as its kubelet would.
const liveLease = `
	export KUBECONFIG=/etc/kubernetes/admin.conf
	while true; do
		printf '{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
			"metadata": {"name": "%s", "namespace": "kube-node-lease", "labels": {"fault": "duplicate-live-node"}},
			"spec": {"holderIdentity": "%s", "leaseDurationSeconds": 40, "renewTime": "%s"}}' "$1" "$1" "$(date --utc +%Y-%m-%dT%H:%M:%S.%6NZ)" |
			kubectl apply --server-side --force-conflicts -f -
		sleep 5
	done`
