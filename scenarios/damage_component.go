package scenarios

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8slab/lab/symptom"
)

// Component is a part of a cluster that a thing belongs to, and that a finding can point at.
type Component string

// The components.
const (
	ofKubelet           Component = "kubelet"
	ofContainerd        Component = "containerd" // with runc, its shims and their clients
	ofPodNetwork        Component = "pod-network"
	ofKubeProxy         Component = "kube-proxy"
	ofDNS               Component = "dns"
	ofAPIServer         Component = "kube-apiserver"
	ofEtcd              Component = "etcd"
	ofControllerManager Component = "kube-controller-manager"
	ofScheduler         Component = "kube-scheduler"
	ofCertificates      Component = "certificates"
	ofJoining           Component = "joining" // kubeadm, and what it leaves in the cluster for joins
	ofRBAC              Component = "rbac"
	ofAdmission         Component = "admission"
	ofImages            Component = "images"
	ofDisk              Component = "disk"
	ofFirewall          Component = "firewall"
	ofPrograms          Component = "programs"
	ofMachine           Component = "machine" // what carries SSH, the clock, other services
)

// rule gives what begins with, or contains, the text its components. The first rule that fits counts.
type rule struct {
	text string
	of   []Component
}

func all(c ...Component) []Component { return c }

var fileRules = []rule{
	{"/etc/kubernetes/manifests/etcd", all(ofEtcd)},
	{"/etc/kubernetes/manifests/kube-apiserver", all(ofAPIServer)},
	{"/etc/kubernetes/manifests/kube-controller-manager", all(ofControllerManager)},
	{"/etc/kubernetes/manifests/kube-scheduler", all(ofScheduler)},
	{"/etc/kubernetes/pki/etcd/", all(ofEtcd, ofCertificates)},
	{"/etc/kubernetes/pki/apiserver-etcd-client", all(ofAPIServer, ofEtcd, ofCertificates)},
	{"/etc/kubernetes/pki/apiserver", all(ofAPIServer, ofCertificates)},
	{"/etc/kubernetes/pki/front-proxy", all(ofAPIServer, ofCertificates)},
	{"/etc/kubernetes/pki/sa.", all(ofAPIServer, ofControllerManager, ofCertificates)},
	{"/etc/kubernetes/pki/", all(ofAPIServer, ofControllerManager, ofKubelet, ofCertificates)},
	{"/etc/kubernetes/controller-manager.conf", all(ofControllerManager, ofCertificates)},
	{"/etc/kubernetes/scheduler.conf", all(ofScheduler, ofCertificates)},
	{"/etc/kubernetes/kubelet.conf", all(ofKubelet, ofCertificates)},
	{"/etc/kubernetes/", all(ofJoining, ofCertificates)},
	{"/etc/containerd/", all(ofContainerd)},
	{"/etc/cni/", all(ofPodNetwork)},
	{"/opt/cni/", all(ofPodNetwork)},
	{"/var/lib/kubelet/pki/", all(ofKubelet, ofCertificates)},
	{"/var/lib/kubelet/", all(ofKubelet)},
	{"/etc/systemd/system/kubelet", all(ofKubelet)},
	{"/etc/systemd/system/containerd", all(ofContainerd)},
	{"/usr/bin/kubelet", all(ofPrograms, ofKubelet)},
	{"/usr/bin/kube", all(ofPrograms, ofJoining)}, // kubeadm, kubectl
	{"/usr/bin/containerd", all(ofPrograms, ofContainerd)},
	{"/usr/bin/etcd", all(ofPrograms, ofEtcd)},
	{"/usr/bin/", all(ofPrograms, ofMachine)},
	{"/", all(ofMachine)},
}

// runtimePrograms are those of the runtime that do not bear its name.
var runtimePrograms = []string{"/usr/bin/runc", "/usr/bin/ctr", "/usr/bin/crictl"}

// nameRules are for units, images and objects, by a part of their names.
var nameRules = []rule{
	{"kube-apiserver", all(ofAPIServer)},
	{"apiserver-", all(ofAPIServer)},
	{"kube-controller-manager", all(ofControllerManager)},
	{"system:controller:", all(ofControllerManager)},
	{"kube-scheduler", all(ofScheduler)},
	{"kube-proxy", all(ofKubeProxy)},
	{"node-proxier", all(ofKubeProxy)},
	{"kubelet-config", all(ofKubelet, ofJoining)},
	{"coredns", all(ofDNS)},
	{"kube-dns", all(ofDNS)},
	{"flannel", all(ofPodNetwork)},
	{"etcd", all(ofEtcd)},
	{"pause", all(ofContainerd)},
	{"containerd", all(ofContainerd)},
	{"kubelet", all(ofKubelet)},
	{"kube-node-lease", all(ofKubelet)},
	{"kubeadm", all(ofJoining)},
	{"cluster-info", all(ofJoining)},
	{"kube-root-ca", all(ofCertificates)},
	{"bootstrap", all(ofJoining)},
	{"system:node", all(ofKubelet)},
	{"keepalived", all(ofAPIServer, ofMachine)}, // carries the address of the control plane
}

// portRules are by the port. Nothing else is dropped of a port that is not listed.
var portRules = map[string]Component{
	"22": ofMachine, "2379": ofEtcd, "2380": ofEtcd, "2381": ofEtcd, "6443": ofAPIServer, "8472": ofPodNetwork,
	"10248": ofKubelet, "10249": ofKubeProxy, "10250": ofKubelet, "10256": ofKubeProxy, "10257": ofControllerManager, "10259": ofScheduler,
}

// Components are what the damaged thing belongs to.
func (d Damage) Components() []Component {
	switch d.Kind {
	case "file":
		if slices.Contains(runtimePrograms, d.What) {
			return all(ofPrograms, ofContainerd)
		}
		return first(fileRules, func(text string) bool { return strings.HasPrefix(d.What, text) })
	case "disk":
		return all(ofDisk)
	case "net":
		return d.netComponents()
	}
	of := first(nameRules, func(text string) bool { return strings.Contains(d.What, text) })
	resource, _, _ := strings.Cut(d.What, "/")
	switch {
	case d.Kind == "image":
		return append(of, ofImages)
	case d.Kind == "unit" && of == nil:
		return all(ofMachine)
	case resource == webhook:
		return all(ofAdmission)
	case strings.Contains(resource, "role"):
		return append(of, ofRBAC)
	}
	return of
}

func (d Damage) netComponents() []Component {
	last := path.Base(d.What)
	if of, known := portRules[last]; known {
		return all(ofFirewall, of)
	}
	switch {
	case strings.HasPrefix(d.How, "drop-"):
		return all(ofFirewall)
	case strings.HasPrefix(last, "KUBE-") || strings.Contains(d.What, "kube-proxy"):
		return all(ofFirewall, ofKubeProxy)
	case strings.HasPrefix(last, "FLANNEL"):
		return all(ofFirewall, ofPodNetwork)
	}
	return all(ofFirewall, ofPodNetwork, ofKubeProxy)
}

func first(rules []rule, fits func(text string) bool) []Component {
	for _, r := range rules {
		if fits(r.text) {
			return slices.Clone(r.of)
		}
	}
	return nil
}

// Names tells whether the finding points at the damage: it fails, it is of the damaged node, and it mentions the damaged thing, or is of
// one of its components. Damage of the cluster may show on any node.
func (d Damage) Names(f symptom.Finding) bool {
	if f.Level != symptom.Fail || f.Suspected() {
		return false
	}
	text := f.Detail + "\n" + f.Meaning
	for _, e := range measured(f) {
		text += "\n" + e.Source + "\n" + e.Text
	}
	if d.Node != "" && f.Node != d.Node && (f.Node != "" || !mentions(text, d.Node)) {
		return false
	}
	return d.mentionedIn(text) || slices.ContainsFunc(pointsAt(f), func(c Component) bool { return slices.Contains(d.Components(), c) })
}

// name is how a text calls the damaged thing.
func (d Damage) name() string {
	switch d.Kind {
	case "object":
		return strings.SplitN(d.What, "/", 3)[2]
	case "net":
		return path.Base(d.What) // the port or the chain
	}
	return d.What
}

// mentionedIn tells whether the text names the damaged thing. A number alone is no port.
func (d Damage) mentionedIn(text string) bool {
	if !strings.HasPrefix(d.How, "drop-") {
		return mentions(text, d.name()) || d.Kind == "unit" && mentions(text, "/etc/systemd/system/"+d.name()) // the link that masks it
	}
	found, err := regexp.MatchString(`(?i)(port |:|tcp/|udp/)`+regexp.QuoteMeta(d.name())+`\b`, text)
	return err == nil && found
}

// mentions tells whether the text has the name as a whole: no longer path, name or number.
func mentions(text, name string) bool {
	found, err := regexp.MatchString(`(^|[^\w/.-])`+regexp.QuoteMeta(name)+`($|[^\w/.-]|\.(\W|$))`, text)
	return err == nil && found
}

// measured is the evidence without that of what works.
func measured(f symptom.Finding) []symptom.Evidence {
	return slices.DeleteFunc(slices.Clone(f.Evidence), func(e symptom.Evidence) bool { return e.Source == "ruled out" })
}

// pointsAt are the components that the finding is of. Two causes stand for whatever was measured: what that was is their detail, or where
// the evidence was read. What fails of pods is in the pod's name.
func pointsAt(f symptom.Finding) []Component {
	if f.Symptom != symptom.FileChanged && f.Symptom != symptom.Unexplained {
		return such(func(c Component) bool { return slices.Contains(symptomsOf[c], f.Symptom) })
	}
	if f.Detail == "pods" && len(f.Evidence) > 0 {
		return first(nameRules, func(text string) bool { return strings.Contains(f.Evidence[0].Text, text) })
	}
	text := f.Detail
	for _, e := range measured(f) {
		text += "\n" + e.Source
	}
	text = strings.ToLower(text)
	return such(func(c Component) bool {
		return slices.ContainsFunc(organWords[c], func(word string) bool { return mentions(text, word) })
	})
}

// such are the components that fit, in the order of their names.
func such(fits func(Component) bool) []Component {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(organWords)), func(c Component) bool { return !fits(c) })
}
