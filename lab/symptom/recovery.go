package symptom

// recovery is a sign that what was seen before it has passed. Only what is written in the order of time can be one: not the tables and
// events of kubectl describe.
type recovery struct {
	phrases []string
	what    passing
	// clears are the causes that it takes back, for passing of the kind some.
	clears []ID
}

type passing int

const (
	some    passing = iota
	attempt         // kubeadm starts, again perhaps
	joined          // kubeadm says that it succeeded
	ended           // a command says that it failed, which takes nothing back
)

var kubeletTroubles = []ID{KubeletNotRunning, KubeletConfigMissing, SwapEnabled, KubeletFlagRemoved, BootstrapKubeconfigMissing,
	RuntimeSocketMissing,
	CRIPluginDisabled, CgroupDriverMismatch, CgroupControllerMissing}

var recoveries = []recovery{
	{what: attempt, phrases: []string{"Running pre-flight checks", "[preflight] running pre-flight checks",
		"[init] Using Kubernetes version"}},
	{what: joined, phrases: []string{"This node has joined the cluster", "Kubernetes control-plane has initialized successfully",
		"Kubernetes master has initialized successfully", "Kubernetes control plane has initialized successfully",
		"Node join complete"}},
	{what: ended, phrases: []string{"error execution phase", "[preflight] Some fatal errors occurred", "[ERROR ", "level=fatal",
		"failed to run Kubelet",
		"couldn't initialize a Kubernetes cluster", "Unfortunately, an error has occurred", "command failed", "FATA[", "msg: non-zero return code"}},
	{clears: kubeletTroubles, phrases: []string{"Started kubelet\n", "The kubelet is healthy after",
		"Adding debug handlers to kubelet server"}},
	{clears: append([]ID{APIServerUnreachable, TLSBootstrapTimeout, KubeletStandalone, NodeNameMismatch, X509UnknownAuthority,
		TokenExpiredOrInvalid, CSRNotApproved, EtcdUnreachable},
		kubeletTroubles...), phrases: []string{"Successfully registered node"}},
	{clears: append([]ID{CNINotInitialized, CNIStaleConfig, FlannelSubnetEnvMissing, CNIPluginBinaryMissing, NetworkPluginPodsFailing,
		APIServerUnreachable, TLSBootstrapTimeout,
		ImagePullFailure, PodCIDRNotAssigned}, kubeletTroubles...),
		phrases: []string{"Node became ready", "event=NodeReady", "Recording NodeReady event message", "as it just became ready"}},
	// A pod with an address of its own runs: the network of pods works here.
	{clears: []ID{CNINotInitialized, CNIStaleConfig, FlannelSubnetEnvMissing, CNIPluginBinaryMissing, NetworkPluginPodsFailing},
		phrases: []string{"RunPodSandbox for*Name:coredns*returns sandbox id",
			`"Observed pod startup duration" pod="kube-system/coredns`}},
	{clears: []ID{APIServerUnreachable, ControlPlaneCrashloop, KubeletNotRunning, EtcdUnreachable, TLSBootstrapTimeout}, phrases: []string{
		"All control plane components are healthy after", "control-plane-check] kube-apiserver is healthy after"}},
	{clears: []ID{EtcdLearnerNotInSync, EtcdTooManyLearners}, phrases: []string{"[mark-control-plane] Marking the node",
		"member was promoted", `"msg":"promote member"`, "promoted to a voting member",
		"successfully promoted", "is now a voting member", "[etcd] Waiting for the new etcd member to join the cluster*ready"}},
	// What still drops packets to another peer, or does not know this member, is said again within seconds.
	{clears: []ID{EtcdUnreachable, FirewallBlocked, EtcdStaleMember}, phrases: []string{"peer became active"}},
	{clears: []ID{EtcdUnreachable}, phrases: []string{"Serving securely on [::]:6443", "Caches are synced for APIServiceRegistrationController"}},
	{clears: []ID{KubeProxyCrash, KernelPrereqMissing}, phrases: []string{"Caches are synced for service config", "Caches are synced for endpoint slice config"}},
	// A leader's lease is kept in etcd, by way of the API server.
	{clears: []ID{APIServerUnreachable, EtcdUnreachable, EtcdNoQuorum, ControllerManagerFailing, BootstrapRBACForbidden},
		phrases: []string{"successfully acquired lease"}},
	{clears: []ID{FlannelSubnetEnvMissing, NetworkPluginPodsFailing, KernelPrereqMissing, PodCIDRNotAssigned, APIServerUnreachable},
		phrases: []string{"Wrote subnet file to", "main.go*Running backend."}},
	// An etcd that starts reads what it has written before: of members and learners that came and went, it complains once more. It publishes
	// itself when most members have agreed.
	{clears: []ID{EtcdDataCorrupt, EtcdStaleMember, EtcdTooManyLearners, EtcdLearnerNotInSync, EtcdNoQuorum, EtcdUnreachable, EtcdSlow},
		phrases: []string{"published local member to cluster through raft"}},
	{clears: []ID{EtcdNoQuorum}, phrases: []string{"elected leader", "became leader at term"}},
	{clears: []ID{RuntimeSocketMissing, CRIPluginDisabled}, phrases: []string{"containerd successfully booted"}},
}

// stateOfNodes are the causes that a successful join says nothing about, because they show on nodes that have joined.
var stateOfNodes = map[ID]bool{
	CNINotInitialized: true, CNIPluginBinaryMissing: true, CNIStaleConfig: true, FlannelSubnetEnvMissing: true, PodCIDRNotAssigned: true,
	KubeProxyCrash:           true,
	NetworkPluginPodsFailing: true, ImagePullFailure: true, OutOfMemory: true, DiskFull: true, SandboxImageMisconfigured: true,
	KubeletStandalone: true,
	CSRNotApproved:    true, DuplicateMachineIdentity: true, EtcdNoQuorum: true, EtcdSlow: true, ControlPlaneCrashloop: true,
}
