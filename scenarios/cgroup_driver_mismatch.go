package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

// kubelet 1.31 and newer asks the runtime for its driver once, when it starts. So the two differ when the runtime's driver changes while kubelet
// runs.
var cgroupDriverMismatch = Fault{
	Name:    "cgroup-driver-mismatch",
	Story:   "SystemdCgroup was corrected in containerd's configuration, containerd restarted, and kubelet not (kubernetes#74249)",
	Lab:     theProbe,
	Roles:   workers,
	Symptom: symptom.CgroupDriverMismatch,
	// A kubelet that is still starting exits when the runtime stops, and its next start would ask again.
	Inject: func(ctx context.Context, t Target) error {
		err := t.shell(ctx, t.Node, `
			config=/etc/containerd/config.toml
			cp --preserve $config $config.fault
			sed -i 's/SystemdCgroup = true/SystemdCgroup = false/' $config
			systemctl restart containerd
			systemctl restart kubelet
			for _ in $(seq 100); do
				! journalctl --quiet --output=cat --grep='Started kubelet' _PID="$(systemctl show --property=MainPID --value kubelet)" || break
				sleep 0.2
			done
			mv $config.fault $config
			systemctl restart containerd`)
		if err != nil {
			return err
		}
		return t.renewProbe(ctx)
	},
	Effect: func(ctx context.Context, t Target) error {
		return t.probeStuck(ctx, "expected cgroupsPath to be of format")
	},
	Once:    true,
	Recover: repair,
	Restore: script(`
		config=/etc/containerd/config.toml
		if test -e $config.fault; then
			mv $config.fault $config
			systemctl restart containerd
		fi
		pid=$(systemctl show --property=MainPID --value kubelet)
		! journalctl --quiet --output=cat --grep='cgroup driver setting received.*cgroupfs' _PID="$pid" || systemctl restart kubelet`),
}
