package reader

import "k8slab/lab/symptom"

// recovery is a turn of events: most take back what was seen before. Its phrases are only of what programs write in the order of time,
// not of tables and events.
type recovery struct {
	phrases []string
	what    turn
	causes  []symptom.ID // that it takes back, if it is of the kind clears
}

// turn is a kind of turn of events.
type turn int

const (
	clears          turn = iota // some causes have passed
	attemptBegins               // kubeadm starts, perhaps again
	joined                      // kubeadm says that it succeeded
	commandFailed               // a command says that it failed, which takes nothing back
	commandEnds                 // so does the last line of one
	restarts                    // systemd starts the kubelet, perhaps again
	passesPreflight             // kubeadm goes beyond its checks
	playEnds                    // Ansible sums up how a host fared
)

// kubeletCauses are the causes that a running kubelet disproves.
var kubeletCauses = []symptom.ID{symptom.KubeletNotRunning, symptom.KubeletConfigMissing, symptom.SwapEnabled,
	symptom.KubeletFlagRemoved, symptom.BootstrapKubeconfigMissing, symptom.RuntimeSocketMissing, symptom.CRIPluginDisabled,
	symptom.CgroupDriverMismatch, symptom.CgroupControllerMissing}

var recoveries = []recovery{
	{what: attemptBegins, phrases: []string{"Running pre-flight checks", "[preflight] running pre-flight checks",
		"[init] Using Kubernetes version"}},
	{what: joined, phrases: []string{"This node has joined the cluster", "Kubernetes control-plane has initialized successfully",
		"Kubernetes master has initialized successfully", "Kubernetes control plane has initialized successfully", "Node join complete"}},
	{what: commandFailed, phrases: []string{"[preflight] Some fatal errors occurred", "[ERROR ", "level=fatal",
		"couldn't initialize a Kubernetes cluster", "Unfortunately, an error has occurred", "FATA[", "msg: non-zero return code"}},
	{what: commandEnds, phrases: []string{"error execution phase", "failed to run Kubelet", "command failed"}},
	{what: restarts, phrases: []string{"Started kubelet: The Kubernetes Node Agent"}},
	{what: passesPreflight, phrases: []string{"[certs] Using certificateDir folder", "[kubelet-start] Writing kubelet",
		"[kubelet-start] Starting the kubelet"}},
	{what: playEnds, phrases: []string{"unreachable=0 failed=0"}},
	{causes: []symptom.ID{symptom.APIServerUnreachable, symptom.DNSResolutionFailure, symptom.FirewallBlocked,
		symptom.ProxyInterference, symptom.TokenExpiredOrInvalid, symptom.CACertHashMismatch},
		phrases: []string{"Cluster info signature and contents are valid"}},
	{causes: kubeletCauses, phrases: []string{"Started kubelet\n", "The kubelet is healthy after",
		"Adding debug handlers to kubelet server"}},
	{causes: append([]symptom.ID{symptom.APIServerUnreachable, symptom.AdvertiseAddressWrong, symptom.TLSBootstrapTimeout,
		symptom.KubeletStandalone, symptom.NodeNameMismatch, symptom.X509UnknownAuthority, symptom.TokenExpiredOrInvalid, symptom.CSRNotApproved,
		symptom.EtcdUnreachable}, kubeletCauses...), phrases: []string{"Successfully registered node"}},
	{causes: append([]symptom.ID{symptom.CNINotInitialized, symptom.CNIStaleConfig, symptom.FlannelSubnetEnvMissing,
		symptom.CNIPluginBinaryMissing, symptom.NetworkPluginPodsFailing, symptom.APIServerUnreachable, symptom.TLSBootstrapTimeout,
		symptom.ImagePullFailure, symptom.PodCIDRNotAssigned}, kubeletCauses...), phrases: []string{"Node became ready",
		"event=NodeReady", "Recording NodeReady event message", "as it just became ready"}},
	// A pod with an address of its own runs, so the pod network works here.
	{causes: []symptom.ID{symptom.CNINotInitialized, symptom.CNIStaleConfig, symptom.FlannelSubnetEnvMissing,
		symptom.CNIPluginBinaryMissing, symptom.NetworkPluginPodsFailing},
		phrases: []string{"RunPodSandbox for*Name:coredns*returns sandbox id",
			`"Observed pod startup duration" pod="kube-system/coredns`}},
	{causes: []symptom.ID{symptom.APIServerUnreachable, symptom.ControlPlaneCrashloop, symptom.KubeletNotRunning,
		symptom.EtcdUnreachable, symptom.TLSBootstrapTimeout}, phrases: []string{"All control plane components are healthy after",
		"control-plane-check] kube-apiserver is healthy after"}},
	{causes: []symptom.ID{symptom.EtcdLearnerNotInSync, symptom.EtcdTooManyLearners},
		phrases: []string{"[mark-control-plane] Marking the node", "member was promoted", `"msg":"promote member"`,
			"promoted to a voting member", "successfully promoted", "is now a voting member",
			"[etcd] Waiting for the new etcd member to join the cluster*ready"}},
	// If another peer is still cut off, or does not know this member, etcd says so again within seconds.
	{causes: []symptom.ID{symptom.EtcdUnreachable, symptom.FirewallBlocked, symptom.EtcdStaleMember},
		phrases: []string{"peer became active"}},
	{causes: []symptom.ID{symptom.EtcdUnreachable}, phrases: []string{"Serving securely on [::]:6443",
		"Caches are synced for APIServiceRegistrationController"}},
	{causes: []symptom.ID{symptom.KubeProxyCrash, symptom.KernelPrereqMissing}, phrases: []string{"Caches are synced for service config",
		"Caches are synced for endpoint slice config"}},
	// The API server keeps the lease of a leader in etcd, so both work.
	{causes: []symptom.ID{symptom.APIServerUnreachable, symptom.EtcdUnreachable, symptom.EtcdNoQuorum, symptom.ControllerManagerFailing,
		symptom.BootstrapRBACForbidden}, phrases: []string{"successfully acquired lease"}},
	{causes: []symptom.ID{symptom.FlannelSubnetEnvMissing, symptom.NetworkPluginPodsFailing, symptom.KernelPrereqMissing,
		symptom.PodCIDRNotAssigned, symptom.APIServerUnreachable}, phrases: []string{"Wrote subnet file to", "main.go*Running backend."}},
	// A starting etcd replays its log and complains once more about members and learners of the past. It publishes itself when a majority
	// has agreed.
	{causes: []symptom.ID{symptom.EtcdDataCorrupt, symptom.EtcdStaleMember, symptom.EtcdTooManyLearners, symptom.EtcdLearnerNotInSync,
		symptom.EtcdNoQuorum, symptom.EtcdUnreachable, symptom.EtcdSlow, symptom.AdvertiseAddressWrong},
		phrases: []string{"published local member to cluster through raft"}},
	// A member that comes back with the same address says so again.
	{causes: []symptom.ID{symptom.AdvertiseAddressWrong, symptom.EtcdStaleMember, symptom.EtcdTooManyLearners, symptom.EtcdLearnerNotInSync,
		symptom.EtcdUnreachable, symptom.FirewallBlocked},
		phrases: []string{`"msg":"removed member"`}},
	{causes: []symptom.ID{symptom.EtcdNoQuorum}, phrases: []string{"elected leader", "became leader at term"}},
	{causes: []symptom.ID{symptom.RuntimeSocketMissing, symptom.CRIPluginDisabled}, phrases: []string{"containerd successfully booted"}},
}

// outlastsJoin are the causes that a successful join does not disprove, because nodes that have joined have them too.
var outlastsJoin = []symptom.ID{symptom.CNINotInitialized, symptom.CNIPluginBinaryMissing, symptom.CNIStaleConfig,
	symptom.FlannelSubnetEnvMissing, symptom.PodCIDRNotAssigned, symptom.KubeProxyCrash, symptom.NetworkPluginPodsFailing,
	symptom.ImagePullFailure, symptom.OutOfMemory, symptom.DiskFull, symptom.SandboxImageMisconfigured, symptom.KubeletStandalone,
	symptom.CSRNotApproved, symptom.DuplicateMachineIdentity, symptom.EtcdNoQuorum, symptom.EtcdSlow, symptom.ControlPlaneCrashloop}
