package reader

import "k8slab/lab/symptom"

// identityPhrases are of names, ports and files that are taken.
var identityPhrases = map[symptom.ID][]pattern{
	symptom.LeftoverState: together(
		endsTheWait(
			"[ERROR FileAvailable-", "[ERROR DirAvailable-", "/etc/kubernetes/kubelet.conf already exists",
			"/etc/kubernetes/manifests is not empty", "/var/lib/etcd is not empty", "/etc/kubernetes/pki/ca.crt already exists",
			"/etc/kubernetes/bootstrap-kubelet.conf already exists",
		),
		proves(
			"/etc/kubernetes is not empty", "manifests/kube-apiserver.yaml already exists",
			"exists already but has got the wrong CA cert", "exists already but has got the wrong API Server URL",
			"failed to reserve container name", "failed to reserve sandbox name", "The container name*is already in use by container",
			"isn't signed by the corresponding CA", `kubeconfig file "/etc/kubernetes/*already exists`, "etcd*data-dir*not empty",
			"directory*is not empty*kubeadm", "previous installation*found", "existing cluster*detected", "leftover*kubeadm",
		),
	),
	symptom.PortInUse: together(
		endsTheWait("[ERROR Port-"),
		proves(
			"address already in use", "Port 10250 is in use", "Port 6443 is in use", "Port 2379 is in use", "Port 2380 is in use",
			"Port 10251 is in use", "Port 10252 is in use", "Port 10257 is in use", "Port 10259 is in use", "Port 10248 is in use",
			"port is already allocated", "is in use\n", "Failed to listen on*10250", "listener*already in use", "ports are not available",
			"in use by another process", "ERROR: port*in use",
		),
	),
	symptom.NodeNameExists: together(
		endsTheWait(
			"a Node with name*and status*already exists in the cluster", "already exists in the cluster. You must delete",
			"change the name of this new joining Node", "a Node with name*already exists in the cluster",
			"Unable to register node*already exists",
		),
		proves("Node password rejected, duplicate hostname", "Node password validation failed"),
	),
	symptom.HostnameInvalid: together(
		endsTheWait(
			"a lowercase RFC 1123 subdomain must consist of", "nodeRegistration.name: Invalid value",
			"a DNS-1123 subdomain must consist of", "a lowercase RFC 1123 label must consist of", "a DNS-1123 label must consist of",
			"nodeName: Invalid value", "hostname*is not a valid", "invalid hostname", "empty hostname is invalid",
			"Invalid value*hostname", "name: Invalid value*subdomain", "hostname cannot be empty", "must be a valid DNS",
		),
		proves(
			"[ERROR Hostname]", "must be no more than 63 characters", "contains invalid character*hostname", "uppercase*hostname",
			"underscore*hostname", "metadata.name: Invalid value", "hostname contains capital letters",
			"not a valid name for a Kubernetes node", "not a valid node name",
		),
	),
	symptom.DuplicateMachineIdentity: proves(
		"same machine-id", "machine-id*duplicate", "identical machine-id", "same HWAddr", "duplicate product_uuid", "same product_uuid",
		"duplicate MAC", "same MAC address", "duplicate IP address*detected", "IPv6 DAD*failed", "duplicate address*detected",
		"product_uuid*same", "machineID*is not unique", "systemUUID*already", "system UUID*conflict", "same system UUID",
		"machine-id*not unique", "received packet on*with own address as source address", "ARP, duplicate", "conflicting machine ID",
		"already in use by another*MAC", "weave*peer name collision", "peer names collision", "Multiple connections to*added to",
		"Existing node*different*Machine ID", "is already using the IPv4 address", "is already in use by another node",
		"cloned*machine-id",
	),
}
