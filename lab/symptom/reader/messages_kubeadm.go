package reader

import "k8slab/lab/symptom"

// kubeadmMessages are from cmd/kubeadm of Kubernetes 1.9 to 1.35.
var kubeadmMessages = map[symptom.ID][]pattern{
	symptom.AdvertiseAddressWrong: proves(
		"invalid API endpoint IP:", "invalid advertise address endpoint", "given for api.advertiseAddress",
		"is not a valid textual representation of an IP address", "given for controlPlaneEndpoint",
		"error parsing cluster controlPlaneEndpoint", "error parsing peer address",
	),
	symptom.APIServerUnreachable: proves(
		"failed to request the cluster-info ConfigMap", "Abort reading the cluster-info ConfigMap",
		"Abort reading the*ConfigMap after timeout", "unable to fetch cluster-info ConfigMap",
		"unable to fetch the kubeadm-config ConfigMap: failed to get config map: Get",
		"Couldn't fetch cluster version from the API Server", "Unable to fetch cluster version",
		"the API Server is unhealthy; /healthz didn't return",
	),
	symptom.BootstrapRBACForbidden: together(
		proves(
			"This API Server isn't set up for token bootstrapping", "key value pair missing*kubeadm-config",
			"unexpected error when reading kubeadm-config ConfigMap", "kubeadm:nodes-kubeadm-config*not found",
			"rolebindings*kubeadm*not found",
		),
		mayShow("could not download the kubelet configuration from ConfigMap"),
	),
	symptom.CACertHashMismatch: endsTheWait(
		"without DiscoveryTokenCACertHashes can be unsafe", "expected a 32 byte SHA-256 hash, found", "could not decode SHA-256 from hex",
		"public key sha256:*not pinned", "public key * not pinned", "(using validated TLS) was different from the first",
	),
	symptom.CertificateKeyExpired: proves(
		"Please use 'kubeadm join phase control-plane-prepare' subcommands to generate it",
		"the Secret does not include the required certificate or key", "couldn't find required certificate or key in Secret",
		"couldn't create a kubeconfig; the CA files couldn't be loaded",
		"the CA files do not exist, please run `kubeadm init phase certs ca`", "failure loading certificate authority for",
		"failure loading CA certificate", "failure loading service account key", "failure loading front-proxy",
		"couldn't load the private key file /etc/kubernetes/pki", "couldn't load the certificate file /etc/kubernetes/pki",
		"couldn't load CA certificate /etc/kubernetes/pki", "references unknown CA", "invalid or incomplete external CA",
		"invalid or incomplete external front-proxy CA",
	),
	symptom.CertificateKeyInvalid: endsTheWait("size of data is less than the nonce"),
	symptom.CNINotInitialized:     proves("container runtime condition NetworkReady is not true"),
	symptom.ControlPlaneCrashloop: proves(
		"failed while waiting for the control plane", "did not change after 5m0s: timed out",
		"fatal error when trying to upgrade the etcd cluster", "fatal error upgrading local etcd cluster",
		"failed to upgrade*rolled the state back", "got nil Pod for component", "wait-control-plane: could not initialize",
		"control plane components are not healthy", "kube-scheduler check failed at",
	),
	symptom.CRIEndpointWrong: proves(
		"the URL without scheme is not allowed", "lacks annotation kubeadm.alpha.kubernetes.io/cri-socket",
		"doesn't have kubeadm.alpha.kubernetes.io/cri-socket annotation", "empty CRI socket", "cri-socket: Invalid value",
		"criSocket: Invalid value", "dockershim support*has been removed",
	),
	symptom.EtcdMemberMismatch: proves("no member id found for peer URL", "etcd cluster contains endpoints with mismatched versions"),
	symptom.EtcdUnreachable: proves(
		"could not retrieve the list of etcd endpoints", "etcd Pods exist, but no etcd endpoint annotations were found",
		"error creating etcd client for", "fatal error creating etcd client", "failed to create etcd client",
		"could not determine cluster etcd version", "[ERROR ExternalEtcdVersion]: Get", "failed to retrieve the current etcd version",
	),
	symptom.HostnameInvalid: endsTheWait(
		"nodename is not valid, must be lower case", "--node-name or .nodeRegistration.name in the config file is a required value",
		"invalid node name format", "couldn't determine hostname", "must be a valid IP address or a valid RFC-1123 DNS subdomain",
		"altname is not a valid dns label", "hostname lookup : no such host",
	),
	symptom.HostToolsMissing: proves("openrc detected, but missing required binary", "Failed to find nsenter binary", "nsenter not found"),
	symptom.ImagePullFailure: proves(
		"the prepull operation timed out", "Failed prepulled the images", "unable to create a DaemonSet for prepulling",
		"invalid image repository format", "imageRepository: Invalid value", "[preflight] Some fatal errors*ImagePull",
		"failed to check if image*exists",
	),
	symptom.KernelPrereqMissing: proves(
		"unable to load kernel module", "unsupported kernel release", "no config path in*is available",
		"/proc/sys/net/*could not be read", "/proc/sys/net/*doesn't exist", "/proc/sys/net/*does not exist",
		"unsupported operating system:",
	),
	symptom.KubeBinariesMissing: together(
		mayShow("[WARNING KubeletVersion]: couldn't get kubelet version"),
		proves("Unable to parse output from Kubelet", "cannot execute 'kubelet --version'", "kubelet service does not exist\n"),
	),
	symptom.KubeletNotRunning: proves(
		"failed while waiting for the kubelet to start", "the kubelet healthz endpoint is unhealthy", "10248/healthz' returned HTTP code",
		"10248/healthz' returned error", "10248/healthz' failed with error", "unable to start the kubelet service",
		"10255/healthz' failed with error", "10255/healthz' returned", "couldn't start kubelet",
	),
	symptom.LeftoverState: together(
		mayShow("[WARNING FileAvailable--"),
		proves(
			"exists but does not contain a trusted CA", "contains an invalid CA cert", "that already exists on disk",
			"is not signed by corresponding CA", "not signed by CA certificate", "existed but it could not be loaded properly",
			"exists already but has an unexpected API Server URL", "ca.key exists", "expected CAname for", "[ERROR FileAvailable",
			"[ERROR DirAvailable",
		),
	),
	symptom.NodeNameMismatch: proves(
		"failed to get corresponding node: nodes", "faild to get corresponding node", "failed to get node registration: nodes",
		"failed to get node name from kubelet config", "could not find node*in the cluster status",
		"is not a node client, must have system:node: prefix", "failed to get APIEndpoint information for this node",
		"could not get node name",
	),
	symptom.PodCIDRNotAssigned: proves(
		"podSubnet: Invalid value", "the size of pod subnet with mask", "pod subnet size*mask", "podSubnet*subnet is too small",
		"cluster-cidr*node-cidr-mask*smaller", "node-cidr-mask-size*larger",
	),
	symptom.RuntimeSocketMissing: proves(
		"container runtime condition RuntimeReady is not true", "failed to create new CRI runtime service",
		"failed to create new CRI image service", "Couldn't create the interface used for talking to the container runtime",
		"cannot execute 'docker info", "failed to create docker client", "failed to get docker info", "failed to get runtime status",
		"docker service does not exist", "containerd service does not exist", "service does not exist*docker",
	),
	symptom.RuntimeVersionUnsupported: proves("failed to call RuntimeConfig gRPC method", "unsupported graph driver:"),
	symptom.TLSBootstrapTimeout: proves(
		"could not create client from bootstrap kubeconfig", "could not create a client for TLS bootstrap",
		"error applying control-plane label and taints", "the TLS bootstrap kubeconfig is malformed",
	),
	symptom.TokenExpiredOrInvalid: endsTheWait(
		"couldn't find authentication credentials for the TLS", "didn't match pattern*[a-z0-9]{6}", "was not of form*[a-z0-9]{6}",
		"token must be of form", "the bootstrap token is invalid", "bootstrap Token Secret is invalid", "missing token of form",
		"token: Invalid value", "[ERROR Token", "can't parse expiration time of bootstrap token",
	),
	symptom.VersionSkew: together(
		proves(
			"this version of kubeadm only supports external etcd version", "kubeadm can downgrade only",
			"is equal to or lower than the minimum supported version", "Such an upgrade is not supported",
			"unrecognized feature-gate key", "feature gate, which needs", "experimental API spec", "unknown configuration APIs",
			"kind and apiVersion is mandatory", "field is not supported by v1", "has been removed from JoinConfiguration",
			"has been removed from ClusterConfiguration", "Unable to fetch kubelet version", "couldn't parse kubelet version",
			"error unmarshaling configuration", "unknown configuration schema.GroupVersionKind",
			"no InitConfiguration or ClusterConfiguration kind was found", "the --version argument is invalid due to these errors",
			"the version argument is invalid due to these", "can not mix '--config' with arguments",
			"doesn't match patterns for neither semantic version nor labels", "CoreDNS cannot migrate the following plugins",
			"GetFromInternalConfig failed", "unable to decode config from", "unexpected apiVersion*you may have to do manual conversion",
			"Unable to upgrade a cluster using deprecated feature-gate flags", "mutually exclusive fields*kubeadm",
		),
		mayShow("Kubernetes version is greater than kubeadm version", "Different API server versions in the cluster were discovered"),
	),
	symptom.X509UnknownAuthority: proves(
		"failed to parse CA certificate from kubeconfig", "failed to parse cluster CA from the cluster-info",
		"no CA certificates found in kubeconfig", "CA cert could not be parsed as a PEM", "unable to get local issuer certificate",
		"self signed certificate in certificate chain", "self-signed certificate in certificate chain",
	),
}
