package config

import (
	"fmt"
	"slices"
	"strings"
)

// reserved is what labctl itself lives by: of each document the fields that a
// fragment may not have, and what to do instead. A field of a list of named
// items is the item of that name.
var reserved = []struct{ documents, fields, why string }{
	{"cluster init join kubelet kube_proxy", "apiVersion kind", "labctl writes it"},

	{"cluster", "clusterName", "it is the lab's name: use name"},
	{"cluster", "kubernetesVersion", "use kubernetes.version"},
	{"cluster", "controlPlaneEndpoint", "it is the virtual IP: use network.virtual_ip"},
	{"cluster", "networking.podSubnet", "use network.pod_subnet"},
	{"cluster", "networking.serviceSubnet", "use network.service_subnet"},
	{"cluster", "networking.dnsDomain certificatesDir etcd.external etcd.local.dataDir dns proxy", "the lab's checks and repairs rely on kubeadm's default"},
	{"cluster", "imageRepository etcd.local.imageRepository etcd.local.imageTag", "kubeadm's images come from the node image"},
	{"cluster", "apiServer.extraArgs.advertise-address apiServer.extraArgs.anonymous-auth apiServer.extraArgs.authorization-config " +
		"apiServer.extraArgs.authorization-mode apiServer.extraArgs.bind-address apiServer.extraArgs.client-ca-file " +
		"apiServer.extraArgs.enable-bootstrap-token-auth apiServer.extraArgs.secure-port", "the lab's nodes and checks rely on kubeadm's own"},
	{"cluster", "apiServer.extraArgs.etcd-servers etcd.local.extraArgs.data-dir etcd.local.extraArgs.name " +
		"etcd.local.extraArgs.initial-advertise-peer-urls etcd.local.extraArgs.initial-cluster etcd.local.extraArgs.initial-cluster-state " +
		"etcd.local.extraArgs.listen-client-urls etcd.local.extraArgs.listen-peer-urls etcd.local.extraArgs.advertise-client-urls",
		"a member of etcd that is elsewhere cannot be joined or repaired"},
	{"cluster", "apiServer.extraArgs.service-cluster-ip-range controllerManager.extraArgs.service-cluster-ip-range", "use network.service_subnet"},
	{"cluster", "controllerManager.extraArgs.cluster-cidr", "use network.pod_subnet"},
	{"cluster", "controllerManager.extraArgs.allocate-node-cidrs controllerManager.extraArgs.node-cidr-mask-size controllerManager.extraArgs.controllers",
		"the pod network and joins rely on it"},

	{"init", "bootstrapTokens certificateKey", "labctl makes a new one for each join"},
	{"init", "localAPIEndpoint", "the lab's nodes and checks rely on it: an address is ip of the node"},
	{"join", "controlPlane discovery", "labctl makes it for each join"},
	{"join", "caCertPath", "the lab's checks and repairs rely on kubeadm's default"},
	{"init join", "nodeRegistration.name", "use name of the node"},
	{"init join", "nodeRegistration.criSocket", "containerd of the node image is the runtime"},
	{"init join", "nodeRegistration.imagePullPolicy", "kubeadm's images come from the node image"},
	{"init join", "nodeRegistration.ignorePreflightErrors skipPhases dryRun", "labctl knows what can be left out"},
	{"init join", "nodeRegistration.taints nodeRegistration.kubeletExtraArgs.register-with-taints", "use taints of the role or the node"},
	{"init join", "nodeRegistration.kubeletExtraArgs.node-labels", "use labels of the role or the node"},
	{"init join", "nodeRegistration.kubeletExtraArgs.node-ip", "use ip of the node"},
	{"init join", "nodeRegistration.kubeletExtraArgs.hostname-override", "use name of the node"},
	{"init join", "nodeRegistration.kubeletExtraArgs.config nodeRegistration.kubeletExtraArgs.kubeconfig " +
		"nodeRegistration.kubeletExtraArgs.bootstrap-kubeconfig nodeRegistration.kubeletExtraArgs.container-runtime-endpoint",
		"kubelet's service has it"},
	{"init join", "patches", "use kubernetes.kubeadm.patches"},
	{"init join", "timeouts", "labctl's own limits follow from them: use tuning"},

	{"kubelet", "staticPodPath authentication.x509 clusterDNS clusterDomain", "the lab's checks and repairs rely on kubeadm's default"},
	{"kubelet", "cgroupDriver containerRuntimeEndpoint", "containerd of the node image is the runtime"},
	{"kubelet", "failCgroupV1 failSwapOn", "nodes may share this computer's cgroups and swap"},
	{"kubelet", "enableServer registerNode port healthzPort healthzBindAddress", "kubeadm and the lab's checks ask kubelet there"},
	{"kubelet", "registerWithTaints", "use taints of the role or the node"},

	{"kube_proxy", "clientConnection.kubeconfig hostnameOverride healthzBindAddress", "the lab's checks and repairs rely on kubeadm's default"},
	{"kube_proxy", "clusterCIDR", "use network.pod_subnet"},
	{"kube_proxy", "conntrack", "nodes may share this computer's connection tracking"},
}

// checkReserved refuses what of the fragment labctl lives by. The document is a
// key of kubernetes.kubeadm.
func (d *document) checkReserved(document, at string, fragment Fragment) {
	for _, r := range reserved {
		if !slices.Contains(strings.Fields(r.documents), document) {
			continue
		}
		for path := range strings.FieldsSeq(r.fields) {
			if field, found := find(at, fragment, strings.Split(path, ".")); found && d.trusted(field) {
				d.report(field, "labctl sets it: %s; remove it here", r.why)
			}
		}
	}
}

// find is the field of the value to which the path leads in the value at a field.
func find(at string, value any, path []string) (field string, found bool) {
	if len(path) == 0 {
		return at, true
	}
	switch v := value.(type) {
	case Fragment:
		if inner, is := v[path[0]]; is {
			return find(join(at, keyName(path[0])), inner, path[1:])
		}
	case []any:
		for i, item := range v {
			if nameOf(item) == path[0] {
				return find(fmt.Sprintf("%s[%d]", at, i), item, path[1:])
			}
		}
	}
	return "", false
}
