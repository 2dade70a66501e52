package symptom

// suspects are what a cause is often mistaken for: the programs say the same of both, or a general failure hides it. When nothing else was
// seen they are named after the cause, so that a reader who finds it untrue knows where to look next.
var suspects = map[ID][]ID{
	// Failures that hide their cause.
	KubeletNotRunning:        {CgroupDriverMismatch, SwapEnabled},
	TLSBootstrapTimeout:      {LeftoverState, KubeletNotRunning},
	APIServerUnreachable:     {ControlPlaneCrashloop, FirewallBlocked},
	ControlPlaneCrashloop:    {CgroupDriverMismatch, EtcdUnreachable},
	ControllerManagerFailing: {ControlPlaneCrashloop, APIServerUnreachable},
	EtcdUnreachable:          {EtcdNoQuorum, EtcdStaleMember},
	NetworkPluginPodsFailing: {CNIStaleConfig, APIServerUnreachable},
	CNINotInitialized:        {NetworkPluginPodsFailing, CNIPluginBinaryMissing},
	FlannelSubnetEnvMissing:  {NetworkPluginPodsFailing, PodCIDRNotAssigned},

	// Causes of which the programs say the same.
	CRIPluginDisabled:          {RuntimeVersionUnsupported, CRIEndpointWrong},
	RuntimeVersionUnsupported:  {CRIPluginDisabled},
	RuntimeSocketMissing:       {CRIEndpointWrong, CRIPluginDisabled},
	CRIEndpointWrong:           {RuntimeSocketMissing, CRIPluginDisabled},
	ImagePullFailure:           {SandboxImageMisconfigured, DNSResolutionFailure},
	SandboxImageMisconfigured:  {ImagePullFailure},
	CgroupControllerMissing:    {CgroupDriverMismatch, KernelPrereqMissing},
	KernelPrereqMissing:        {KubeProxyCrash, CgroupControllerMissing},
	KubeProxyCrash:             {CgroupDriverMismatch, KernelPrereqMissing},
	CgroupDriverMismatch:       {CgroupControllerMissing, KubeletNotRunning},
	CNIStaleConfig:             {NetworkPluginPodsFailing, LeftoverState},
	CertificateExpired:         {ClockSkew, X509UnknownAuthority},
	ClockSkew:                  {CertificateExpired},
	X509UnknownAuthority:       {CertificateExpired, LeftoverState},
	X509SANMismatch:            {AdvertiseAddressWrong},
	TokenExpiredOrInvalid:      {ClockSkew, BootstrapRBACForbidden},
	BootstrapRBACForbidden:     {VersionSkew, TokenExpiredOrInvalid},
	CSRNotApproved:             {ControllerManagerFailing, NodeNameMismatch},
	JoinConfigMissing:          {BootstrapRBACForbidden, TokenExpiredOrInvalid},
	NodeNameMismatch:           {HostnameInvalid, CSRNotApproved},
	BootstrapKubeconfigMissing: {CertificateExpired, KubeletConfigMissing},
	VersionSkew:                {KubeletFlagRemoved},
	KubeletFlagRemoved:         {VersionSkew},
	EtcdStaleMember:            {EtcdNoQuorum, EtcdMemberMismatch},
	EtcdMemberMismatch:         {EtcdStaleMember, LeftoverState},
	EtcdNoQuorum:               {EtcdUnreachable, EtcdStaleMember},
	EtcdSlow:                   {OutOfMemory, EtcdNoQuorum},
	PortInUse:                  {LeftoverState},
	LeftoverState:              {PortInUse},
	AdvertiseAddressWrong:      {FirewallBlocked, X509SANMismatch},
}

// MistakenFor are the other causes that a cause may be mistaken for, the likeliest first.
func MistakenFor(id ID) []ID { return suspects[id] }
