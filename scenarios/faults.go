package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"k8slab/config"
)

// faults are sorted by their unique names.
var faults = []Fault{
	abandonedLearner, adminCertificateExpired, apiServerCertificateExpired, apiServerCertificateNames, apiServerCrashloop,
	apiserverUnreachable, approvalRightDeleted, bootstrapConfigForbidden, certificateKeyGone, certificateKeyWrong, cgroupDriverMismatch,
	clusterInfoDeleted, clusterVersionBehind, cniConfigMoved, cniConfigTruncated, cniDirectoryRemoved, cniPluginMissing,
	containerdConfigBroken, containerdMasked, containerdSocketRemoved, controlPlaneEndpointRemoved, controlPlanePartitioned,
	controllerManagersGone, corednsScaledToZero, cpPoweredOff, criPluginDisabled, csrNotApproved, deadContainerd, diskFull, dnsFailure,
	duplicateLiveNode, duplicateNode, etcdCertificateExpired, etcdDataCorrupt, etcdManifestGone, etcdMemberRemoved, etcdNoSpace,
	firstControlPlaneKubeadmMissing, flannelConfigBroken, flannelDown, flannelImageRemoved, forwardDropped, hostRenamed, hostToolMissing,
	hostnameUnset, imageFilesystemZero, inodesUsedUp, ipForwardOff, joinKilled, kubeProxyConfigBroken, kubeProxyDeleted, kubeadmMissing,
	kubeletCertificateExpired, kubeletCertificateMissing, kubeletConfigMissing, kubeletFeatureGateRemoved, kubeletMasked,
	kubeletOtherAuthority, kubeletProxy, kubeletStarted, kubeletStopped, kubeletUnknownFlag, kubeletWrongRuntime, leaderLostDuringJoin,
	learnerLagging, learnerNeverStarted, learnerPortBlocked, learnerPromotedLate, learnerSlowDisk, leftoverState, lossyLink,
	machineIDCloned, memoryLimitTooLow, missingCNI, nodeDeleted, pauseImageRemoved, peerPortBlocked, podCIDRNotAssigned, portInUse,
	proxyInEnvironment, quorumLost, readOnlyConfiguration, registryCAWrong, registryCredentialsRefused, registryMirrorDead,
	registryRateLimited, runcEmpty, sandboxImageChanged, schedulersGone, slowEtcdDisk, sshStopped, staleCNI, staleLearner,
	standaloneKubelet, tokenExpired, twoControlPlanesAtOnce, upgradeAPIRemoved, upgradeAPIServerPutBack, upgradeCertificateExpired,
	upgradeDiskFilled, upgradeEtcdBroken, upgradeEtcdFlagRemoved, upgradeEvictionBlocked, upgradeFeatureGateRemoved, upgradeImageMissing,
	upgradeKilledAtAPIServer, upgradeKilledAtEtcd, upgradeKilledOnWorker, upgradeKubeletFlagRemoved, upgradeQuorumLost, upgradeTwoAtOnce,
	upgradeWebhookUnreachable, webhookRejectsNodes, webhookUnreachable, wipedVoter, workerPoweredOff,
	workerSuspended, wrongCAHash, wrongPeerAddress,
}

// All returns the faults, sorted by name.
func All() []Fault { return slices.Clone(faults) }

// Lookup returns the fault of the name.
func Lookup(name string) (Fault, bool) {
	i, known := slices.BinarySearchFunc(faults, name, func(f Fault, name string) int { return strings.Compare(f.Name, name) })
	if !known {
		return Fault{}, false
	}
	return faults[i], true
}

// Unknown is the error for a name that no fault has, with the names that may have been meant.
func Unknown(name string) error {
	var names []string
	for _, f := range faults {
		names = append(names, f.Name)
	}
	return fmt.Errorf("no fault %q%s (see `labctl fault list`)", name, config.DidYouMean(name, names))
}
