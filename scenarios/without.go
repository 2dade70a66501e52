package scenarios

import (
	"slices"

	"k8slab/lab/symptom"
)

// Without is a symptom that no fault causes, and why. Each is known from texts that real clusters printed (lab/symptom/testdata/corpus).
type Without struct {
	Symptom symptom.ID `json:"symptom"`
	Reason  string     `json:"reason"`
}

// WithoutScenario returns the symptoms that no fault causes, in the order of the catalogue.
func WithoutScenario() []Without { return slices.Clone(without) }

// without has five kinds of reasons: the node image decides it; the lab decides it before there is a node; containers share it with this computer;
// an administrator breaks it for the whole cluster; or a nearer cause is always named instead.
var without = []Without{
	{symptom.RuntimeVersionUnsupported, "a lab's containerd is of its image, one pinned version; an older one would be another image"},
	{symptom.CRIEndpointAmbiguous, "takes a second runtime's socket; the image has containerd alone, and labnode always tells kubeadm which socket to use"},
	{symptom.CRIEndpointWrong, "labnode writes the socket into kubeadm's configuration, so no join of the lab meets another; it happens in moves away from dockershim"},
	{symptom.CrictlEndpointUnset, "stops nothing: crictl only warns, and what uses it here names the socket"},
	{symptom.SandboxImageMisconfigured, "a mistake in building the node image, not something that happens to a node: a unit test of lab/image compares the names"},
	{symptom.ImagePullFailure, "nodes have no uplink and pull nothing: all images are in the node image"},
	{symptom.KubeletFlagRemoved, "takes a configuration of an older kubelet, so an upgrade; a lab has one version for its life"},
	{symptom.TLSBootstrapTimeout, "the fallback when nothing shows why; the causes behind it have scenarios of their own"},
	{symptom.CSRNotApproved, "takes away the cluster's own approving of certificates, which an administrator does to the whole cluster; labctl does not restore it"},
	{symptom.NodeNameMismatch, "a lab gives its machines their names and never changes them; that a Node was deleted under its kubelet is tried in e2e/join_test.go"},
	{symptom.BootstrapKubeconfigMissing, "every joined node lacks that file; kubelet misses it only when its own kubeconfig is gone too, and then it is not a member any more"},
	{symptom.ControllerManagerFailing, "the other control planes' controller managers take over, so a lab of three shows nothing; apiserver-crashloop breaks a static pod in the same way"},
	{symptom.CertificateKeyInvalid, "differs from certificate-key-gone only in what the join finds; tried by hand in e2e/byhand_test.go"},
	{symptom.BootstrapRBACForbidden, "takes away roles that kubeadm made, which an administrator does to the whole cluster; labctl does not restore them"},
	{symptom.CertificateExpired, "takes a year, or another clock, and containers share this computer's"},
	{symptom.ClockSkew, "containers share this computer's clock, and no test may set that"},
	{symptom.X509UnknownAuthority, "what remains of a cluster whose CA was replaced; a join that is told of another CA is wrong-ca-hash"},
	{symptom.X509SANMismatch, "a lab's API certificate names every address that the lab uses, from the first day"},
	{symptom.ControlPlaneEndpointMissing, "a lab always has an endpoint: without one there would be no second control plane to try it with"},
	{symptom.VersionSkew, "one image, so one version on all nodes"},
	{symptom.ProxyInterference, "nodes have no way out, so no proxy; lab/join has unit tests of the variables"},
	{symptom.PodCIDRNotAssigned, "settled for the whole cluster when it is made; nothing that happens to a node takes it away"},
	{symptom.KubeProxyCrash, "its usual cause is a setting of the kernel, which containers share with this computer"},
	{symptom.NetworkPluginPodsFailing, "flannel's pods fail in flannel-down too, where the nearer cause is named"},
	{symptom.EtcdMemberMismatch, "lasts for the moments between adding a member and its start: what stays of it is wiped-voter or learner-never-started"},
	{symptom.EtcdUnreachable, "never alone here: whatever stops etcd in a scenario is named instead"},
	{symptom.SwapEnabled, "containers share this computer's swap, and no test may switch that on; lab/join has unit tests of it"},
	{symptom.CgroupControllerMissing, "a matter of the kernel, which containers share with this computer"},
	{symptom.CgroupV1Unsupported, "a matter of the kernel, which containers share with this computer"},
	{symptom.HostToolsMissing, "the image has the tools; that a program is missing, and stops a join at once, is kubeadm-missing"},
	{symptom.InsufficientResources, "the size of a machine is settled when it is made; lab/join has unit tests of the limits"},
	{symptom.OutOfMemory, "containers share this computer's memory, and the kernel would choose among all of its processes"},
	{symptom.ReadOnlyFilesystem, "cuts the only way into the node, so nothing could undo it from outside"},
	{symptom.SELinuxDenied, "the image is Debian without SELinux"},
	{symptom.HostnameInvalid, "cluster.yaml refuses such a name before there is a machine"},
	{symptom.DuplicateMachineIdentity, "a lab gives each machine an identity of its own; that two claim one name is duplicate-live-node"},
	{symptom.Healthy, "every experiment begins and ends with it"},
	{symptom.NodeUnreachable, "SSH is the only way in, so nothing could take the fault back; near to it are worker-suspended and control-plane-partitioned"},
}
