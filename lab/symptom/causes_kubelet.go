package symptom

// kubeletCauses are what keeps the kubelet, and what it runs as static pods, from working.
var kubeletCauses = []Symptom{
	{
		ID:      KubeletNotRunning,
		Meaning: "The kubelet is stopped or keeps exiting, and the evidence does not show why.",
		Hint: "`journalctl -u kubelet -n 100 --no-pager` has the reason in its last lines before each exit; then `systemctl enable " +
			"--now kubelet`, " +
			"or `kubeadm reset -f` and join again.",
		Repairable: true,
		patterns: together(
			proves(
				"localhost:10248/healthz*connection refused", "127.0.0.1:10248/healthz*connection refused",
				"127.0.0.1:10248: connect: connection refused", "[::1]:10248: connect: connection refused",
				"It seems like the kubelet isn't running or healthy", "kubelet.service: Failed with result",
				"kubelet.service: Main process exited, code=exited", "kubelet.service: Start request repeated too quickly",
				"Unit kubelet.service entered failed state", "kubelet.service failed", "kubelet.service: Unit entered failed state",
				"kubelet.service Active: failed", "ExecStart=/usr/bin/kubelet*(code=exited, status=",
				"localhost:10255/healthz*connection refused", "kubelet.service Active: inactive",
				"kubelet.service Active: activating (auto-restart)", "Kubelet stopped posting node status", "NodeStatusUnknown",
				"The kubelet is not healthy after", "couldn't start the kubelet", "failed to start kubelet",
				"Failed to restart kubelet", "kubelet.service is masked", "kubelet.service: main process exited, code=exited",
				"10248/healthz*context deadline exceeded", "10248/healthz*EOF", "Failed to start kubelet.service",
			),
			saysItself("kubelet is not running"),
			repeated(3, "kubelet.service: Scheduled restart job", "kubelet.service: Service hold-off time over, scheduling restart",
				"kubelet.service holdoff time over, scheduling restart"),
			seldomRight("failed to run Kubelet", "The kubelet is unhealthy due to a misconfiguration of the node in some way"),
			proves(
				"Failed to connect to localhost port 10248", "Failed to connect to 127.0.0.1 port 10248",
				"Job for kubelet.service failed", "kubelet.service start request repeated too quickly",
				"kubelet service is not active", "kubelet.service Active: deactivating",
				"Unit kubelet.service is masked", "Failed to start ContainerManager", "kubelet*panic: runtime error",
				"kubelet.service: control process exited", "kubelet is down", "kubelet stopped working",
				"port 10248*Connection refused", "kubelet.service: Failed to run",
				"kubelet.service: State 'stop-sigterm' timed out",
			),
		),
	},
	{
		ID:      KubeletConfigMissing,
		Meaning: "/var/lib/kubelet/config.yaml is missing: kubeadm has not run on this node, or it failed.",
		Hint: "Expected before `kubeadm init` or `kubeadm join` (as root); after it, look for that command's own error, then " +
			"`kubeadm reset -f` and join again. " +
			"On a member that lost the file: `kubeadm upgrade node phase kubelet-config`, `systemctl restart kubelet`.",
		patterns: together(proves(
			"failed to load Kubelet config file*/var/lib/kubelet/config.yaml",
			"/var/lib/kubelet/config.yaml: no such file or directory",
			"failed to read kubelet config file \"/var/lib/kubelet/config.yaml\"",
			"failed to load kubelet config file, path: /var/lib/kubelet/config.yaml", "failed to load kubelet config file",
			"/var/lib/kubelet/config.yaml*no such file",
			"unable to load client CA file /etc/kubernetes/pki/ca.crt",
		),
			proves(
				"kubeadm-flags.env: no such file", "kubelet.service: Failed to load environment files",
				"/var/lib/kubelet/config.yaml does not exist", "stat /var/lib/kubelet/config.yaml",
			),
		),
	},
	{
		ID:      KubeletStandalone,
		Meaning: "The kubelet runs without a kubeconfig, as a standalone agent, so it never registers with the cluster.",
		Hint: "`systemctl cat kubelet` must show kubeadm's drop-in 10-kubeadm.conf with --kubeconfig=/etc/kubernetes/kubelet.conf " +
			"and --bootstrap-kubeconfig, " +
			"and nothing that empties its arguments; `systemctl daemon-reload && systemctl restart kubelet`, then join the node.",
		Sources:    []string{"kubernetes/kubeadm#3270"},
		Repairable: true,
		patterns: together(proves(
			"assuming standalone kubelet", "kubelet running in standalone mode", "Kubelet is running in standalone mode",
			"No API server defined - no events will be sent", "standalone mode, no API client", "falling back to standalone mode",
			"kubeclient not set", "Standalone mode, no API client", "No api server defined - no node status update will be sent",
			"kubelet in standalone mode", "no client provided, cannot use webhook", "no client-go client provided, cannot use webhook",
		), seldomRight("/usr/bin/kubelet\n")),
	},
	{
		ID:      KubeletFlagRemoved,
		Meaning: "The kubelet is started with a flag or setting that its version no longer knows.",
		Hint: "Remove the flag from /var/lib/kubelet/kubeadm-flags.env, /etc/default/kubelet, /etc/sysconfig/kubelet or the " +
			"systemd drop-in (`systemctl cat kubelet`), " +
			"and from kubeletExtraArgs; `systemctl daemon-reload && systemctl restart kubelet`.",
		Sources: []string{"kubernetes/kubernetes#69656"},
		patterns: together(except(proves("unknown flag: --"), "--control-plane", "--experimental", "--upload-certs", "--certificate-key",
			"--print-join"), except(proves("failed to validate kubelet flags"), "container runtime endpoint"), proves(
			"failed to parse kubelet flag", "kubelet*unknown flag: --", "unknown flag: --network-plugin",
			"unknown flag: --container-runtime", "unknown flag: --cni-", "unknown flag: --cgroup-driver",
			"unknown flag: --allow-privileged", "unknown flag: --pod-infra-container-image", "unknown flag: --cadvisor-port",
			"unknown flag: --require-kubeconfig", "unknown flag: --keep-terminated-pod-volumes", "unrecognized feature gate",
			"Error: unknown shorthand flag", "no kind \"KubeletConfiguration\" is registered for version",
			"strict decoding error: unknown field*kubelet", "failed to set feature gates from initial flags-based config",
			"cannot set feature gate*to false, feature is locked to true",
			"unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels", "unknown node-labels",
			"flag provided but not defined", "invalid kubelet configuration",
			"failed to validate kubelet configuration", "failed to decode*KubeletConfiguration",
		),
			proves(
				"for --feature-gates flag", "failed to parse kubelet flags", "invalid argument*for*--feature-gates",
				"kubelet: error: unknown", "unknown command line flag", "strict decoder error for",
				"kubelet*flag*has been removed", "error unmarshaling JSON*kubelet", "unknown feature gate",
			),
			seldomRight(
				"--tls-min-version string", "--volume-plugin-dir string", "--topology-manager-policy string",
			),
		),
	},
	{
		ID: TLSBootstrapTimeout,
		Meaning: "The node did not get its identity in time, and the evidence does not show why; leftovers of an earlier attempt " +
			"are the usual finding.",
		Hint: "`journalctl -u kubelet -n 100 --no-pager` on the joining node, `kubectl get csr` on a control plane; " +
			"then `kubeadm reset -f` and join again with a new token (`kubeadm token create --print-join-command`).",
		Sources: []string{"kubernetes/kubeadm#2091", "kubernetes/kubernetes#93786"},
		patterns: together(
			proves(
				"error execution phase kubelet-start: timed out waiting for the condition",
				"error execution phase kubelet-start: error uploading crisocket", "error uploading crisocket",
				"error marking master: timed out", "mark-control-plane: error applying control-plane label",
				"Error writing Crisocket information", "error execution phase kubelet-wait-bootstrap",
				"error execution phase kubelet-start: unable to*context deadline exceeded", "failed while waiting for TLS bootstrap",
				"timed out waiting for the kubelet to bootstrap",
				"perform the TLS Bootstrap...timed out waiting for the condition", "kubelet-start: context deadline exceeded",
				"TLS bootstrap timed out",
				"Kubelet join monitoring timed out", "unable to write CRI socket information", "error execution phase kubelet-start",
			),
			except(seldomRight("timed out waiting for the condition"), "configmap cache", "secret cache", "MountVolume"),
			seldomRight("[kubelet-check] Initial timeout of 40s passed", "nodes * not found",
				"error getting node*not found", "Initial timeout of 40s passed", "Waiting for the kubelet to perform the TLS Bootstrap"),
			proves(
				"error execution phase mark-control-plane", "Error writing CRISocket", "couldn't complete TLS bootstrap",
				"error patching node", "error execution phase kubelet-finalize", "Timed out waiting for the kubelet",
			),
		),
	},
	{
		ID:      CSRNotApproved,
		Meaning: "Certificate requests of a node wait for approval, or are approved and never issued.",
		Hint: "`kubectl get csr`, `kubectl certificate approve NAME`; when new ones go on waiting, `kubeadm init phase " +
			"bootstrap-token` restores the approval bindings; " +
			"when approved ones are not issued, read kube-controller-manager's log and look at its CA key.",
		Sources: []string{"kubernetes/kubernetes#73356", "kubernetes/kubeadm#747"},
		patterns: together(
			proves(
				"system:node:*Pending", "system:bootstrap:*Pending", "kubelet-serving*Pending",
				"kubernetes.io/kube-apiserver-client-kubelet*Pending", "kube-apiserver-client-kubelet*Approved,Failed",
				"certificate request was not signed: timed out waiting", "certificate request was not signed",
				"cannot request serving certificate*CSR", "csr not approved", "error approving csr", "CSR*is not approved",
				"waiting for CSR*approved", "certificate signing request*was not approved", "system:node:*Approved,Failed",
				"http: TLS handshake error from*no serving certificate available for the kubelet",
				"no serving certificate available for the kubelet",

				"remote error: tls: internal error", "system:bootstrap:* Approved\n", "certificate request Status: Pending",
				"certificatesigningrequests*timed out waiting",
				"no auto-approval", "subject access review was not approved", "kubelet CSR*not issued",
				"recognized as valid*SignerValidationFailure",
			),
			seldomRight("error: Get *10250/containerLogs*tls"),
			proves(
				"kubelet-bootstrap*Pending", "certificate signing request*is pending", "waiting for client certificate",
				"Waiting for serving certificate", "no server certificate available",
			),
			proves(
				"certificate was not signed: context deadline exceeded", "failed to start the node certificate manager",
			),
		),
	},
	{
		ID:      NodeNameMismatch,
		Meaning: "The node's name and the identity in the kubelet's certificate are not the same.",
		Hint: "Make host name, kubelet's --hostname-override (or nodeRegistration.name) and certificate agree, all lower case: " +
			"`hostnamectl set-hostname NAME`, " +
			"then `kubeadm reset -f` and join again.",
		Sources: []string{"kubernetes/kubernetes#47695"},
		patterns: together(except(proves("Unable to register node*with API server: nodes"), "anonymous"), proves(
			"is not allowed to modify node", "node*is not allowed to modify node",
			"can only create pods with spec.nodeName set to itself",
			"can only access node lease with the same name as the requesting node",
			"can only access *with the same name as the requesting node",
			"cannot get resource \"nodes\" in API group \"\" at the cluster scope: node", "can only read own*node",
			"node * cannot read * only its own", "is forbidden: node*is not allowed to", "can only *same name as the requesting node",
			"hostname-override*differ", "nodes *forbidden: User system:node: cannot", "is forbidden: node*cannot modify node",
			"unknown node for user", "spec.csr*does not match node", "can only update node status with the same name",
			"can not modify node*is not allowed", "system:node:* cannot get resource \"nodes\"*", "provided node name*different from",
			"node name mismatch", "Unable to update node status*is not allowed to modify node",
		),
			proves(
				"failed to retrieve node info: nodes", "failed to get instance ID from cloud provider: instance not found",
				"error fetching current node instance", "cloud provider*node name*", "does not match the node name",
				"hostname*does not match*node",
			),
		),
	},
	{
		ID: BootstrapKubeconfigMissing,
		Meaning: "The kubelet wants /etc/kubernetes/bootstrap-kubelet.conf, which is gone, because its own kubeconfig is missing " +
			"or no longer valid.",
		Hint: "Issue a new one on a control plane: `kubeadm kubeconfig user --org system:nodes --client-name system:node:NODE > " +
			"kubelet.conf`, put it in " +
			"/etc/kubernetes/kubelet.conf of the node and `systemctl restart kubelet`; or `kubeadm reset -f` and join again.",
		Sources: []string{"kubernetes/kubernetes#98150"},
		patterns: together(endsTheWait(
			"unable to load bootstrap kubeconfig", "bootstrap-kubelet.conf: no such file or directory",
			"bootstrap-kubelet.conf*does not exist", "stat /etc/kubernetes/bootstrap-kubelet.conf: no such file",
			"bootstrap.kubeconfig: no such file or directory", "/etc/kubernetes/kubelet.conf: no such file or directory",
		), proves(
			// A kubelet that is restarted in the middle of its bootstrap says these too, and goes on.
			"unable to read existing bootstrap client config", "unable to read client-cert*kubelet-client*no such file",
			"unable to load kubeconfig*kubelet.conf*no such file",
		)),
	},
	{
		ID:      ControllerManagerFailing,
		Meaning: "kube-controller-manager does not work, so nothing signs certificates, assigns pod networks or watches nodes.",
		Hint: "`crictl logs $(crictl ps -a --name kube-controller-manager -q | head -1)`; its flags are in " +
			"/etc/kubernetes/manifests/kube-controller-manager.yaml.",
		patterns: together(
			proves(
				"kube-controller-manager*CrashLoopBackOff", "kube-controller-manager*0/1 Error",
				"restarting failed container=kube-controller-manager", "Back-off restarting failed container kube-controller-manager",
				"kube-controller-manager is not healthy",
				"kube-controller-manager check failed", "controller-manager*Unhealthy*connection refused",
				"controllermanager.go*error running controllers", "kube-controller-manager*exited", "Error building controller context",
				"failed to wait for apiserver being healthy: timed out", "controllermanager.go*] leaderelection lost",
				"leaderelection lost*controller-manager", "failed to start certificate controller",
				"error reading CA cert file*controller", "Failed to start controller*csrsigning",
				"controllermanager.go*\"command failed\"",
				"controller-manager*open /etc/kubernetes/controller-manager.conf: no such file", "Failed to create provider*controller",
				"kube-controller-manager*failed to", "failed to start*kube-controller-manager",
			),
			proves(
				"unable to load configmap based request-header-client-ca-file", "controllermanager.go*failed to",
				"Error starting*controllermanager.go", "kube-controller-manager*Error 1",
				"controllermanager.go*error starting controllers", "controllermanager.go*unable to",
				"kube-controller-manager*ContainerCannotRun", "invalid configuration*controller-manager.conf",
				"kube-controller-manager*RunContainerError", "unable to sync caches*controller-manager",
			),
		),
	},
	{
		ID:      ControlPlaneCrashloop,
		Meaning: "The containers of the control plane keep restarting.",
		Hint: "`crictl ps -a | grep kube-` and `crictl logs ID` of the one that ended last: its own error is the cause; the " +
			"kubelet's journal has it when the container is gone.",
		Sources: []string{"kubernetes/kubernetes#102715"},
		patterns: together(
			proves(
				"restarting failed container=kube-apiserver", "restarting failed container=etcd",
				"restarting failed container=kube-scheduler", "kube-apiserver*CrashLoopBackOff", "kube-scheduler*CrashLoopBackOff",
				"etcd-*CrashLoopBackOff", "Back-off restarting failed container kube-apiserver",
				"Back-off restarting failed container etcd", "Back-off restarting failed container kube-scheduler",
				"control plane component*crashed",
				"couldn't initialize a Kubernetes cluster", "failed while waiting for the control plane to start",
				"kube-apiserver is not healthy after", "kube-scheduler is not healthy after", "kube-apiserver check failed",
				"The API server is not healthy after", "error execution phase wait-control-plane",
				"StaticPod*kube-apiserver*CrashLoopBackOff", "failed waiting for the health check*kube-apiserver",
				"static Pod hash for component*did not change", "could not initialize a Kubernetes cluster",
			),
			seldomRight("kube-apiserver*Exited", "etcd*Exited", "Pod sandbox changed, it will be killed and re-created"),
			proves(
				"kube-apiserver*RunContainerError", "kube-apiserver*0/1 Error", "kube-scheduler*0/1 Error",
				"etcd-*0/1 Error", "static pod*did not start", "kube-apiserver*CreateContainerError",
				"etcd*CreateContainerError", "timed out waiting for the*control plane", "controlplane did not come up",
				"waiting for the control plane*timed out", "control plane was not ready",
				"couldn't initialize the control plane",
			),
			proves(
				"couldn't upgrade control plane",
			),
		),
	},
}
