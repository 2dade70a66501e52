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

// without has four kinds of reasons: the node image decides it; the lab decides it before there is a node; containers share it with this
// computer; or a nearer cause is always named instead.
var without = []Without{
	{symptom.RuntimeVersionUnsupported, "containerd is a pinned part of the node image; an older one would need another image"},
	{symptom.CRIEndpointAmbiguous, "labnode always names the socket to kubeadm, so a second runtime on the machine confuses nobody"},
	{symptom.CrictlEndpointUnset, "stops nothing: crictl only warns, and labctl names the socket"},
	{symptom.TLSBootstrapTimeout, "the fallback when no cause shows; its causes have scenarios of their own"},
	{symptom.RBACChanged, "the soak of random damage deletes and empties roles and bindings"},
	{symptom.ClockSkew, "containers share the clock of this computer, which no test may set"},
	{symptom.SwapEnabled, "containers share the swap of this computer, which no test may switch on; lab/join has unit tests of it"},
	{symptom.CgroupControllerMissing, "a property of the kernel, which containers share with this computer"},
	{symptom.CgroupV1Unsupported, "a property of the kernel, which containers share with this computer"},
	{symptom.InsufficientResources, "the size of a machine is set when it is created; lab/join has unit tests of the limits"},
	{symptom.SELinuxDenied, "the image is Debian without SELinux"},
	{symptom.Healthy, "every experiment begins and ends with it"},
}
