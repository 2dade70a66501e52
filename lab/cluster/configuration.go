package cluster

import (
	"context"
	"fmt"

	"sigs.k8s.io/yaml"

	"k8slab/config"
	"k8slab/lab/session"
)

// Configuration is what kubeadm is told of the node and of the cluster: the cluster's own configuration where the API server has it, or else
// the lab's. A cluster that labctl did not make has only its own. Documents that are wrong, by the names of their ConfigMaps, are not
// taken. The only secret is the bootstrap token; "" is none, which every phase but bootstrap-token is content with.
func Configuration(ctx context.Context, s *session.Session, v *session.Admin, n config.Node, token string, wrong func(name string) bool) (string, error) {
	recorded := func(name, key, kind string) (string, error) {
		if wrong != nil && wrong(name) {
			return "", fmt.Errorf("ConfigMap kube-system/%s is wrong", name)
		}
		text, err := v.Kube.Document(ctx, "kube-system", name, key)
		var is struct{ Kind string }
		if err == nil {
			err = yaml.Unmarshal([]byte(text), &is)
		}
		if err == nil && is.Kind != kind {
			err = fmt.Errorf("ConfigMap kube-system/%s has no %s", name, kind)
		}
		return text, err
	}
	cluster, clusterErr := recorded("kubeadm-config", "ClusterConfiguration", "ClusterConfiguration")
	kubelet, kubeletErr := recorded("kubelet-config", "kubelet", "KubeletConfiguration")
	if !s.Cluster.OverSSH() {
		documents := initDocuments(s, n, token, "")
		if n.Role != config.ControlPlane { // it is for a kubeadm on a control plane, whose patches are its own
			delete(documents[0].(object), "patches")
		}
		return told(documents, known(cluster, clusterErr), known(kubelet, kubeletErr), token)
	}
	if clusterErr != nil {
		return "", fmt.Errorf("kubeadm cannot be told what the cluster is to be: %w; next: put the ConfigMap kubeadm-config back from a backup", clusterErr)
	}
	documents := []any{ownInit(s, n, token), object{}}
	if kubeletErr == nil {
		documents = append(documents, object{})
	}
	return told(documents, cluster, known(kubelet, kubeletErr), token)
}

// Described is what kubeadm is told of the node and of the cluster as cluster.yaml describes them, whatever the cluster has recorded. It has no
// secret.
func Described(s *session.Session, n config.Node) (string, error) {
	return told(initDocuments(s, n, "", ""), "", "", "")
}

func known(text string, err error) string {
	if err != nil {
		return ""
	}
	return text
}

// ownInit is the InitConfiguration for phases on a control plane of a cluster that labctl did not make.
func ownInit(s *session.Session, n config.Node, token string) object {
	return object{
		"apiVersion": kubeadmAPI, "kind": "InitConfiguration",
		"bootstrapTokens":  []any{object{"token": token, "description": initMark, "ttl": tokenTTL.String()}},
		"localAPIEndpoint": object{"advertiseAddress": n.IP.String(), "bindPort": 6443},
		"nodeRegistration": registration(s, n),
	}
}

// told writes the documents, of which the second and the third are the known ones.
func told(documents []any, clusterConfiguration, kubeletConfiguration, token string) (string, error) {
	own := documents[0].(object)
	delete(own, "certificateKey")
	delete(own, "timeouts")
	if token == "" {
		delete(own, "bootstrapTokens")
	}
	for i, text := range map[int]string{1: clusterConfiguration, 2: kubeletConfiguration} {
		if text == "" {
			continue
		}
		var document object
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			return "", err
		}
		documents[i] = document
	}
	return marshal(documents)
}
