package symptom

import "strings"

// suspects are what a cause is often mistaken for: the programs say the same of both, or a general failure hides it. They are named after the
// cause when nothing else was seen, so that who finds the first untrue knows where to look next.
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

	// Causes of which the same is said.
	CRIPluginDisabled:          {RuntimeVersionUnsupported, CRIEndpointWrong},
	RuntimeVersionUnsupported:  {CRIPluginDisabled},
	RuntimeSocketMissing:       {CRIEndpointWrong, CRIPluginDisabled},
	CRIEndpointWrong:           {RuntimeSocketMissing, CRIPluginDisabled},
	ImagePullFailure:           {SandboxImageMisconfigured, DNSResolutionFailure},
	SandboxImageMisconfigured:  {ImagePullFailure},
	CgroupControllerMissing:    {CgroupDriverMismatch, KernelPrereqMissing},
	KernelPrereqMissing:        {KubeProxyCrash, CgroupControllerMissing},
	KubeProxyCrash:             {KernelPrereqMissing, APIServerUnreachable},
	CgroupDriverMismatch:       {CgroupControllerMissing, KubeletNotRunning},
	CNIStaleConfig:             {NetworkPluginPodsFailing, LeftoverState},
	CertificateExpired:         {ClockSkew, X509UnknownAuthority},
	ClockSkew:                  {CertificateExpired},
	X509UnknownAuthority:       {CertificateExpired, LeftoverState},
	X509SANMismatch:            {AdvertiseAddressWrong},
	TokenExpiredOrInvalid:      {ClockSkew, BootstrapRBACForbidden},
	BootstrapRBACForbidden:     {VersionSkew, TokenExpiredOrInvalid},
	CSRNotApproved:             {ControllerManagerFailing, NodeNameMismatch},
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

// perhaps begins the meaning of what is only suspected.
const perhaps = "Perhaps instead: "

// suspect adds what the only cause found may be mistaken for, up to three findings in all. A suspicion is a warning, nothing is repaired
// because of it, and it stands because of the cause that may hide it.
func suspect(found []Finding) []Finding {
	const enough = 3
	if len(found) == 0 {
		return nil
	}
	head := found[0]
	for _, id := range suspects[head.Symptom] {
		if len(found) >= enough || contains(found, id) {
			continue
		}
		sym := catalogue[byID[id]]
		found = append(found, Finding{Symptom: id, Level: Warn, Node: head.Node, Meaning: perhaps + sym.Meaning,
			Evidence: head.Evidence[:min(len(head.Evidence), 1)], Hint: sym.Hint, BecauseOf: head.Symptom})
	}
	return found
}

// Suspected says that the finding is only what another one may be mistaken for. Who judges several texts of one node may leave such out: what is
// known of the others tells more.
func (f Finding) Suspected() bool { return strings.HasPrefix(f.Meaning, perhaps) }

func contains(found []Finding, id ID) bool {
	for _, f := range found {
		if f.Symptom == id {
			return true
		}
	}
	return false
}
