package cluster

import (
	"net/netip"
	"path/filepath"

	"k8slab/lab/image"
	"k8slab/lab/join"
	"k8slab/lab/session"
)

// program runs a script that a lab's nodes have. Another machine is told its text, with what comes first.
func program(s *session.Session, path, first string) ([]string, error) {
	if !s.Cluster.OverSSH() {
		return []string{path}, nil
	}
	text, err := image.Script(filepath.Base(path))
	return []string{"/bin/sh", "-c", first + "\n" + text}, err
}

// plainCluster is the ClusterConfiguration of a cluster that labctl forms of machines that exist.
func plainCluster(s *session.Session) object {
	networking := object{}
	for key, subnet := range map[string]netip.Prefix{"podSubnet": s.Cluster.Network.PodSubnet, "serviceSubnet": s.Cluster.Network.ServiceSubnet} {
		if subnet.IsValid() {
			networking[key] = subnet.String()
		}
	}
	return object{
		"apiVersion": kubeadmAPI, "kind": "ClusterConfiguration",
		"clusterName": s.Cluster.Name, "kubernetesVersion": s.Cluster.Kubernetes.Version,
		"controlPlaneEndpoint": s.Endpoint(), "networking": networking,
	}
}

// FixedConntrack tells whether one of the machines may not set how many connections it tracks: then kube-proxy must be told to leave that.
func FixedConntrack(machines map[string]join.Facts) bool {
	for _, f := range machines {
		if f.FixedConntrack {
			return true
		}
	}
	return false
}
