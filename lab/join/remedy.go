package join

import (
	"slices"

	"k8slab/lab/symptom"
)

// Action is what a retry loop does about a cause before it tries again.
type Action string

// The actions. Those that need the cluster's administrator are done by whoever holds those rights, and refused with the command otherwise.
const (
	// Stop: trying again cannot help, and nothing here may repair it; the symptom's hint is the remedy.
	Stop Action = "stop"
	// Retry: it may pass by itself.
	Retry Action = "retry"
	// FixLocally: the next attempt's preflight and prepare repair it on the machine.
	FixLocally Action = "fix-locally"
	// NewToken: make a bootstrap token and join with it. Cluster rights.
	NewToken Action = "new-token"
	// UploadCertificates: upload the control plane's certificates again, with a new key. Cluster rights.
	UploadCertificates Action = "upload-certificates"
	// RestoreJoins: have kubeadm make the ConfigMaps and roles again that joins need. Cluster rights.
	RestoreJoins Action = "restore-joins"
	// RemoveLearner: remove the etcd member that is in the way, by the decision table for members before a join. Cluster rights.
	RemoveLearner Action = "remove-learner"
	// DeleteNode: delete the Node of this name, if it is this same machine's. Cluster rights.
	DeleteNode Action = "delete-node"
)

// cures tells whether the action takes the cause away, so that waiting before the next attempt is of no use.
func (a Action) cures() bool {
	return slices.Contains([]Action{NewToken, UploadCertificates, RestoreJoins, RemoveLearner, DeleteNode}, a)
}

// remedies has the causes that do not stop a join for good. It is the one switch from symptom to action.
var remedies = map[symptom.ID]Action{
	symptom.TokenExpiredOrInvalid: NewToken,

	symptom.CertificateKeyExpired: UploadCertificates,
	symptom.CertificateKeyInvalid: UploadCertificates,

	symptom.JoinConfigMissing:      RestoreJoins,
	symptom.BootstrapRBACForbidden: RestoreJoins,

	symptom.NodeNameExists: DeleteNode,

	symptom.EtcdTooManyLearners: RemoveLearner,
	symptom.EtcdStaleMember:     RemoveLearner,
	symptom.EtcdMemberMismatch:  RemoveLearner,

	symptom.RuntimeSocketMissing:       FixLocally,
	symptom.ImageFilesystemZero:        FixLocally,
	symptom.KubeletNotRunning:          FixLocally,
	symptom.KubeletConfigMissing:       FixLocally,
	symptom.KubeletStandalone:          FixLocally,
	symptom.BootstrapKubeconfigMissing: FixLocally,
	symptom.CNINotInitialized:          FixLocally,
	symptom.CNIPluginBinaryMissing:     FixLocally,
	symptom.CNIStaleConfig:             FixLocally,
	symptom.SwapEnabled:                FixLocally,
	symptom.KernelPrereqMissing:        FixLocally,
	symptom.LeftoverState:              FixLocally,

	symptom.TLSBootstrapTimeout:     Retry,
	symptom.EtcdLearnerNotInSync:    Retry,
	symptom.EtcdSlow:                Retry,
	symptom.EtcdUnreachable:         Retry,
	symptom.APIServerUnreachable:    Retry,
	symptom.ControlPlaneCrashloop:   Retry,
	symptom.FlannelSubnetEnvMissing: Retry,
	symptom.PodCIDRNotAssigned:      Retry,
	symptom.ImagePullFailure:        Retry,
}

// Remedy is the action for a cause. A failure without a known cause is tried again; a known cause that the table lacks ends the join.
func Remedy(id symptom.ID) Action {
	if id == "" {
		return Retry
	}
	if action, ok := remedies[id]; ok {
		return action
	}
	return Stop
}
