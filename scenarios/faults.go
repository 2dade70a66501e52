package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"k8slab/config"
)

// faults are sorted by their unique names.
var faults = []Fault{
	abandonedLearner, apiServerCrashloop, apiserverUnreachable, certificateKeyGone, cgroupDriverMismatch, cniConfigMoved,
	cniDirectoryRemoved, cniPluginMissing, containerdMasked, containerdSocketRemoved, controlPlanePartitioned, cpPoweredOff,
	criPluginDisabled, deadContainerd, diskFull, dnsFailure, duplicateLiveNode, duplicateNode, etcdDataCorrupt,
	firstControlPlaneKubeadmMissing, flannelDown, imageFilesystemZero, ipForwardOff, joinKilled, kubeadmMissing, kubeletConfigMissing,
	kubeletMasked, kubeletStarted, kubeletStopped, leaderLostDuringJoin, learnerLagging, learnerNeverStarted, learnerPortBlocked,
	learnerPromotedLate, learnerSlowDisk, leftoverState, lossyLink, missingCNI, peerPortBlocked, portInUse, quorumLost, slowEtcdDisk,
	staleCNI, staleLearner, standaloneKubelet, tokenExpired, twoControlPlanesAtOnce, wipedVoter, workerPoweredOff, workerSuspended,
	wrongCAHash, wrongPeerAddress,
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
