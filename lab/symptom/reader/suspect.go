package reader

import (
	"slices"
	"strings"

	"k8slab/lab/symptom"
)

// suspects are what a cause is often mistaken for: the programs say the same of both, or a general failure hides it. When nothing else was
// seen they are named after the cause, so that a reader who finds it untrue knows where to look next.
var suspects = map[symptom.ID][]symptom.ID{
	// Failures that hide their cause.
	symptom.KubeletNotRunning:        {symptom.CgroupDriverMismatch, symptom.SwapEnabled},
	symptom.TLSBootstrapTimeout:      {symptom.LeftoverState, symptom.KubeletNotRunning},
	symptom.APIServerUnreachable:     {symptom.ControlPlaneCrashloop, symptom.FirewallBlocked},
	symptom.ControlPlaneCrashloop:    {symptom.CgroupDriverMismatch, symptom.EtcdUnreachable},
	symptom.ControllerManagerFailing: {symptom.ControlPlaneCrashloop, symptom.APIServerUnreachable},
	symptom.EtcdUnreachable:          {symptom.EtcdNoQuorum, symptom.EtcdStaleMember},
	symptom.NetworkPluginPodsFailing: {symptom.CNIStaleConfig, symptom.APIServerUnreachable},
	symptom.CNINotInitialized:        {symptom.NetworkPluginPodsFailing, symptom.CNIPluginBinaryMissing},
	symptom.FlannelSubnetEnvMissing:  {symptom.NetworkPluginPodsFailing, symptom.PodCIDRNotAssigned},

	// Causes of which the programs say the same.
	symptom.CRIPluginDisabled:          {symptom.RuntimeVersionUnsupported, symptom.CRIEndpointWrong},
	symptom.RuntimeVersionUnsupported:  {symptom.CRIPluginDisabled},
	symptom.RuntimeSocketMissing:       {symptom.CRIEndpointWrong, symptom.CRIPluginDisabled},
	symptom.CRIEndpointWrong:           {symptom.RuntimeSocketMissing, symptom.CRIPluginDisabled},
	symptom.ImagePullFailure:           {symptom.SandboxImageMisconfigured, symptom.DNSResolutionFailure},
	symptom.SandboxImageMisconfigured:  {symptom.ImagePullFailure},
	symptom.CgroupControllerMissing:    {symptom.CgroupDriverMismatch, symptom.KernelPrereqMissing},
	symptom.KernelPrereqMissing:        {symptom.KubeProxyCrash, symptom.CgroupControllerMissing},
	symptom.KubeProxyCrash:             {symptom.CgroupDriverMismatch, symptom.KernelPrereqMissing},
	symptom.CgroupDriverMismatch:       {symptom.CgroupControllerMissing, symptom.KubeletNotRunning},
	symptom.CNIStaleConfig:             {symptom.NetworkPluginPodsFailing, symptom.LeftoverState},
	symptom.CertificateExpired:         {symptom.ClockSkew, symptom.X509UnknownAuthority},
	symptom.ClockSkew:                  {symptom.CertificateExpired},
	symptom.X509UnknownAuthority:       {symptom.CertificateExpired, symptom.LeftoverState},
	symptom.X509SANMismatch:            {symptom.AdvertiseAddressWrong},
	symptom.TokenExpiredOrInvalid:      {symptom.ClockSkew, symptom.BootstrapRBACForbidden},
	symptom.BootstrapRBACForbidden:     {symptom.VersionSkew, symptom.TokenExpiredOrInvalid},
	symptom.CSRNotApproved:             {symptom.ControllerManagerFailing, symptom.NodeNameMismatch},
	symptom.NodeNameMismatch:           {symptom.HostnameInvalid, symptom.CSRNotApproved},
	symptom.BootstrapKubeconfigMissing: {symptom.CertificateExpired, symptom.KubeletConfigMissing},
	symptom.VersionSkew:                {symptom.KubeletFlagRemoved},
	symptom.KubeletFlagRemoved:         {symptom.VersionSkew},
	symptom.EtcdStaleMember:            {symptom.EtcdNoQuorum, symptom.EtcdMemberMismatch},
	symptom.EtcdMemberMismatch:         {symptom.EtcdStaleMember, symptom.LeftoverState},
	symptom.EtcdNoQuorum:               {symptom.EtcdUnreachable, symptom.EtcdStaleMember},
	symptom.EtcdSlow:                   {symptom.OutOfMemory, symptom.EtcdNoQuorum},
	symptom.PortInUse:                  {symptom.LeftoverState},
	symptom.LeftoverState:              {symptom.PortInUse},
	symptom.AdvertiseAddressWrong:      {symptom.FirewallBlocked, symptom.X509SANMismatch},
}

// suspect adds what the only cause found may be mistaken for, up to three findings in all: what the text resembles besides, and what the
// programs say the same of.
func (s *scan) suspect(found []symptom.Finding) []symptom.Finding {
	const enough = 3
	if len(found) == 0 || len(found) >= enough {
		return found
	}
	first := found[0]
	for _, id := range s.doubts(first.Symptom) {
		if len(found) >= enough {
			break
		}
		if contains(found, id) {
			continue
		}
		found = append(found, symptom.Suspicion(id, first))
	}
	return found
}

// doubts are the other causes that it may be, the likeliest first.
func (s *scan) doubts(id symptom.ID) []symptom.ID {
	texts := s.complaints.sample()
	var like []symptom.ID
	for _, r := range learnedLikeness().causesOf(termsOf(texts...), appendNormalized(nil, []byte(strings.Join(texts, " ")))) {
		if r.id != id && r.id != symptom.Healthy && len(like) < 3 {
			like = append(like, r.id)
		}
	}
	known := min(len(like), 1)
	if symptom.General(id) { // it hides its cause, which the text may still resemble
		known = len(like)
	}
	return slices.Concat(like[:known], suspects[id], like[known:])
}

func contains(found []symptom.Finding, id symptom.ID) bool {
	for _, f := range found {
		if f.Symptom == id {
			return true
		}
	}
	return false
}
