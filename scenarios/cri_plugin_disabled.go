package scenarios

import (
	"context"

	"k8slab/lab/symptom"
)

var criPluginDisabled = Fault{
	Name:    "cri-plugin-disabled",
	Story:   "containerd.io's package comes with CRI switched off (containerd#8139)",
	Roles:   everyRole,
	Symptom: symptom.CRIPluginDisabled,
	Inject: script(`
		sed -i '/^disabled_plugins/d' /etc/containerd/config.toml
		sed -i '1i disabled_plugins = ["io.containerd.grpc.v1.cri"]' /etc/containerd/config.toml
		! systemctl --quiet is-active containerd || systemctl restart containerd`),
	Effect: func(ctx context.Context, t Target) error {
		return t.says(ctx, []string{"unknown service runtime.v1.RuntimeService"}, "crictl", "--timeout", "3s", "version")
	},
	Recover: repair,
	// The repair leaves a copy of the file with the fault.
	Restore: script(`
		rm -f /etc/containerd/config.toml.k8slab-saved
		if grep -q '^disabled_plugins' /etc/containerd/config.toml; then
			disabled=$(grep -c '^disabled_plugins.*cri' /etc/containerd/config.toml || true)
			sed -i '/^disabled_plugins/d' /etc/containerd/config.toml
			test "$disabled" = 0 || systemctl restart containerd
		fi`),
	Join: &Join{Cause: symptom.CRIPluginDisabled},
}
