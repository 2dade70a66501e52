package scenarios

import "k8slab/lab/symptom"

var criPluginDisabled = Fault{
	Name:    "cri-plugin-disabled",
	Story:   "containerd.io's package comes with CRI switched off (containerd#8139)",
	Roles:   everyRole,
	Symptom: symptom.CRIPluginDisabled,
	Inject: script(`
		sed -i '/^disabled_plugins/d' /etc/containerd/config.toml
		sed -i '1i disabled_plugins = ["io.containerd.grpc.v1.cri"]' /etc/containerd/config.toml
		! systemctl --quiet is-active containerd || systemctl restart containerd`),
	Join: &Join{Cause: symptom.CRIPluginDisabled},
}
