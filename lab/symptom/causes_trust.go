package symptom

// trustCauses are tokens, certificates, certificate authorities and clocks.
var trustCauses = []Symptom{
	{
		ID:      TokenExpiredOrInvalid,
		Meaning: "The bootstrap token has expired, was deleted, or never existed in this cluster.",
		Hint: "On a control plane: `kubeadm token list`, then `kubeadm token create --print-join-command`, and join with what it " +
			"prints.",
		Sources:    []string{"kubernetes/kubernetes#86936"},
		Repairable: true,
	},
	{
		ID:      CACertHashMismatch,
		Meaning: "The pinned hash is not the hash of this cluster's authority, or is malformed.",
		Hint: "On a control plane: `kubeadm token create --print-join-command` prints the current hash; when it differs from the one " +
			"in use, make sure that the address is the right cluster's.",
		Sources: []string{"kubernetes/kubeadm#2471"},
	},
	{
		ID:      CertificateKeyExpired,
		Meaning: "The uploaded certificates are gone (they live two hours) or were never uploaded.",
		Hint: "On a control plane: `kubeadm init phase upload-certs --upload-certs`, then join with the key that it prints " +
			"(`--certificate-key`).",
		Sources:    []string{"labring/sealos#1783"},
		Repairable: true,
	},
	{
		ID:         CertificateKeyInvalid,
		Meaning:    "The certificate key does not decrypt the uploaded certificates: a later upload changed it, or it is mistyped.",
		Hint:       "On a control plane: `kubeadm init phase upload-certs --upload-certs`; use the newest key only.",
		Sources:    []string{"kubernetes/kubeadm#1510"},
		Repairable: true,
	},
	{
		ID:      BootstrapRBACForbidden,
		Meaning: "The joining node's bootstrap identity may not read what it needs: kubeadm's roles are missing.",
		Hint: "On a control plane: `kubeadm init phase bootstrap-token`, `kubeadm init phase upload-config all` and, for control " +
			"planes, `kubeadm init phase upload-certs --upload-certs`; they restore roles and ConfigMaps.",
		Sources:    []string{"kubernetes/kubeadm#907"},
		Repairable: true,
	},
	{
		ID: JoinConfigMissing,
		Meaning: "A ConfigMap that every joining machine reads is missing, empty or wrong: cluster-info in kube-public, or kubeadm-config " +
			"or kubelet-config in kube-system.",
		Hint: "On a control plane: `kubeadm init phase bootstrap-token` makes a missing cluster-info, `kubeadm init phase upload-config all " +
			"--config FILE` the other two; FILE is the configuration that the cluster was made with.",
		Repairable: true,
		Measured:   true,
	},
	{
		ID: RBACChanged,
		Meaning: "A role or a binding is missing or changed by which the cluster's own parts work: of the administrator, of kubeadm's add-ons, " +
			"or one that API servers make.",
		Hint: "`labctl repair` restores it. By hand: an API server that restarts makes its own; `kubeadm init phase addon all --config FILE` " +
			"makes those of the add-ons; `kubectl --kubeconfig /etc/kubernetes/super-admin.conf create clusterrolebinding " +
			"kubeadm:cluster-admins --clusterrole=cluster-admin --group=kubeadm:cluster-admins` the administrator's.",
		Repairable: true,
		Measured:   true,
	},
	{
		ID:      AdmissionRejects,
		Meaning: "An admission webhook or policy rejects what the cluster needs, or does not answer and fails closed.",
		Hint: "The message names it: `kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations," +
			"validatingadmissionpolicybindings -o wide`; have its owner mend it, exempt nodes from it, or set its failurePolicy to " +
			"Ignore; then join again.",
		Sources: []string{"kubernetes/kubernetes#103274", "open-policy-agent/gatekeeper#786", "kyverno/kyverno#4686"},
	},
	{
		ID:      CertificateExpired,
		Meaning: "A certificate of the cluster or of a kubelet has expired.",
		Hint: "`kubeadm certs check-expiration`; `kubeadm certs renew all` on each control plane, restart its static pods and take " +
			"the new admin.conf; for a kubelet issue a new kubelet.conf (`kubeadm kubeconfig user --org system:nodes --client-name " +
			"system:node:NODE`).",
		Sources: []string{"kubernetes/kubeadm#1651", "kubernetes/kubernetes#98150"},
	},
	{
		ID:      ClockSkew,
		Meaning: "The clock of a machine is wrong.",
		Hint: "`timedatectl` on both machines; `systemctl enable --now chrony` (or chronyd, systemd-timesyncd), `chronyc makestep`; " +
			"then try again.",
		Sources: []string{"kubernetes/kubernetes#42791"},
	},
	{
		ID: X509UnknownAuthority,
		Meaning: "The authority that a client trusts is not the one that signed the server's certificate: an old kubeconfig or a " +
			"replaced authority.",
		Hint: "Use the current one: `cp /etc/kubernetes/admin.conf ~/.kube/config`; on a node `kubeadm reset -f` and join again; " +
			"after a change of the authority also fix the cluster-info ConfigMap in kube-public.",
		Sources: []string{"kubernetes/kubeadm#2781", "kubernetes/kubeadm#2500", "kubernetes/kubeadm#1147"},
	},
	{
		ID:      X509SANMismatch,
		Meaning: "The server's certificate does not name the address that is used to reach it.",
		Hint: "Add the address to apiServer.certSANs of the kubeadm configuration, move /etc/kubernetes/pki/apiserver.crt and .key " +
			"aside, `kubeadm init phase certs apiserver --config FILE`, restart kube-apiserver; or use an address that it names.",
	},
	{
		ID:      ControlPlaneEndpointMissing,
		Meaning: "Another control plane cannot join because the cluster has no stable controlPlaneEndpoint.",
		Hint: "Set controlPlaneEndpoint: HOST:6443 in ClusterConfiguration (`kubectl -n kube-system edit cm kubeadm-config`), " +
			"reissue the API server's certificate with that name (`kubeadm init phase certs apiserver`), then join again.",
	},
	{
		ID:      VersionSkew,
		Meaning: "The versions of kubeadm, kubelet and control plane are not compatible.",
		Hint: "`kubeadm version -o short`, `kubelet --version` and `kubectl version`: install packages of the control plane's minor " +
			"version (kubeadm equal or one newer; kubelet never newer, at most three older), then join again.",
		Sources: []string{"kubernetes/kubernetes#94065"},
	},
}
