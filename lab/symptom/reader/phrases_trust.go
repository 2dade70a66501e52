package reader

import "k8slab/lab/symptom"

// trustPhrases are of tokens, certificates, authorities and clocks.
var trustPhrases = map[symptom.ID][]pattern{
	symptom.TokenExpiredOrInvalid: together(
		endsTheWait(
			"could not find a JWS signature in the cluster-info ConfigMap", "there is no JWS signed token in the cluster-info ConfigMap",
			"is invalid for this cluster or it has expired", "token id*is invalid for this cluster", "invalid bootstrap token",
			"invalid discovery token", "the JWS signature*is invalid", "no JWS signature",
			"failed to verify JWS signature of received cluster info object", "bootstrap token*has expired",
			`is not of the form "\\A([a-z0-9]{6})`, "bootstrap token ID*invalid", "token secret*has expired", "couldn't find a JWS",
			"the bootstrap token*was not of the form", "is not of the form*[a-z0-9]{6}*[a-z0-9]{16}",
		),
		repeated(3, "does not yet contain a JWS signature for token ID"),
		except(proves(
			"error execution phase preflight*: Unauthorized", "[discovery]*: Unauthorized", "kubeadm-config ConfigMap*Unauthorized",
			"the token*expired", "failed to get config map: Unauthorized",
			"failed to run Kubelet: cannot create certificate signing request: Unauthorized",
		), "kubeadm-certs"),
		// On a joining control plane, the kubelet asks its own API server, which rejects every token in its first second.
		repeated(2, "cannot create certificate signing request: Unauthorized"),
		proves(
			`secrets "bootstrap-token-`, "bootstrap token*not found", "token*has expired or", "failed to validate token",
			"the join token*expired", "expired token", "bootstrap token*expired", "failed to verify JWS", "token is not valid: https",
			"401 Unauthorized*node-token", "failed to validate connection to cluster*token",
		),
	),
	symptom.CACertHashMismatch: endsTheWait(
		"none of the public keys*are pinned", "cluster CA found in cluster-info ConfigMap is invalid", "invalid hash, expected",
		"invalid hash format", "invalid public key hash", "discovery-token-ca-cert-hash*invalid", "caCertHashes: Invalid value",
		"unsupported hash format", "invalid discovery token CA certificate hash", "unknown hash format",
		"using token-based discovery without caCertHashes can be unsafe",
		"couldn't validate the identity of the API Server: encoding/hex", "unable to validate the public key*pinned",
		"invalid CACertHash", "certificate pin", "CA hash does not match",
	),
	symptom.CertificateKeyExpired: together(
		endsTheWait(
			"kubeadm-certs*was not found", "kubeadm-certs*not found", "This Secret might have expired",
			"error downloading the secret: Secret", "failed to load CA certificate and key*ca.key*join*control",
		),
		proves(
			"failure loading key for service account: couldn't load the private key file",
			"failure loading certificate for front-proxy CA", "failure loading certificate for etcd CA",
			"the following required certificates are missing", "required certificates*not found on this node",
			"failure loading certificate for CA", "failure loading key for CA", "error downloading certs",
			"download-certs: error downloading", "the certificates*must be copied", "ca.key: no such file", "pki/ca.crt: no such file",
		),
	),
	symptom.CertificateKeyInvalid: except(endsTheWait(
		"error decoding secret data with provided key", "cipher: message authentication failed", "certificate key must be",
		"invalid certificate key", "certificateKey: Invalid value", "--certificate-key*invalid", "encoding/hex: invalid byte",
		"encoding/hex: odd length hex string", "error decoding certificate", "crypto/aes: invalid key size",
		"certificate-key*must be*hex",
	), "identity of the API Server"),
	symptom.BootstrapRBACForbidden: together(
		except(endsTheWait(`is forbidden: User "system:bootstrap:`, `User "system:bootstrap:*cannot`), "kubelet-config-1."),
		// Other resources do not count: every kubelet is anonymous until it has its first certificate.
		proves(`configmaps*is forbidden: User "system:anonymous"`, "configmaps*forbidden: User system:anonymous"),
		proves(
			"configmaps*is forbidden*kubeadm", `configmaps "kubeadm-config" is forbidden`, `configmaps "cluster-info" is forbidden`,
			`configmaps "kubelet-config" is forbidden`, `secrets "kubeadm-certs" is forbidden`, `configmaps "kubeadm-config" not found`,
			`configmaps "kubelet-config" not found`, `configmaps "cluster-info" not found`,
			`cannot create resource "certificatesigningrequests"`, "cannot create certificatesigningrequests.certificates.k8s.io",
			"failed to get config map: configmaps",
			"User system:node*cannot get resource configmaps*kubeadm", "could not bootstrap the admin user*forbidden",
			`clusterrolebindings*is forbidden: User "kubernetes-admin"`, `nodes*is forbidden: User "kubernetes-admin"`,
			"user*system:bootstrappers*forbidden", "group*system:bootstrappers*cannot",
		),
		// The authorizer of nodes does not know a node's pods yet, after a start of the API server.
		except(proves(`configmaps "kube-proxy" is forbidden`), "no relationship found between node"),
	),
	symptom.AdmissionRejects: proves("Unable to register node*failed calling webhook"),
	symptom.CertificateExpired: together(
		except(proves(
			"tls: expired certificate", "certificate expired", "kubelet-client-current.pem*expired",
			"bootstrap client certificate*is expired", "certificate*has expired", "is after 20",
			"remote error: tls: bad certificate*expired", "UTC <invalid>", "verify error:num=10",
		), "is before 20", "not valid yet"),
		mayShow("You must be logged in to the server (Unauthorized)", "the server has asked for the client to provide credentials"),
		proves(
			"residual time*invalid", "cert*is expired", "certs*have expired", "certificate*expired on", "has expired on",
			"CA certificate expired",
		),
	),
	symptom.ClockSkew: together(
		proves(
			"certificate is not yet valid", "is before 20", "not valid yet", "high clock drift", "clock difference",
			"clock skew detected", "system clock*not synchronized", "NTP synchronized: no", "System clock synchronized: no",
			"System clock wrong by", "Can't synchronise: no selectable sources", "token used before issued", "Clock skew too great",
			"Leap status: Not synchronised", "NTPSynchronized=no", "clock unsynchronized", "unsynchronised", "clock is out of sync",
			"time is not synchronized", "clocks are not synchronized", "Time jumped backwards", "System clock was stepped by",
			"time is in the future", "system time is*wrong", "date*is wrong on the node",
		),
		// Certificates are mostly new at a join, so the clock is wrong. Old programs do not say whether it is too early or too late.
		except(proves(
			"[discovery]*certificate has expired or is not yet valid", "Endpoint check failed*has expired or is not yet valid",
			"failed to check server version*has expired or is not yet valid",
			"couldn't validate the identity of the API Server*has expired or is not yet valid",
		), "is after 20"),
	),
	symptom.X509UnknownAuthority: together(
		except(proves(
			"certificate signed by unknown authority", "tls: unknown certificate authority", "crypto/rsa: verification error",
			"invalid signature: parent certificate cannot sign", "x509: ECDSA verification failure",
			"unable to verify the first certificate", "certificate-authority-data*invalid", "remote error: tls: unknown certificate",
			"peer certificate cannot be authenticated", "x509: invalid signature", "failed to load CA certificate",
			"parse cluster CA from the cluster-info",
		),
			"registry", "docker.io", "gcr.io", "failed to do request", "image", "metrics-server", "webhook", "/v2/", "aggregator",
			"expired",
		),
		except(repeated(3, "rejected connection*remote error: tls: bad certificate"), "expired"),
		except(mayShow("Unable to authenticate the request"), "service account token", "invalid bearer token"),
		mayShow("remote error: tls: bad certificate"),
	),
	symptom.X509SANMismatch: together(
		except(proves(
			"x509: certificate is valid for", "certificate is valid for *, not", "x509*is valid*not", "doesn't contain any IP SANs",
			"cannot validate certificate for", "x509: certificate is not valid for any names",
			"certificate relies on legacy Common Name field", "certificate is not valid for any names, but wanted",
			"x509: cannot validate certificate", "peer certificate*not match*SAN", "certificate specifies an incompatible",
			"certSANs*missing",
		), "metrics-server", "10250/stats", "10250/metrics", "scrape", "webhook"),
		proves(
			"no alternative certificate subject name matches", "certificate subject name*does not match target host name",
			"does not match any of the subjectAltNames",
		),
	),
	symptom.ControlPlaneEndpointMissing: endsTheWait("doesn't have a stable controlPlaneEndpoint",
		"unable to add a new control plane instance"),
	symptom.VersionSkew: together(
		endsTheWait(
			"only supports deploying clusters with the control plane version", "[ERROR KubeletVersion]",
			"Kubelet version*is lower than kubeadm can support", "is higher than the control plane version",
			"kubelet version is lower than", "[ERROR KubernetesVersion]", "this version of kubeadm is not able to*version",
			"this API version is not supported*kubeadm.k8s.io", "your configuration file uses an old API spec",
			"your configuration file uses a deprecated API spec*error", "please use kubeadm*instead and run 'kubeadm config migrate",
			`no kind "ClusterConfiguration" is registered for version`, `no kind "JoinConfiguration" is registered for version`,
			`no kind "InitConfiguration" is registered for version`, `no kind "MasterConfiguration" is registered for version`,
			"unsupported version of*kubeadm API", `configmaps "kubelet-config-1.*forbidden`, "unknown flag: --experimental",
			"unknown flag: --control-plane", "unknown flag: --upload-certs", "unknown flag: --certificate-key",
			"unknown flag: --print-join", "can't join*version skew",
		),
		proves(
			"kubelet-config-1.*is forbidden", "kubelet-config-1.*not found", "version skew", "can upgrade only 1 minor version at a time",
			"is at least one minor release higher than the kubeadm version", "There are kubelets in this cluster that are too old",
			"can only be used to upgrade to Kubernetes version", "kubelets in this cluster that have these versions*too old",
			"unable to download the kubelet configuration*forbidden", "error upgrading*too much",
			"Specified version to upgrade to*is higher than the kubeadm version", "this kubeadm version*not compatible",
			"the skew between*version", `unknown field "controlPlaneComponentHealthCheck`, "decode*kubeadm-config*unknown field",
			"unable to decode*kubeadm", "failed to decode cluster configuration data", "[ERROR CoreDNSUnsupportedPlugins]",
			"v1beta1*kubeadm*unknown", "failed to get kubelet's version", "[upgrade/version] FATAL",
			"the --version argument is invalid due to these fatal errors", "cannot unmarshal array into Go struct field*extraArgs",
			"cannot unmarshal object into Go struct field*extraArgs", "unsupported kubernetes version",
			"is newer than the kubeadm version", "kubelet version*newer than", "kubeadm version*older than",
			"version*is not supported by this version of kubeadm", "could not parse*Kubernetes version",
			"strict decoding error: unknown field*kubeadm", "unsupported or unknown Kubernetes version",
			"does not support*version of kubernetes", "kubeadm*kubelet*different minor",
		),
	),
}
