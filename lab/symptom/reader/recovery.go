package reader

import "k8slab/lab/symptom"

// recovery is a sign that what was seen before it has passed. Only what is written in the order of time can be one: not the tables and
// events of kubectl describe.
type recovery struct {
	phrases []string
	what    passing
	// clears are the causes that it takes back, for passing of the kind some.
	clears []symptom.ID
}

type passing int

const (
	some    passing = iota
	attempt         // kubeadm starts, again perhaps
	joined          // kubeadm says that it succeeded
	ended           // a command says that it failed, which takes nothing back
)

var kubeletTroubles = []symptom.ID{symptom.KubeletNotRunning, symptom.KubeletConfigMissing, symptom.SwapEnabled, symptom.KubeletFlagRemoved, symptom.BootstrapKubeconfigMissing,
	symptom.RuntimeSocketMissing,
	symptom.CRIPluginDisabled, symptom.CgroupDriverMismatch, symptom.CgroupControllerMissing}

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
	{clears: append([]symptom.ID{symptom.APIServerUnreachable, symptom.TLSBootstrapTimeout, symptom.KubeletStandalone, symptom.NodeNameMismatch, symptom.X509UnknownAuthority,
		symptom.TokenExpiredOrInvalid, symptom.CSRNotApproved, symptom.EtcdUnreachable},
		kubeletTroubles...), phrases: []string{"Successfully registered node"}},
	{clears: append([]symptom.ID{symptom.CNINotInitialized, symptom.CNIStaleConfig, symptom.FlannelSubnetEnvMissing, symptom.CNIPluginBinaryMissing, symptom.NetworkPluginPodsFailing,
		symptom.APIServerUnreachable, symptom.TLSBootstrapTimeout,
		symptom.ImagePullFailure, symptom.PodCIDRNotAssigned}, kubeletTroubles...),
		phrases: []string{"Node became ready", "event=NodeReady", "Recording NodeReady event message", "as it just became ready"}},
	// A pod with an address of its own runs: the network of pods works here.
	{clears: []symptom.ID{symptom.CNINotInitialized, symptom.CNIStaleConfig, symptom.FlannelSubnetEnvMissing, symptom.CNIPluginBinaryMissing, symptom.NetworkPluginPodsFailing},
		phrases: []string{"RunPodSandbox for*Name:coredns*returns sandbox id",
			`"Observed pod startup duration" pod="kube-system/coredns`}},
	{clears: []symptom.ID{symptom.APIServerUnreachable, symptom.ControlPlaneCrashloop, symptom.KubeletNotRunning, symptom.EtcdUnreachable, symptom.TLSBootstrapTimeout}, phrases: []string{
		"All control plane components are healthy after", "control-plane-check] kube-apiserver is healthy after"}},
	{clears: []symptom.ID{symptom.EtcdLearnerNotInSync, symptom.EtcdTooManyLearners}, phrases: []string{"[mark-control-plane] Marking the node",
		"member was promoted", `"msg":"promote member"`, "promoted to a voting member",
		"successfully promoted", "is now a voting member", "[etcd] Waiting for the new etcd member to join the cluster*ready"}},
	// What still drops packets to another peer, or does not know this member, is said again within seconds.
	{clears: []symptom.ID{symptom.EtcdUnreachable, symptom.FirewallBlocked, symptom.EtcdStaleMember}, phrases: []string{"peer became active"}},
	{clears: []symptom.ID{symptom.EtcdUnreachable}, phrases: []string{"Serving securely on [::]:6443", "Caches are synced for APIServiceRegistrationController"}},
	{clears: []symptom.ID{symptom.KubeProxyCrash, symptom.KernelPrereqMissing}, phrases: []string{"Caches are synced for service config", "Caches are synced for endpoint slice config"}},
	// A leader's lease is kept in etcd, by way of the API server.
	{clears: []symptom.ID{symptom.APIServerUnreachable, symptom.EtcdUnreachable, symptom.EtcdNoQuorum, symptom.ControllerManagerFailing, symptom.BootstrapRBACForbidden},
		phrases: []string{"successfully acquired lease"}},
	{clears: []symptom.ID{symptom.FlannelSubnetEnvMissing, symptom.NetworkPluginPodsFailing, symptom.KernelPrereqMissing, symptom.PodCIDRNotAssigned, symptom.APIServerUnreachable},
		phrases: []string{"Wrote subnet file to", "main.go*Running backend."}},
	// An etcd that starts reads what it has written before: of members and learners that came and went, it complains once more. It publishes
	// itself when most members have agreed.
	{clears: []symptom.ID{symptom.EtcdDataCorrupt, symptom.EtcdStaleMember, symptom.EtcdTooManyLearners, symptom.EtcdLearnerNotInSync, symptom.EtcdNoQuorum, symptom.EtcdUnreachable, symptom.EtcdSlow},
		phrases: []string{"published local member to cluster through raft"}},
	{clears: []symptom.ID{symptom.EtcdNoQuorum}, phrases: []string{"elected leader", "became leader at term"}},
	{clears: []symptom.ID{symptom.RuntimeSocketMissing, symptom.CRIPluginDisabled}, phrases: []string{"containerd successfully booted"}},
}

// stateOfNodes are the causes that a successful join says nothing about, because they show on nodes that have joined.
var stateOfNodes = map[symptom.ID]bool{
	symptom.CNINotInitialized: true, symptom.CNIPluginBinaryMissing: true, symptom.CNIStaleConfig: true, symptom.FlannelSubnetEnvMissing: true, symptom.PodCIDRNotAssigned: true,
	symptom.KubeProxyCrash:           true,
	symptom.NetworkPluginPodsFailing: true, symptom.ImagePullFailure: true, symptom.OutOfMemory: true, symptom.DiskFull: true, symptom.SandboxImageMisconfigured: true,
	symptom.KubeletStandalone: true,
	symptom.CSRNotApproved:    true, symptom.DuplicateMachineIdentity: true, symptom.EtcdNoQuorum: true, symptom.EtcdSlow: true, symptom.ControlPlaneCrashloop: true,
}
