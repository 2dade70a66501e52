package scenarios

import (
	"slices"

	"k8slab/lab/symptom"
)

// Without is a symptom that no fault causes, and why. Each is known from texts that real clusters printed (lab/symptom/reader/testdata/corpus).
type Without struct {
	Symptom symptom.ID `json:"symptom"`
	Reason  string     `json:"reason"`
}

// WithoutScenario returns the symptoms that no fault causes, in the order of the catalogue.
func WithoutScenario() []Without { return slices.Clone(without) }

// without has five kinds of reasons: the node image decides it; the lab decides it before there is a node; containers share it with this computer;
// an administrator breaks it for the whole cluster; or a nearer cause is always named instead.
var without = []Without{
	{symptom.RuntimeVersionUnsupported, "containerd is a pinned part of the node image; an older one would need another image"},
	{symptom.CRIEndpointAmbiguous, "needs the socket of a second runtime; the image has containerd alone, and labnode always names the socket to kubeadm"},
	{symptom.CRIEndpointWrong, "labnode writes the socket into kubeadm's configuration; the mistake happens in migrations from dockershim"},
	{symptom.CrictlEndpointUnset, "stops nothing: crictl only warns, and labctl names the socket"},
	{symptom.SandboxImageMisconfigured, "a mistake in the node image, not in a node: a unit test of lab/image compares the names"},
	{symptom.ImagePullFailure, "nodes have no uplink and pull no images: all are in the node image"},
	{symptom.KubeletFlagRemoved, "needs the configuration of an older kubelet, so an upgrade; a lab keeps one version"},
	{symptom.TLSBootstrapTimeout, "the fallback when no cause shows; its causes have scenarios of their own"},
	{symptom.CSRNotApproved, "the lab approves the requests of its own joins when nobody else does; e2e/joinside_test.go switches the approver off"},
	{symptom.NodeNameMismatch, "a lab never changes the names of its machines; e2e/join_test.go tests a Node that was deleted while its kubelet ran"},
	{symptom.BootstrapKubeconfigMissing, "every joined node lacks that file; kubelet needs it only if its own kubeconfig is gone too, and then it is not a member any more"},
	{symptom.ControllerManagerFailing, "the controller managers of the other control planes take over, so a lab of three shows nothing; apiserver-crashloop breaks a static pod in the same way"},
	{symptom.CertificateKeyInvalid, "differs from certificate-key-gone only in what the join finds; tested in e2e/byhand_test.go"},
	{symptom.BootstrapRBACForbidden, "the lab restores kubeadm's roles before each join, so no join meets it; e2e/joinside_test.go deletes them"},
	{symptom.JoinConfigMissing, "the lab restores these ConfigMaps before each join, so no join meets it; e2e/joinside_test.go deletes one"},
	{symptom.AdmissionRejects, "a webhook is its owner's, and the lab never removes one; e2e/joinside_test.go adds one that rejects Nodes"},
	{symptom.CertificateExpired, "needs a year or a changed clock, and containers share the clock of this computer"},
	{symptom.ClockSkew, "containers share the clock of this computer, which no test may set"},
	{symptom.X509UnknownAuthority, "remains from a cluster whose CA was replaced; a join with another CA's hash is wrong-ca-hash"},
	{symptom.X509SANMismatch, "a lab's API certificate has every address that the lab uses"},
	{symptom.ControlPlaneEndpointMissing, "a lab always has an endpoint, because no second control plane could join without one"},
	{symptom.VersionSkew, "all nodes have the same image, so the same version"},
	{symptom.ProxyInterference, "nodes have no uplink, so no proxy; lab/join has unit tests of the variables"},
	{symptom.PodCIDRNotAssigned, "set for the whole cluster when it is created; nothing that happens to a node changes it"},
	{symptom.KubeProxyCrash, "its usual cause is a kernel setting, and containers share the kernel of this computer"},
	{symptom.NetworkPluginPodsFailing, "flannel's pods also fail in flannel-down, where a nearer cause is named"},
	{symptom.EtcdMemberMismatch, "lasts for moments, between adding a member and its start; lasting forms are wiped-voter and learner-never-started"},
	{symptom.EtcdUnreachable, "never alone here: the diagnosis names what stopped etcd instead"},
	{symptom.SwapEnabled, "containers share the swap of this computer, which no test may switch on; lab/join has unit tests of it"},
	{symptom.CgroupControllerMissing, "a property of the kernel, which containers share with this computer"},
	{symptom.CgroupV1Unsupported, "a property of the kernel, which containers share with this computer"},
	{symptom.HostToolsMissing, "the image has the tools; kubeadm-missing is a missing program that stops a join at once"},
	{symptom.InsufficientResources, "the size of a machine is set when it is created; lab/join has unit tests of the limits"},
	{symptom.OutOfMemory, "containers share the memory of this computer, and the kernel could kill any of its processes"},
	{symptom.ReadOnlyFilesystem, "would block SSH, the only way into the node, so nothing could restore it"},
	{symptom.SELinuxDenied, "the image is Debian without SELinux"},
	{symptom.HostnameInvalid, "cluster.yaml refuses such a name before there is a machine"},
	{symptom.DuplicateMachineIdentity, "a lab gives each machine its own identity; duplicate-live-node has two machines with one name"},
	{symptom.Healthy, "every experiment begins and ends with it"},
	{symptom.FileChanged, "the soak of random damage changes files of nodes"},
	{symptom.Unexplained, "it stands for faults that nobody has listed; the soak of random damage makes such"},
	{symptom.NodeUnreachable, "SSH is the only way into the node, so nothing could restore it; worker-suspended and control-plane-partitioned are similar"},
}
