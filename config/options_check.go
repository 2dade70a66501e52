package config

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

const (
	gatesKey   = "kubernetes.feature_gates"
	kubeadmKey = "kubernetes.kubeadm"
)

// checkOptions checks what is told to kubeadm and to the nodes.
func (d *document) checkOptions(c *Cluster) {
	for _, name := range c.Kubernetes.GateNames() {
		if field := join(gatesKey, keyName(name)); !gateName.MatchString(name) && d.trusted(field) {
			d.report(field, "it is not the name of a feature gate, such as InPlacePodVerticalScaling")
		}
	}
	documents := c.Kubernetes.Kubeadm.Documents()
	for _, key := range slices.Sorted(maps.Keys(documents)) {
		d.checkReserved(key, join(kubeadmKey, key), documents[key])
	}
	d.checkGateArguments(c.Kubernetes)
	d.checkKubeletArguments(c.Kubernetes.Kubeadm)
	d.checkPatches(c.Kubernetes.Kubeadm.Patches)
	d.checkNodeOptions("resources.control_plane", c.Resources.ControlPlane.NodeOptions)
	d.checkNodeOptions("resources.worker", c.Resources.Worker.NodeOptions)
	for i, n := range c.Nodes {
		d.checkNodeOptions(fmt.Sprintf("nodes[%d]", i), n.NodeOptions)
	}
}

var gateName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,99}$`)

// checkGateArguments refuses gates in two places: an argument replaces all of
// another.
func (d *document) checkGateArguments(k Kubernetes) {
	for _, component := range ControlPlanePrograms {
		field, found := find(join(kubeadmKey, "cluster"), k.Kubeadm.Cluster, []string{component.Key, "extraArgs", "feature-gates"})
		if found && len(k.FeatureGates) > 0 && d.trusted(field) {
			d.report(field, "%s sets it too; write all feature gates there, or all here", gatesKey)
		}
	}
}

// checkKubeletArguments wants them to be the same for all nodes: a control plane
// that was initialised may join later.
func (d *document) checkKubeletArguments(k Kubeadm) {
	const registration, arguments = "nodeRegistration", "kubeletExtraArgs"
	of := func(f Fragment) any {
		r, _ := f[registration].(Fragment)
		return r[arguments]
	}
	if field := kubeadmKey + ".join." + registration + "." + arguments; !reflect.DeepEqual(of(k.Init), of(k.Join)) && d.trusted(field, kubeadmKey) {
		d.report(field, "it differs from kubernetes.kubeadm.init; write the same in both, because a node may be initialised and join later; "+
			"for some nodes only, use kubelet of their role or of the node")
	}
}

// Program is a program of the control plane, and its key in kubeadm's
// ClusterConfiguration.
type Program struct{ Name, Key string }

// ControlPlanePrograms are those that have feature gates.
var ControlPlanePrograms = []Program{
	{"kube-apiserver", "apiServer"}, {"kube-controller-manager", "controllerManager"}, {"kube-scheduler", "scheduler"},
}

var (
	patchTargets = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "corednsdeployment"}
	patchName    = regexp.MustCompile(`^(?:` + strings.Join(patchTargets, "|") + `)[a-z0-9]{0,40}(?:\+(strategic|merge|json))?$`)
)

func (d *document) checkPatches(patches map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(patches)) {
		field := join(join(kubeadmKey, "patches"), keyName(name))
		m := patchName.FindStringSubmatch(name)
		_, mapping := patches[name].(Fragment)
		_, list := patches[name].([]any)
		switch {
		case !d.trusted(field):
		case strings.HasPrefix(name, "kubeletconfiguration"):
			d.report(field, "use kubernetes.kubeadm.kubelet, or kubelet of the role or the node")
		case m == nil:
			d.report(field, "it is not TARGET[SUFFIX][+TYPE]; use a target of %s, a suffix of lowercase letters and digits, and strategic, merge or json",
				strings.Join(patchTargets, ", "))
		case m[1] == "json" && !list:
			d.report(field, "a JSON patch is a list of operations")
		case m[1] != "json" && !mapping:
			d.report(field, "use a mapping, or +json in the name for a list of operations")
		}
	}
}

const (
	maxDisks = 16
	maxGiB   = 4096
)

func (d *document) checkNodeOptions(at string, o NodeOptions) {
	d.checkReserved("kubelet", at+".kubelet", o.Kubelet)
	for _, key := range slices.Sorted(maps.Keys(o.Labels)) {
		field := join(at+".labels", keyName(key))
		switch {
		case !d.trusted(field):
		case !isLabelKey(key) || !isLabelValue(o.Labels[key]):
			d.report(field, "%s=%s is not a label", quote(key), quote(o.Labels[key]))
		case !kubeletMaySet(key):
			d.report(field, "kubelet may not give its own Node this label; use another namespace, or node.kubernetes.io/")
		}
	}
	for i, text := range o.Taints {
		field := fmt.Sprintf("%s.taints[%d]", at, i)
		if _, ok := ParseTaint(text); !ok && d.trusted(field) {
			d.report(field, "%s is not a taint; use KEY[=VALUE]:EFFECT with the effect %s", quote(text), strings.Join(effects, ", "))
		}
	}
	if len(o.Disks) > maxDisks && d.trusted(at+".disks") {
		d.report(at+".disks", "%d disks are too many; use at most %d", len(o.Disks), maxDisks)
	}
	for i, size := range o.Disks {
		if field := fmt.Sprintf("%s.disks[%d]", at, i); d.trusted(field) && (size < 1 || size > maxGiB) {
			d.report(field, "%d is out of range; use 1 to %d GiB", size, maxGiB)
		}
	}
}
