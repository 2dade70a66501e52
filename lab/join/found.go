package join

import (
	"crypto/x509"
	"time"

	"k8slab/lab/kube"
)

// trusted is the cluster once its CA is known to be the pinned one.
type trusted struct {
	roots   *x509.CertPool
	visitor *kube.Visitor // with the bootstrap token; nil without one
}

// criFacts are what the container runtime says of itself.
type criFacts struct {
	socket       string
	version      string // "containerd v2.4.2"
	problem      string // why it says that it is not ready; "" when it is
	network      string // why it says that it has no network for pods; "" when it has
	driver       string // the cgroup driver it uses: "systemd" or "cgroupfs"; "" when it is too old to tell
	images       []string
	imagesErr    error
	imageFS      string // where images are; "" when it does not know yet
	imageFSSize  uint64
	imageFSError error
}

// apiFacts are what the API server showed when it was asked, as a stranger, whether it lives.
type apiFacts struct {
	visitor *kube.Visitor
	live    kube.Live
	at      time.Time // this machine's clock at the answer
}

// unit is what systemd knows of one of its units: properties of `systemctl show`, by name.
type unit map[string]string

// units are those that a node is about.
type units struct{ kubelet, containerd unit }

// release is a Kubernetes version, of which the skew rules use the minor number; major is 1.
type release struct {
	text  string
	minor int
}

func (r release) String() string { return r.text }

// versions are those of the installed programs; a zero one could not be found out.
type versions struct{ kubeadm, kubelet release }
