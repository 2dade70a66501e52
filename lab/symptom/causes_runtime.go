package symptom

// runtimeCauses are what keeps the container runtime from serving, and images from arriving.
var runtimeCauses = []Symptom{
	{
		ID:      RuntimeSocketMissing,
		Meaning: "Nothing answers on the container runtime's socket: the runtime is not installed, not started, or dead.",
		Hint: "`systemctl status containerd` and `journalctl -u containerd -n 50`; then `systemctl enable --now containerd`, " +
			"and `crictl --runtime-endpoint unix:///run/containerd/containerd.sock info` must answer.",
		Sources:    []string{"kubernetes/kubeadm#2794"},
		Repairable: true,
		patterns: together(
			except(endsTheWait(
				"dial unix *containerd.sock: connect: no such file or directory",
				"dial unix *containerd.sock: connect: connection refused", "dial unix *crio.sock: connect: no such file or directory",
				"dial unix *crio.sock: connect: connection refused", "dial unix *cri-dockerd.sock: connect: no such file or directory",
				"dial unix *cri-dockerd.sock: connect: connection refused",
				"connect endpoint *containerd.sock*make sure you are running as root and the endpoint has been started",
				"connect endpoint *crio.sock*make sure you are running as root and the endpoint has been started",
				"containerd: command not found",
			), "default endpoints", "podsandbox", "grpc: addrConn", "container factory"),
			proves(
				"[ERROR Service-Docker]", "[ERROR Service-Containerd]", "[ERROR Service-Crio]", "[ERROR Service-cri-o]",
				"Cannot connect to the Docker daemon", "failed to get docker version", "docker.service: Failed with result",
				"Failed to start docker", "docker service is not active", "couldn't connect to the docker daemon",
				"[ERROR CRI]: container runtime is not running*connect: no such file or directory",
				"[ERROR CRI]*could not connect to the container runtime*dial unix",
				"[ERROR CRI]*unable to check if the container runtime at*is running",
				"container runtime is not running*connect endpoint*deadline exceeded",
				"container runtime is not running*transport: error while dialing", "could not connect to the container runtime",
				"connect: no such file or directory*containerd.sock", "Container runtime sanity check failed",
				"containerd.service: Failed with result", "containerd.service: Main process exited, code=exited, status=1",
				"Failed to start containerd", "Unit containerd.service not found", "containerd.service could not be found",
				"crio.service: Failed with result", "containerd.service: Start request repeated too quickly",
				"Unit containerd.service is masked", "containerd.service Active: failed",
				"containerd.service Active: activating (auto-restart)", "docker.service Active: failed",
				"docker.service Active: inactive",
				"crio.service Active: failed", "crio.service Active: inactive", "KubeletNotReady*container runtime is down",
				"KubeletNotReady PLEG is not healthy", "containerd.service Active: inactive",
				"containerd: failed to load TOML", "containerd: invalid disabled plugin URI",
				"Error getting node*container runtime status*RuntimeReady=false", "RuntimeReady=false reason:",
				"unable to determine runtime API version*containerd.sock*no such file",
				"stat /run/containerd/containerd.sock: no such file or directory",
				"/run/containerd/containerd.sock: no such file or directory", "failed to find crio.sock",
				"connect: *stat /var/run/crio/crio.sock: no such file",
				"[ERROR CRI]: container runtime is not running: output: Client:*ERROR: Cannot connect",
				"container runtime network not ready: container runtime status check may not have completed yet*dial unix",
			),
			// At the kubelet's start the time is that since the beginning of all times.
			except(proves("pleg was last seen active *m*ago; threshold is 3m"), "2562047h"),
			repeated(3, "skipping pod synchronization*container runtime is down", "PLEG is not healthy: pleg was last seen active"),
			repeated(5, "container runtime status check may not have completed yet"),
			seldomRight("[ERROR CRI]: container runtime is not running", "container runtime is not running",
				"containerd.sock*context deadline exceeded",
				"validate service connection", "[ERROR CRI]"),
			proves(
				"get remote runtime typed version failed*Unavailable",
				"dial unix /var/run/docker.sock: connect: no such file",
				"dial unix /var/run/docker.sock: connect: connection refused", "cri-docker.service: Failed with result",
				"Unit cri-docker.service not found", "Unit docker.service not found", "Unit crio.service not found",
				"Unit docker.service could not be found", "Unit crio.service could not be found", "Failed to start crio",
				"Failed to start Container Runtime Interface for OCI",
				"Failed to start Docker Application Container Engine", "Failed to start CRI Interface for Docker",
				"failed to start daemon:", "Error starting daemon:", "unable to configure the Docker daemon with file",
				"dockerd: failed", "containerd.service: main process exited, code=exited",
				"docker.service: main process exited, code=exited", "crio.service: Main process exited, code=exited",
				"cri-docker.service Active: failed", "cri-docker.service Active: inactive",
				"Unit docker.service entered failed state", "Unit containerd.service entered failed state",
				"Job for docker.service failed", "Job for containerd.service failed", "Job for crio.service failed",
				"containerd.sock: connect: permission denied", "docker: command not found", "crio: command not found",
				"container runtime did not start", "runtime service*connection refused*containerd",
				"validating runtime config: ", "dial unix *containerd.sock: connect: permission denied",
				"container runtime*is not running or*reachable", "no container runtime found",
				"no container runtime was found", "Unit containerd.service failed to load", "docker.service failed",
				"containerd.service failed", "crio.service failed",
			),
			proves(
				"FATA[*failed to connect: failed to connect: context deadline exceeded",
				"crictl*failed to connect: context deadline exceeded",
			),
		),
	},
	{
		ID:      CRIPluginDisabled,
		Meaning: "containerd runs but does not serve the Kubernetes runtime interface: its CRI plugin is disabled or failed to load.",
		Hint: "Remove \"cri\" from disabled_plugins in /etc/containerd/config.toml (or recreate it: " +
			"`containerd config default > /etc/containerd/config.toml`, then SystemdCgroup = true), `systemctl restart containerd`, " +
			"`crictl info`.",
		Sources:    []string{"containerd/containerd#4581", "containerd/containerd#8139", "kubernetes/kubernetes#131164"},
		Repairable: true,
		patterns: together(
			except(endsTheWait(
				"unknown service runtime.v1.RuntimeService", "unknown service runtime.v1.ImageService",
				"unknown service runtime.v1alpha2.RuntimeService", "unknown service runtime.v1alpha2.ImageService",
				"CRI v1 runtime API is not implemented for endpoint", "CRI v1 image API is not implemented for endpoint",
			), "dockershim", "containerd/1.2", "containerd/1.3", "containerd/1.4", "containerd/1.5"),
			proves(
				`disabled_plugins = ["cri"]`, "disabled_plugins*io.containerd.grpc.v1.cri", "unknown service runtime.",
				"unknown service runtime", "failed to load plugin io.containerd.grpc.v1.cri",
				"failed to load plugin*io.containerd.cri.v1.runtime",
				"failed to load plugin*io.containerd.grpc.v1.cri", "skip loading plugin *io.containerd.grpc.v1.cri*disabled",
				"failed to load plugin*io.containerd.cri.v1.images", "failed to create CRI service",
				"failed to load plugin*cri*invalid plugin config", "container.Runtime.Name must be set",
			),
			proves(
				"systemd_cgroup only works for runtime", "mirrors cannot be set when config_path is provided",
				"no corresponding runtime configured", "code = Unimplemented desc = server is not implemented yet",
				"no runtime for * is configured", "cri plugin*is disabled", "CRI plugin is disabled",
				"unknown service v1.RuntimeService",
			),
		),
	},
	{
		ID: RuntimeVersionUnsupported,
		Meaning: "The container runtime is too old, or too new, for the version of the runtime interface that the kubelet or " +
			"kubeadm speaks.",
		Hint: "`containerd --version`; install 1.6.4 or newer (Kubernetes 1.36 wants 2.2 or newer) from containerd.io's packages, " +
			"`systemctl restart containerd kubelet`.",
		Sources: []string{"kubernetes/kubeadm#3229"},
		patterns: together(
			proves(
				"validate CRI v1 runtime API*unknown service runtime.v1.*containerd/1.5",
				"CRI v1 runtime API is not implemented*containerd/1.5", "this version of the container runtime*not supported",
				"runtime API version*is not supported", "unsupported runtime version", "container runtime version*is too old",
				"container runtime version*is not supported", "containerd version*too old", "not a supported container runtime version",
				"[ERROR ContainerRuntimeVersion]", "unsupported docker version",
				"[ERROR SystemVerification]: unsupported docker version",
				"docker version is greater than the most recently validated version*error",
				"[ERROR SystemVerification]: unsupported graph driver", "CRI v1alpha2*is no longer supported",
				"remote runtime*only supports v1alpha2", "unable to determine runtime API version: rpc error: code = Unimplemented",
				"You must update your container runtime to a version that supports the RuntimeConfig gRPC method",
				"the CRI implementation*does not support*RuntimeConfig*must be upgraded",
				"kubelet requires*RuntimeConfig*unimplemented*exit",
				"docker API version*is too old",
				"client version*is too old. Minimum supported API version",
			),
			seldomRight("unknown method RuntimeConfig for service runtime.v1.RuntimeService", "[WARNING ContainerRuntimeVersion]", "the most recently validated version"),
			proves(
				"cri-dockerd.sock*unknown service runtime.v1", "cri-dockerd*CRI v1 runtime API is not implemented",
				"requires a newer version of containerd", "containerd 1.*is not supported",
				"docker version is not supported", "unsupported container runtime version",
				"newer than the supported*docker", "minimum supported*containerd",
			),
		),
	},
	{
		ID:      CRIEndpointAmbiguous,
		Meaning: "kubeadm found more than one container runtime and will not choose between them.",
		Hint: "Name the one to use: `kubeadm join … --cri-socket unix:///run/containerd/containerd.sock` (or " +
			"nodeRegistration.criSocket), " +
			"or remove the unused runtime.",
		patterns: endsTheWait(
			"found multiple CRI endpoints on the host", "Found multiple CRI sockets", "multiple CRI endpoints",
			"please define which one do you wish to use by setting the criSocket", "please use --cri-socket to select one",
		),
	},
	{
		ID:      CRIEndpointWrong,
		Meaning: "kubeadm or the kubelet uses the socket of a runtime other than the installed one.",
		Hint: "Set nodeRegistration.criSocket and --container-runtime-endpoint in /var/lib/kubelet/kubeadm-flags.env to " +
			"unix:///run/containerd/containerd.sock, " +
			"correct `kubectl annotate node NODE --overwrite " +
			"kubeadm.alpha.kubernetes.io/cri-socket=unix:///run/containerd/containerd.sock`, `systemctl restart kubelet`.",
		patterns: together(
			except(proves(
				"dial unix *dockershim.sock: connect: no such file", "dial unix *dockershim.sock: connect: connection refused",
				"dockershim.sock*no such file or directory", "unix:///var/run/dockershim.sock*not running",
				"unknown service runtime.*dockershim.sock", "dockershim.sock*unknown service runtime",
				"[ERROR CRI]*dockershim.sock", "unix:///var/run/docker.sock*unknown service runtime",
				"endpoint*docker.sock*unknown service runtime", "--container-runtime-endpoint*dockershim.sock",
				"unix:///var/run/docker.sock*CRI v1 runtime API is not implemented", "unable to dial*dockershim.sock",
				"docker.sock*code = Unimplemented", "protocol scheme \"\" is not supported", "protocol \"\" not supported",
				"endpoint*protocol*not supported*cri", "Using dockershim*is no longer supported",
				"dockershim.sock*context deadline exceeded", "Get \"http://%2Fvar%2Frun%2Fdocker.sock",
				"connect endpoint 'unix:///var/run/dockershim.sock'", "dockershim.sock*make sure you are running as root",
			), "default endpoints", "unix:///run/crio/crio.sock unix", "runtime connect using"),
			endsTheWait("container runtime endpoint address was not specified or empty"),
			seldomRight("node*annotated with*dockershim.sock"),
			endsTheWait("docker is required for container runtime"),
			proves(
				"unknown container runtime*docker", "unsupported container runtime*docker", "container-runtime*dockershim",
				"invalid CRI socket", "invalid container runtime endpoint", "failed to dial*dockershim.sock",
			),
		),
	},
	{
		ID:         CrictlEndpointUnset,
		Meaning:    "crictl has no endpoint configured and tries its default sockets; the node itself is not affected.",
		Hint:       "`crictl config runtime-endpoint unix:///run/containerd/containerd.sock` (or the same in /etc/crictl.yaml).",
		Repairable: true,
		Minor:      true,
		patterns: proves(
			"runtime connect using default endpoints", "image connect using default endpoints",
			"As the default settings are now deprecated, you should set the endpoint instead",
			`Config "/etc/crictl.yaml" does not exist, trying next`, "connect using default endpoints",
		),
	},
	{
		ID:      CgroupDriverMismatch,
		Meaning: "The kubelet and the container runtime use different cgroup drivers.",
		Hint: "Use systemd for both: SystemdCgroup = true under runc's options in /etc/containerd/config.toml (docker: " +
			"\"exec-opts\": " +
			"[\"native.cgroupdriver=systemd\"]), cgroupDriver: systemd in /var/lib/kubelet/config.yaml; `systemctl restart " +
			"containerd kubelet`.",
		Sources: []string{"kubernetes/kubernetes#74249"},
		patterns: together(
			proves(
				"misconfiguration: kubelet cgroup driver", "kubelet cgroup driver: * is different from docker cgroup driver",
				"is different from docker cgroup driver", "cgroup driver*is different from", "cgroup driver mismatch",
				"expected cgroupsPath to be of format \"slice:prefix:name\" for systemd cgroups",
				"expected cgroupsPath to be of format", "cgroup-path*is not a valid systemd slice", "invalid slice name",
				"cgroupsPath*systemd cgroups*instead", "cgroup driver*does not match", "cgroup manager*mismatch",
				"cri-o configured with systemd cgroup manager, but did not receive slice as parent",
				"cri-o configured with cgroupfs cgroup manager, but received systemd slice as parent",
				"cgroup-parent for systemd cgroup should be a valid slice named as",
				"systemd cgroup flag passed, but systemd support for managing cgroups is not available",
			),
			seldomRight(
				"detected \"cgroupfs\" as the Docker cgroup driver", "[WARNING IsDockerSystemdCheck]", "SystemdCgroup = false",
				"Cgroup Driver: cgroupfs",
			),
			proves(
				"docker cgroup driver*kubelet cgroup driver", "cgroup driver*not match", "mismatched cgroup driver",
				"different cgroup drivers", "cgroup driver*differs from", "detected cgroup driver*but kubelet",
			),
			proves(
				"failed to run Kubelet: misconfigurati...", "cgroup driv...",
			),
		),
	},
	{
		ID:      SandboxImageMisconfigured,
		Meaning: "The runtime is configured with a pause image that it cannot pull, or with one other than the image on the node.",
		Hint: "Set sandbox_image (containerd 2: sandbox under pinned_images) in /etc/containerd/config.toml, or pause_image of " +
			"CRI-O, " +
			"to an image that is there or can be pulled (`kubeadm config images list | grep pause`), `systemctl restart containerd`.",
		Sources: []string{"kubernetes/kubeadm#684"},
		patterns: together(
			proves(
				"failed to get sandbox image", "failed to pull image*pause*sandbox", "Error response from daemon*pause*sandbox",
				"unable to pull sandbox image", "failed pulling image \"*pause", "sandbox image*failed to pull",
				"failed to pull sandbox image", "failed to start sandbox*get image*pause",
				"is inconsistent with that used by kubeadm*failed", "cannot pull sandbox image",
				"error creating pod sandbox*pause*not found", "RunPodSandbox*failed to get sandbox", "failed to ensure sandbox image",
			),
			seldomRight("detected that the sandbox image*of the container runtime is inconsistent with that used by kubeadm"),
		),
	},
	{
		ID:      ImagePullFailure,
		Meaning: "A container image cannot be pulled: the registry is unreachable, refuses, or has no such image.",
		Hint: "`crictl pull IMAGE` on the node shows the error alone; fix network, proxy or credentials, or use " +
			"`--image-repository`, " +
			"or bring the images beforehand: `kubeadm config images pull`, `ctr -n k8s.io images import FILE`.",
		patterns: together(
			proves(
				"[ERROR ImagePull]", "failed to pull image", "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull",
				"Back-off pulling image", "Error response from daemon: pull access denied", "manifest unknown",
				"failed to resolve reference", "pulling image*failed", "error pulling image", "PullImage*failed", "toomanyrequests:",
				"Error response from daemon: Get *registry", "pull QPS exceeded", "failed to do request: Head",
				"no matching manifest for", "couldn't pull image", "PullImage from image service failed", "unable to pull image",
				"InvalidImageName", "pull access denied", "unexpected status from HEAD request to", "pull and unpack image",
				"Error: image*not found*ErrImage", "image pull failed",
			),
			seldomRight("[preflight] Pulling images required for setting up a Kubernetes cluster*hang"),
			proves(
				"ImageInspectError", "unauthorized: authentication required", "repository does not exist or may require",
				"failed to copy: httpReadSeeker", "failed to extract layer", "failed to resolve image",
				"server gave HTTP response to HTTPS client", "requested access to the resource is denied",
				"manifest for * not found", "unable to fetch the image", "Image pull*failed", "failed to fetch image",
				"ImagePullErr", "image can't be pulled", "Unable to find image*locally", "RegistryUnavailable",
				"couldn't pull the image", "images pull: failed", "Error: Error pulling image", "/v2/: x509",
				"/v2/: net/http: TLS handshake timeout", "/v2/: net/http: request canceled", "/v2/: dial tcp",
				"/manifests/*: x509", "failed to load image", "config images pull*error", "Could not pull image",
				"is not present with pull policy of Never", "No such image: ",
			),
		),
	},
}
