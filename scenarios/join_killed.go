package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var joinKilled = Fault{
	Name:    "join-killed",
	Story:   "kubeadm was killed in the middle of a worker's join: kubelet runs, and nothing completes the join (enhanced-kubernetes-join)",
	Roles:   workers,
	Alone:   "tried again, kubeadm refuses after 0.3 s",
	Outside: true,
	Inject: func(ctx context.Context, t Target) error {
		return t.killKubeadmAt(ctx, "/etc/kubernetes/kubelet.conf")
	},
	Effect:  killed,
	Symptom: symptom.LeftoverState,
	Recover: nodeVerb("join"),
	Restore: stopUnit(killer),
	Join:    &Join{},
}

const killer = "fault-kill-kubeadm"

// killKubeadmAt has the node kill kubeadm once, as soon as it writes the file.
func (t Target) killKubeadmAt(ctx context.Context, file string) error {
	return t.run(ctx, "systemd-run", "--quiet", "--collect", "--unit", killer, "sh", "-c",
		`until test -e "$1" && pkill -KILL -x kubeadm; do sleep 0.01; done`, "sh", file)
}

// stopUnit stops a systemd unit that an injection started.
func stopUnit(name string) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error {
		return t.shell(ctx, t.Node, `! systemctl --quiet is-active "$1" || systemctl stop "$1"`, name)
	}
}
