package join

import "k8slab/lab/inventory"

const (
	manifestsDir = "/etc/kubernetes/manifests"
	pkiDir       = "/etc/kubernetes/pki"
	defaultEtcd  = "/var/lib/etcd"
	linkDir      = "/sys/class/net/"
)

const (
	kubeletConf       = "/etc/kubernetes/kubelet.conf"
	bootstrapConf     = "/etc/kubernetes/bootstrap-kubelet.conf"
	kubeletConfig     = "/var/lib/kubelet/config.yaml"
	clientCertificate = "/var/lib/kubelet/pki/kubelet-client-current.pem" // of kubelet
	kubeletFlags      = "/var/lib/kubelet/kubeadm-flags.env"
	// instanceConfig is what kubeadm keeps of this machine's own kubelet configuration: the runtime's socket.
	instanceConfig = "/var/lib/kubelet/instance-config.yaml"
	etcdManifest   = manifestsDir + "/etcd.yaml"
	apiManifest    = manifestsDir + "/kube-apiserver.yaml"
	clusterCA      = pkiDir + "/ca.crt"
)

// The links of flannel and of its pods.
const (
	tunnelLink = "flannel.1"
	bridgeLink = "cni0"
)

// made reports whether the machine came from a node image of a lab, by the list that such an image carries.
func (m Machine) made() bool { return m.Exists(inventory.Path) }
