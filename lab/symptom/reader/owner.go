package reader

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"k8slab/lab/symptom"
)

// A line about a user's own pod or image says nothing about the node: the pod may ask for an image that does not exist, or for more memory
// than it has. The same line about the cluster's own pods and images is a cause.

// podCauses are the causes that a pod's own image or container can have.
var podCauses = []symptom.ID{symptom.ImagePullFailure, symptom.OutOfMemory, symptom.ControlPlaneCrashloop}

var (
	// namespaced finds the namespaces of the pods that a record of the kubelet, of containerd, of kubectl's tables or of events names.
	namespaced = regexp.MustCompile(`\b(?:pods?|object)=\[?\\?"([a-z0-9-]+)/` +
		`|\bNamespace:\\?"?([a-z0-9-]+)` +
		`|\((?:[a-z0-9.-]+_)([a-z0-9-]+)\([0-9a-f-]{36}\)` +
		`|^([a-z0-9-]+) +\S+ +(?:Normal|Warning) +\S+ +pod/` +
		`|^([a-z0-9-]+) +[a-z0-9.-]+ +\d+/\d+ +\S+ +\d+`)
	// podRow finds the pod of a row of a table that has no namespaces.
	podRow = regexp.MustCompile(`^\S+ +(?:Normal|Warning) +\S+ +pod/([a-z0-9.-]+)|^([a-z0-9.-]+) +\d+/\d+ +\S+ +\d+`)
	// imageNamed finds images by the words before them, and by the paths and scopes of registries.
	imageNamed = regexp.MustCompile(`(?:[Ii]mage|reference|PullImage|for)(?: |=|:|\[|\\|"|')+([a-z0-9][\w./:@-]*\w)` +
		`|/v2/([a-z0-9][\w./-]*)/(?:manifests|blobs)/|repository:([a-z0-9][\w./-]*):pull`)
)

// ownNames are in the names of the images and pods that a cluster is made of.
var ownNames = []string{"kube-apiserver", "kube-controller", "kube-scheduler", "kube-proxy", "kube-router", "kube-vip", "hyperkube",
	"etcd", "coredns",
	"pause", "flannel", "calico", "cilium", "weave", "antrea", "kindnet", "canal", "tigera", "multus", "k8slab"}

// usersOwn reports whether a record is only about a user's own pods and images. named is false if it names none at all.
func usersOwn(raw []byte) (users, named bool) {
	for _, m := range imageNamed.FindAllSubmatch(raw, -1) {
		image := string(firstOf(m))
		if quoted := bytes.ContainsAny(m[0][:len(m[0])-len(image)], `"'`); !quoted && !strings.ContainsAny(image, "/:@") {
			continue // an ordinary word
		}
		if named = true; isOwnName(image) {
			return false, true
		}
	}
	for _, m := range namespaced.FindAllSubmatch(raw, -1) {
		if named = true; isOwnNamespace(string(firstOf(m))) {
			return false, true
		}
	}
	if m := podRow.FindSubmatch(raw); m != nil && !namespaced.Match(raw) {
		if named = true; isOwnName(string(firstOf(m))) {
			return false, true
		}
	}
	return named, named
}

// firstOf is the group that matched.
func firstOf(groups [][]byte) []byte {
	for _, g := range groups[1:] {
		if len(g) > 0 {
			return g
		}
	}
	return nil
}

func isOwnName(name string) bool {
	return slices.ContainsFunc(ownNames, func(own string) bool { return strings.Contains(name, own) })
}

func isOwnNamespace(name string) bool {
	return strings.HasPrefix(name, "kube-") || strings.HasSuffix(name, "-system") || strings.HasPrefix(name, "calico-") ||
		name == "k8slab" || name == "tigera-operator"
}

// podOwner remembers whose image was pulled last.
type podOwner struct {
	usersPull bool // a user's own
}

// withoutUsersOwn is what was found in a record without the causes that say nothing about the node. A record about a pull that names no
// image is about the image that was named last.
func (o *podOwner) withoutUsersOwn(found []find, raw []byte) []find {
	if !slices.ContainsFunc(found, func(f find) bool { return f.known.kind == ofCause && slices.Contains(podCauses, f.known.id) }) {
		return found
	}
	pull := slices.ContainsFunc(found, func(f find) bool { return f.known.kind == ofCause && f.known.id == symptom.ImagePullFailure })
	users, named := usersOwn(raw)
	if pull && named {
		o.usersPull = users
	} else if pull {
		users = o.usersPull
	}
	if !users {
		return found
	}
	return slices.DeleteFunc(found, func(f find) bool { // why a user's image cannot be pulled is no cause either
		return f.known.kind == ofCause && (pull || slices.Contains(podCauses, f.known.id))
	})
}
