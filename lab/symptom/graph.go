package symptom

// explains says which causes directly bring which others about: if both are seen, the right-hand ones are consequences. It follows from
// what the programs do. There must be no cycle.
var explains = map[ID][]ID{
	// Without a runtime the kubelet runs nothing.
	CRIEndpointWrong:          {CRIPluginDisabled, RuntimeSocketMissing, KubeletNotRunning},
	CRIEndpointAmbiguous:      {KubeletNotRunning},
	RuntimeVersionUnsupported: {CRIPluginDisabled, KubeletNotRunning},
	CRIPluginDisabled:         {RuntimeSocketMissing},
	RuntimeSocketMissing:      {KubeletNotRunning, ImagePullFailure},
	CrictlEndpointUnset:       {CRIEndpointWrong},
	SandboxImageMisconfigured: {ImagePullFailure},
	ImagePullFailure: {ControlPlaneCrashloop, NetworkPluginPodsFailing, KubeProxyCrash, EtcdLearnerNotInSync, KubeletNotRunning,
		Unexplained},

	// A program, a library or a configuration that is not what it should be.
	FileChanged: {RuntimeSocketMissing, KubeletNotRunning, KubeletStandalone, CNIPluginBinaryMissing, CNINotInitialized, NetworkPluginPodsFailing,
		HostToolsMissing, KernelPrereqMissing, ImagePullFailure, ControlPlaneCrashloop, Unexplained},

	// The host.
	DiskFull: {RuntimeSocketMissing, EtcdSlow, EtcdUnreachable, ControlPlaneCrashloop, NetworkPluginPodsFailing,
		ImagePullFailure, EtcdDataCorrupt},
	ReadOnlyFilesystem: {RuntimeSocketMissing, KubeletNotRunning, ControlPlaneCrashloop, KubeProxyCrash, EtcdUnreachable},
	SELinuxDenied:      {RuntimeSocketMissing, KubeletNotRunning, ControlPlaneCrashloop, EtcdUnreachable, NetworkPluginPodsFailing},
	OutOfMemory: {RuntimeSocketMissing, ControlPlaneCrashloop, EtcdSlow, EtcdUnreachable, NetworkPluginPodsFailing,
		KubeProxyCrash},
	KernelPrereqMissing:     {RuntimeSocketMissing, NetworkPluginPodsFailing, KubeProxyCrash, KubeletNotRunning},
	CgroupControllerMissing: {KubeletNotRunning, ControlPlaneCrashloop},
	CgroupV1Unsupported:     {CgroupControllerMissing, KubeletFlagRemoved, KubeletNotRunning},
	CgroupDriverMismatch:    {CgroupControllerMissing, KubeletNotRunning, ControlPlaneCrashloop, NetworkPluginPodsFailing, KubeProxyCrash},
	SwapEnabled:             {KubeletNotRunning},
	HostToolsMissing:        {KubeProxyCrash, KubeletNotRunning, RuntimeSocketMissing},
	KubeBinariesMissing:     {VersionSkew, KubeletNotRunning},

	// The kubelet. Without it nothing on the node runs.
	KubeletFlagRemoved:         {KubeletNotRunning},
	KubeletConfigMissing:       {KubeletNotRunning},
	KubeletStandalone:          {TLSBootstrapTimeout},
	BootstrapKubeconfigMissing: {KubeletNotRunning},
	KubeletNotRunning:          {ControlPlaneCrashloop, EtcdUnreachable, EtcdLearnerNotInSync, TLSBootstrapTimeout, CNINotInitialized},
	HostnameInvalid:            {NodeNameMismatch},
	NodeNameMismatch:           {CSRNotApproved, TLSBootstrapTimeout, KubeletNotRunning},
	CSRNotApproved:             {TLSBootstrapTimeout},
	NodeNameExists:             {TLSBootstrapTimeout},
	LeftoverState:              {PortInUse, X509UnknownAuthority, KubeletNotRunning},
	PortInUse:                  {KubeletNotRunning, ControlPlaneCrashloop, EtcdUnreachable},
	DuplicateMachineIdentity:   {NetworkPluginPodsFailing, TLSBootstrapTimeout},

	// Trust.
	ClockSkew: {CertificateExpired, X509UnknownAuthority, TokenExpiredOrInvalid, EtcdUnreachable},
	CertificateExpired: {BootstrapKubeconfigMissing, X509UnknownAuthority, ControllerManagerFailing, EtcdStaleMember,
		EtcdUnreachable},
	X509UnknownAuthority:   {APIServerUnreachable, CSRNotApproved, NetworkPluginPodsFailing, EtcdUnreachable, KubeletNotRunning},
	X509SANMismatch:        {APIServerUnreachable, EtcdUnreachable, TLSBootstrapTimeout},
	TokenExpiredOrInvalid:  {APIServerUnreachable, TLSBootstrapTimeout, KubeletNotRunning},
	CACertHashMismatch:     {APIServerUnreachable},
	BootstrapRBACForbidden: {APIServerUnreachable, CSRNotApproved, TLSBootstrapTimeout},
	JoinConfigMissing:      {APIServerUnreachable, BootstrapRBACForbidden, TokenExpiredOrInvalid, TLSBootstrapTimeout},
	RBACChanged: {BootstrapRBACForbidden, CSRNotApproved, ControllerManagerFailing, KubeProxyCrash, DNSResolutionFailure, NetworkPluginPodsFailing,
		TLSBootstrapTimeout, Unexplained},
	AdmissionRejects:            {TLSBootstrapTimeout, NetworkPluginPodsFailing, CSRNotApproved},
	VersionSkew:                 {BootstrapRBACForbidden, KubeletNotRunning, TLSBootstrapTimeout, UpgradeUnfinished},
	ControlPlaneEndpointMissing: {CertificateKeyExpired},

	// Ways between machines.
	AdvertiseAddressWrong: {FirewallBlocked, X509SANMismatch, APIServerUnreachable, EtcdUnreachable, EtcdNoQuorum, EtcdLearnerNotInSync,
		EtcdMemberMismatch, NodeNameMismatch},
	ProxyInterference:    {DNSResolutionFailure, APIServerUnreachable, ImagePullFailure, X509UnknownAuthority},
	DNSResolutionFailure: {APIServerUnreachable, ImagePullFailure, TLSBootstrapTimeout},
	FirewallBlocked:      {APIServerUnreachable, EtcdLearnerNotInSync, EtcdUnreachable, EtcdNoQuorum, NetworkPluginPodsFailing},
	APIServerUnreachable: {TLSBootstrapTimeout, ControllerManagerFailing, NetworkPluginPodsFailing, KubeProxyCrash},

	// Machines.
	MachineNotRunning: {NodeUnreachable},
	MachinePaused:     {NodeUnreachable},
	NodeUnreachable:   {APIServerUnreachable, EtcdUnreachable, EtcdNoQuorum, KubeletNotRunning},

	// etcd, and the API server on top of it.
	EtcdDataCorrupt:       {EtcdStaleMember, EtcdNoQuorum, EtcdUnreachable},
	EtcdTooManyLearners:   {EtcdLearnerNotInSync},
	EtcdMemberMismatch:    {EtcdLearnerNotInSync, EtcdNoQuorum, EtcdUnreachable},
	EtcdStaleMember:       {EtcdLearnerNotInSync, EtcdNoQuorum, EtcdUnreachable},
	EtcdNoQuorum:          {EtcdSlow, EtcdUnreachable},
	EtcdSlow:              {EtcdUnreachable, EtcdLearnerNotInSync},
	EtcdLearnerNotInSync:  {EtcdUnreachable},
	EtcdUnreachable:       {ControlPlaneCrashloop},
	ControlPlaneCrashloop: {APIServerUnreachable},

	// The pod network, which needs all of the above.
	ControllerManagerFailing: {CSRNotApproved, PodCIDRNotAssigned},
	PodCIDRNotAssigned:       {FlannelSubnetEnvMissing, NetworkPluginPodsFailing},
	KubeProxyCrash:           {NetworkPluginPodsFailing},
	CNIPluginBinaryMissing:   {NetworkPluginPodsFailing, CNINotInitialized},
	CNIStaleConfig:           {NetworkPluginPodsFailing, CNINotInitialized},
	FlannelSubnetEnvMissing:  {CNINotInitialized},
	NetworkPluginPodsFailing: {CNINotInitialized},
}

// reach has explains and its indirect steps: reach[a][b] says that a brings b about.
var reach = func() map[ID]map[ID]bool {
	all := make(map[ID]map[ID]bool, len(explains))
	var follow func(ID) map[ID]bool
	follow = func(a ID) map[ID]bool {
		if seen, ok := all[a]; ok {
			return seen
		}
		seen := map[ID]bool{}
		all[a] = seen
		for _, b := range explains[a] {
			seen[b] = true
			for c := range follow(b) {
				seen[c] = true
			}
		}
		return seen
	}
	for a := range explains {
		follow(a)
	}
	return all
}()

// general are the failures with so many causes that each of them is a place to look rather than a cause.
var general = map[ID]bool{
	KubeletNotRunning: true, TLSBootstrapTimeout: true, APIServerUnreachable: true, ControlPlaneCrashloop: true,
	ControllerManagerFailing: true, EtcdUnreachable: true, NetworkPluginPodsFailing: true, Unexplained: true,
}

// Brings reports whether a brings b about, directly or through others, by the catalogue's graph of causes.
func Brings(a, b ID) bool { return reach[a][b] }

// General reports whether a failure has so many causes that it is a place to look rather than a cause.
func General(id ID) bool { return general[id] }
