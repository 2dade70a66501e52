package symptom

import (
	"slices"
	"strings"
)

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

// suspect adds what the only cause found may be mistaken for, up to three findings in all: what the text resembles besides, and what the
// programs say the same of. A suspicion is a warning, nothing is repaired because of it, and it stands because of the cause that may hide it.
func (s *scan) suspect(found []Finding) []Finding {
	const enough = 3
	if len(found) == 0 || len(found) >= enough {
		return found
	}
	head := found[0]
	for _, id := range s.doubts(head.Symptom) {
		if len(found) >= enough {
			break
		}
		if contains(found, id) {
			continue
		}
		sym := catalogue[byID[id]]
		found = append(found, Finding{Symptom: id, Level: Warn, Node: head.Node, Meaning: perhaps + sym.Meaning,
			Evidence: head.Evidence[:min(len(head.Evidence), 1)], Hint: sym.Hint, BecauseOf: head.Symptom})
	}
	return found
}

// doubts are what else it may be, the likeliest first.
func (s *scan) doubts(id ID) []ID {
	texts := s.sample()
	var like []ID
	for _, r := range resembling().causesOf(termsOf(texts...), appendBare(nil, []byte(strings.Join(texts, " ")))) {
		if r.id != id && r.id != Healthy && len(like) < 3 {
			like = append(like, r.id)
		}
	}
	known := min(len(like), 1)
	if general[id] { // it hides its cause, which the text may still resemble
		known = len(like)
	}
	return slices.Concat(like[:known], suspects[id], like[known:])
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
