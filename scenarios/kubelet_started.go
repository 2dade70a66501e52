package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var kubeletStarted = Fault{
	Name:    "kubelet-started",
	Story:   "something starts kubelet before kubeadm does, and it fails again and again for want of its configuration (worker-join-hanging)",
	Roles:   everyRole,
	Alone:   "kubeadm joins after 1.8 s",
	Outside: true,
	Symptom: symptom.KubeletConfigMissing,
	// The systemd unit of the lab's image waits for the configuration; that of the Debian package does not.
	Inject: script(`
		mkdir -p ` + fearless + `
		printf '[Unit]\nConditionPathExists=\n' >` + fearless + `/fault-unconditional.conf
		systemctl daemon-reload
		rm -f /var/lib/kubelet/config.yaml
		systemctl enable kubelet
		systemctl start --no-block kubelet`),
	Effect: func(ctx context.Context, t Target) error {
		return t.says(ctx, []string{"failed to load kubelet config file"}, "journalctl", "--quiet", "--output=cat", "--unit=kubelet", "--since=-15s")
	},
	Recover: nodeVerb("join"),
	Restore: script(`
		if test -e ` + fearless + `/fault-unconditional.conf; then
			rm -rf ` + fearless + `
			systemctl daemon-reload
		fi`),
	Join: &Join{},
}

const fearless = "/run/systemd/system/kubelet.service.d"
