package session

// Paths in a node that kubeadm chooses by default, which the lab keeps.
const (
	EtcdData    = "/var/lib/etcd"
	ManifestDir = "/etc/kubernetes/manifests"
)
