package scenarios

import "context"

var joinKilled = Fault{
	Name:  "join-killed",
	Story: "kubeadm was killed in the middle of a worker's join: kubelet runs, and nobody waits for it (enhanced-kubernetes-join)",
	Roles: workers,
	Inject: func(ctx context.Context, s Site) error {
		return s.killKubeadmAt(ctx, "/var/lib/kubelet/config.yaml")
	},
	Restore: stopKiller,
	Join:    &Join{},
}

const killer = "fault-kill-kubeadm"

// killKubeadmAt makes the node kill the kubeadm that writes the file, once.
func (s Site) killKubeadmAt(ctx context.Context, file string) error {
	return s.run(ctx, "systemd-run", "--quiet", "--collect", "--unit", killer, "sh", "-c",
		`until test -e "$1" && pkill -KILL -x kubeadm; do sleep 0.02; done`, "sh", file)
}

var stopKiller = script(`! systemctl --quiet is-active ` + killer + ` || systemctl stop ` + killer)
