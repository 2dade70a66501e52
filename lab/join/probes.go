package join

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8slab/lab/symptom"
)

// scope says when a check is made.
type scope int

const (
	anywhere   scope = iota // on any machine
	beforeJoin              // only before a join: it is about what a join needs, or puts load on a disk
	afterJoin               // only on a member, as part of its repair
	ofMember                // only on a member, by Validate
	ofLabnode               // by whoever runs labnode on the machine
)

// probe is one check and what is known of it.
type probe struct {
	id     CheckID
	scope  scope
	when   func(Target) bool // the targets that ask for it; nil: all
	limit  time.Duration     // how long it may take; 0: quick
	ignore []string          // kubeadm's names of the same check, lower case: any of them in Target.Ignore turns a failure into a warning
	run    func(context.Context, *preflight) Check
	repair func(context.Context, *preflight) (string, error) // repairs what run found fixable, and says what it did; nil: nothing to repair

	ask   func(*member, context.Context) Check                            // instead of run, of a member
	watch func(*member, context.Context, func(Check) (enough bool)) error // follows what ask asks; nil: ask again
	of    func(*member) bool                                              // the members that are asked; nil: all
	Traits
}

// Traits are what a check's result says to whoever judges a machine by it.
type Traits struct {
	Repairable  bool   // RepairMember repairs what the check found fixable
	Kubelets    bool   // kubelet asks the runtime for the same thing, and judges its node by the answer
	Way         bool   // it is about the way to the API server: without a cluster it means nothing
	MembersOnly bool   // it fails only on a machine that has joined
	WarnIsFault bool   // its warning is a fault on a machine that has joined
	Local       bool   // it asks only programs of this machine, nothing of the cluster
	Refutes     causes // causes that are impossible where it passes
}

type causes = []symptom.ID

const (
	firstAnswer = apiLimit + grace // what is known with the API server's first answer
	allAnswers  = apiLimit + 2*quick
	criAnswer   = criLimit + grace
)

func toEndpoint(t Target) bool         { return t.Endpoint != "" }
func withToken(t Target) bool          { return t.Endpoint != "" && t.Token != "" }
func asControlPlane(t Target) bool     { return t.ControlPlane }
func toJoinControlPlane(t Target) bool { return t.ControlPlane && t.Endpoint != "" }

// table has every check, from cause to effect: the first of two failures is the nearer to the cause. Preflight's come before Validate's.
var table = []probe{
	{id: CheckHostname, ignore: []string{"hostname"}, run: checkHostname, repair: repairHostname,
		Traits: Traits{Repairable: true, Refutes: causes{symptom.HostnameInvalid}}},
	{id: CheckMachineID, scope: beforeJoin, run: checkMachineID},
	{id: CheckProductUUID, scope: beforeJoin, run: checkProductUUID},
	{id: CheckMemory, scope: beforeJoin, ignore: []string{"mem"}, run: checkMemory},
	{id: CheckCPU, scope: beforeJoin, ignore: []string{"numcpu"}, run: checkCPU},
	{id: CheckDisk, run: checkDisk, Traits: Traits{Refutes: causes{symptom.DiskFull, symptom.ReadOnlyFilesystem}}},
	{id: CheckSwap, limit: allAnswers, ignore: []string{"swap"}, run: checkSwap, repair: repairSwap,
		Traits: Traits{Repairable: true, Refutes: causes{symptom.SwapEnabled}}},
	{id: CheckKernelModules, ignore: []string{"systemverification"}, run: checkModules, repair: repairModules,
		Traits: Traits{Repairable: true}},
	{id: CheckSysctls, ignore: []string{"filecontent--proc-sys-net-ipv4-ip_forward"}, run: checkSysctls, repair: repairSysctls,
		Traits: Traits{Repairable: true, Refutes: causes{symptom.KernelPrereqMissing}}},
	{id: CheckCgroups, limit: allAnswers, ignore: []string{"systemverification"}, run: checkCgroups,
		Traits: Traits{Refutes: causes{symptom.CgroupControllerMissing, symptom.CgroupV1Unsupported}}},
	{id: CheckKubeBinaries, run: checkKubeBinaries, Traits: Traits{Refutes: causes{symptom.KubeBinariesMissing}}},
	{id: CheckHostTools, ignore: []string{"fileexisting-mount", "fileexisting-losetup", "fileexisting-cp", "fileexisting-conntrack"},
		run: checkHostTools, Traits: Traits{Refutes: causes{symptom.HostToolsMissing}}},
	{id: CheckKubeletUnit, run: checkKubeletUnit, repair: repairKubeletUnit,
		Traits: Traits{Repairable: true, Local: true, Refutes: causes{symptom.KubeletStandalone}}},
	{id: CheckCNIPlugins, run: checkCNIPlugins, repair: repairCNIPlugins,
		Traits: Traits{Repairable: true, Refutes: causes{symptom.CNIPluginBinaryMissing}}},
	{id: CheckCNIConfig, limit: criAnswer, run: checkCNIConfig, repair: repairCNIConfig,
		Traits: Traits{Repairable: true, Kubelets: true, MembersOnly: true, Local: true, Refutes: causes{symptom.CNINotInitialized}}},
	{id: CheckCRI, limit: criAnswer, ignore: []string{"cri"}, run: checkCRI, repair: repairCRI,
		Traits: Traits{Repairable: true, Kubelets: true, Local: true,
			Refutes: causes{symptom.RuntimeSocketMissing, symptom.CRIPluginDisabled, symptom.CRIEndpointWrong, symptom.CRIEndpointAmbiguous}}},
	{id: CheckImageFilesystem, limit: criAnswer, run: checkImageFilesystem, repair: repairCRI,
		Traits: Traits{Repairable: true, Local: true, Refutes: causes{symptom.ImageFilesystemZero}}},
	{id: CheckRuntimeVersion, limit: criAnswer, ignore: []string{"containerruntimeversion"}, run: checkRuntimeVersion,
		Traits: Traits{Local: true, Refutes: causes{symptom.RuntimeVersionUnsupported}}},
	{id: CheckCgroupDriver, limit: allAnswers, run: checkCgroupDriver, repair: repairCgroupDriver,
		Traits: Traits{Repairable: true, Refutes: causes{symptom.CgroupDriverMismatch}}},
	{id: CheckLeftovers, scope: beforeJoin, run: checkLeftovers, repair: repairLeftovers},
	{id: CheckPorts, run: checkPorts, Traits: Traits{Refutes: causes{symptom.PortInUse}}},
	{id: CheckFirewall, run: checkFirewall, Traits: Traits{WarnIsFault: true}},
	{id: CheckAddress, when: func(t Target) bool { return t.Address != "" }, run: checkAddress},
	{id: CheckEtcdDisk, scope: beforeJoin, when: asControlPlane, run: checkEtcdDisk},

	{id: CheckProxy, when: toEndpoint, ignore: []string{"httpproxy"}, run: checkProxy,
		Traits: Traits{Way: true, Refutes: causes{symptom.ProxyInterference}}},
	{id: CheckEndpointName, when: toEndpoint, limit: firstAnswer, run: checkEndpointName,
		Traits: Traits{Way: true, Refutes: causes{symptom.DNSResolutionFailure}}},
	{id: CheckEndpointConnect, when: toEndpoint, limit: firstAnswer, run: checkEndpointConnect,
		Traits: Traits{Way: true, Refutes: causes{symptom.APIServerUnreachable}}},
	{id: CheckClock, when: toEndpoint, limit: firstAnswer, run: checkClock,
		Traits: Traits{Way: true, WarnIsFault: true, Refutes: causes{symptom.ClockSkew}}},
	{id: CheckCAHash, when: toEndpoint, limit: allAnswers, run: checkCAHash},
	{id: CheckEndpointTLS, when: toEndpoint, limit: allAnswers, run: checkEndpointTLS, Traits: Traits{Way: true}},
	{id: CheckEndpointHealth, when: toEndpoint, limit: firstAnswer, run: checkEndpointHealth, Traits: Traits{Way: true}},
	{id: CheckBootstrapToken, when: withToken, limit: allAnswers, run: checkToken},
	{id: CheckVersion, when: withToken, limit: allAnswers, ignore: []string{"kubeletversion", "kubernetesversion"}, run: checkVersion},
	{id: CheckNodeName, when: withToken, limit: allAnswers, run: checkNodeName},
	{id: CheckControlPlaneEndpoint, scope: beforeJoin, when: toJoinControlPlane, limit: allAnswers, run: checkControlPlaneEndpoint},
	{id: CheckCertificateKey, when: toJoinControlPlane, limit: allAnswers, run: checkCertificateKey},
	{id: CheckEtcdPeers, scope: beforeJoin, when: func(t Target) bool { return toJoinControlPlane(t) && len(t.Peers) > 0 }, run: checkPeers},
	{id: CheckImages, limit: allAnswers, run: checkImages, repair: repairImages, Traits: Traits{Repairable: true}},

	{id: CheckKubeletConfig, scope: afterJoin, run: checkMemberConfig, repair: repairMemberConfig, Traits: Traits{Repairable: true}},
	{id: CheckKubeletService, scope: afterJoin, run: checkKubeletService, repair: repairKubeletService, Traits: Traits{Repairable: true}},

	{id: CheckKubelet, scope: ofMember, ask: (*member).askKubelet, Traits: Traits{Local: true, Refutes: causes{
		symptom.KubeletNotRunning, symptom.KubeletStandalone, symptom.KubeletConfigMissing, symptom.KubeletFlagRemoved,
		symptom.BootstrapKubeconfigMissing, symptom.CgroupControllerMissing, symptom.CgroupV1Unsupported,
	}}},
	{id: CheckCluster, scope: ofMember, ask: (*member).askCluster},
	{id: CheckRole, scope: ofMember, ask: (*member).askRole, of: func(w *member) bool { return w.t.Endpoint != "" }},
	{id: CheckEtcdMember, scope: ofMember, ask: (*member).askEtcd, of: (*member).runsEtcd, Traits: Traits{Refutes: causes{
		symptom.EtcdTooManyLearners, symptom.EtcdMemberMismatch, symptom.EtcdStaleMember, symptom.EtcdNoQuorum,
	}}},
	{id: CheckAPIServer, scope: ofMember, ask: component("kube-apiserver", defaultAPIPort, "/livez", symptom.ControlPlaneCrashloop), of: (*member).controlPlane},
	{id: CheckControllerManager, scope: ofMember, ask: component("kube-controller-manager", "10257", "/healthz", symptom.ControllerManagerFailing),
		of: (*member).controlPlane, Traits: Traits{Refutes: causes{symptom.ControllerManagerFailing}}},
	{id: CheckScheduler, scope: ofMember, ask: component("kube-scheduler", "10259", "/healthz", symptom.ControlPlaneCrashloop), of: (*member).controlPlane},
	{id: CheckNode, scope: ofMember, ask: (*member).askNode, watch: (*member).watchNode},
	{id: CheckLabnode, scope: ofLabnode},
}

// probes are the checks of the table that are wanted.
func probes(wanted func(probe) bool) []probe {
	return slices.DeleteFunc(slices.Clone(table), func(pr probe) bool { return !wanted(pr) })
}

// before are the checks that a machine must pass to join as the target says.
func before(t Target) []probe {
	return probes(func(pr probe) bool { return pr.scope <= beforeJoin && (pr.when == nil || pr.when(t)) })
}

// checks are those that Validate makes of the member.
func (w *member) checks() []probe {
	return probes(func(pr probe) bool { return pr.scope == ofMember && (pr.of == nil || pr.of(w)) })
}

var traits = sync.OnceValue(func() map[CheckID]Traits {
	all := map[CheckID]Traits{}
	for _, pr := range table {
		all[pr.id] = pr.Traits
	}
	return all
})

// Traits are those of the check; of an unknown one there are none.
func (id CheckID) Traits() Traits { return traits()[id] }
