package join

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8slab/lab/kube"
	"k8slab/lab/symptom"
	"k8slab/lab/wait"
)

// signing is how long the cluster may take to sign cluster-info for a new token, or an API server to answer for it after its start.
const signing = time.Second

// findInfo reads the public cluster-info, and again while it lacks the token's signature: a token that was made a moment ago gets it soon.
func (p *preflight) findInfo(ctx context.Context) (kube.ClusterInfo, error) {
	facts, err := p.api(ctx)
	if errors.Is(err, errNotAsked) {
		return kube.ClusterInfo{}, err
	}
	if err != nil {
		return kube.ClusterInfo{}, errEndpoint
	}
	var info kube.ClusterInfo
	var readErr error
	_ = wait.For(ctx, "cluster-info", signing, 200*time.Millisecond, func(ctx context.Context) error {
		if info, readErr = facts.visitor.ClusterInfo(ctx); readErr != nil || p.t.Token == "" {
			return nil // an answer that waiting would not change
		}
		if err := info.Verify(p.t.Token); errors.Is(err, kube.ErrNoSignature) {
			return err
		}
		return nil
	})
	return info, readErr
}

// findCluster pins the cluster's CA. Without a pin nothing is trusted, and so the token is never sent.
func (p *preflight) findCluster(ctx context.Context) (*trusted, error) {
	info, err := p.info(ctx)
	if err != nil {
		return nil, err
	}
	if len(p.t.CACertHashes) == 0 {
		return nil, errors.New("no CA hash is given, so the token is not sent")
	}
	ca, err := info.Pinned(p.t.CACertHashes)
	if err != nil {
		return nil, err
	}
	found := &trusted{roots: x509.NewCertPool()}
	found.roots.AppendCertsFromPEM(ca)
	if p.t.Token == "" {
		return found, nil
	}
	found.visitor, err = kube.WithToken(p.t.Endpoint, ca, p.t.Token, p.dialEndpoint)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(p.run, found.visitor.Close)
	return found, nil
}

// asMember is the way to what the token may read.
func (p *preflight) asMember(ctx context.Context) (*kube.Visitor, error) {
	cluster, err := p.cluster(ctx)
	switch _, wrong := errors.AsType[*kube.PinError](err); {
	case wrong:
		return nil, errors.New("the cluster's CA is not the expected one, so the token is not sent")
	case err != nil:
		return nil, err
	case cluster.visitor == nil:
		return nil, errNotAsked
	}
	return cluster.visitor, nil
}

func (p *preflight) findClusterConfig(ctx context.Context) (kube.ClusterConfiguration, error) {
	visitor, err := p.asMember(ctx)
	if err != nil {
		return kube.ClusterConfiguration{}, err
	}
	return visitor.ClusterConfiguration(ctx)
}

func (p *preflight) findKubeletConfig(ctx context.Context) (kube.KubeletConfiguration, error) {
	if config, member := p.m.ownKubeletConfig(); member {
		return config, nil
	}
	visitor, err := p.asMember(ctx)
	if err != nil {
		return kube.KubeletConfiguration{}, err
	}
	return visitor.KubeletConfiguration(ctx)
}

const newCommand = "on a control plane: kubeadm token create --print-join-command"

func checkCAHash(ctx context.Context, p *preflight) Check {
	if len(p.t.CACertHashes) == 0 {
		return warn(symptom.CACertHashMismatch, "give --discovery-token-ca-cert-hash", "no CA hash is given: whoever answers at the endpoint could be the cluster")
	}
	info, err := p.info(ctx)
	if err != nil {
		return infoFailure(err)
	}
	if _, err := info.Pinned(p.t.CACertHashes); err != nil {
		return blocked(symptom.CACertHashMismatch, newCommand+"; or check that the endpoint is this cluster's; "+
			"or, when cluster-info has not the CA of /etc/kubernetes/pki/ca.crt: "+symptom.RenewClusterInfo.Text, "%v", err)
	}
	return ok("the cluster's CA is the pinned one")
}

// infoFailure judges a cluster-info that could not be read.
func infoFailure(err error) Check {
	const hint = "on a control plane: kubeadm init phase bootstrap-token"
	switch {
	case kube.Refused(err, http.StatusNotFound):
		return blocked(symptom.JoinConfigMissing, hint+", then kubeadm token create --print-join-command",
			"the cluster has no ConfigMap kube-public/cluster-info")
	case kube.Refused(err, http.StatusForbidden), kube.Refused(err, http.StatusUnauthorized):
		return blocked(symptom.BootstrapRBACForbidden, hint, "anonymous requests may not read cluster-info: %v", err)
	}
	return unmade(err)
}

func checkToken(ctx context.Context, p *preflight) Check {
	info, err := p.info(ctx)
	if err != nil {
		return infoFailure(err)
	}
	if err := info.Verify(p.t.Token); err != nil {
		return blocked(symptom.TokenExpiredOrInvalid, newCommand, "%v: it has expired or is another cluster's", err)
	}
	// A token may be for signing only, or expire before its signature is taken away: use it.
	_, err = p.clusterConfig(ctx)
	if err == nil {
		_, err = p.kubeletConfig(ctx)
	}
	if err == nil {
		return ok("the cluster accepts it")
	}
	if kube.Refused(err, http.StatusNotFound) {
		return blocked(symptom.JoinConfigMissing,
			"on a control plane: kubeadm init phase upload-config all --config FILE, with the configuration that the cluster was made with",
			"a ConfigMap that joins read is missing: %v", err)
	}
	return p.forbidden(err, ok("the cluster signed for it"))
}

// forbidden judges a refused request of the token, and falls back to otherwise.
func (p *preflight) forbidden(err error, otherwise Check) Check {
	switch {
	case kube.Refused(err, http.StatusUnauthorized):
		return blocked(symptom.TokenExpiredOrInvalid, newCommand, "the API server does not accept the token: %v", err)
	case kube.Refused(err, http.StatusForbidden):
		return blocked(symptom.BootstrapRBACForbidden, "on a control plane: kubeadm init phase upload-config all; kubeadm init phase bootstrap-token; kubeadm init phase upload-certs --upload-certs",
			"%v", err)
	}
	return otherwise
}

func checkCertificateKey(ctx context.Context, p *preflight) Check {
	const hint = "on a control plane: kubeadm init phase upload-certs --upload-certs, and join with the key that it prints"
	if p.t.CertificateKey == "" {
		if p.t.Token != "" && !p.m.Exists("/etc/kubernetes/pki/ca.key") {
			return blocked(symptom.CertificateKeyExpired, hint, "no certificate key is given, and there is no /etc/kubernetes/pki/ca.key either")
		}
		return unmade(errNotAsked)
	}
	visitor, err := p.asMember(ctx)
	if err != nil {
		return unmade(err)
	}
	err = visitor.CheckCertificateKey(ctx, p.t.CertificateKey)
	switch {
	case err == nil:
		return ok("it decrypts the uploaded certificates")
	case errors.Is(err, kube.ErrWrongKey):
		return blocked(symptom.CertificateKeyInvalid, hint, "%v", err)
	case kube.Refused(err, http.StatusNotFound):
		return blocked(symptom.CertificateKeyExpired, hint, "the uploaded certificates are gone: the cluster keeps them for two hours")
	}
	return p.forbidden(err, unmade(err))
}

func checkControlPlaneEndpoint(ctx context.Context, p *preflight) Check {
	config, err := p.clusterConfig(ctx)
	if err != nil {
		return unmade(err)
	}
	if config.ControlPlaneEndpoint == "" {
		return blocked(symptom.ControlPlaneEndpointMissing, "set controlPlaneEndpoint in the ConfigMap kubeadm-config, and add its host to the API server's certificate",
			"the cluster has no stable controlPlaneEndpoint: kubeadm refuses further control planes")
	}
	return ok("%s", config.ControlPlaneEndpoint)
}

// checkNodeName asks for a Node of this machine's name. kubeadm refuses only one that is Ready; whose it is, the machine-ids tell.
func checkNodeName(ctx context.Context, p *preflight) Check {
	visitor, err := p.asMember(ctx)
	if err != nil {
		return unmade(err)
	}
	node, err := visitor.Node(ctx, p.t.Name)
	if kube.Refused(err, http.StatusNotFound) {
		return ok("no Node is named %s", p.t.Name)
	}
	if err != nil {
		return p.forbidden(err, unmade(err))
	}
	return judgeNode(node, p.m.Line("/etc/machine-id"))
}

func judgeNode(node kube.Node, machineID string) Check {
	same := node.MachineID == machineID && machineID != ""
	ids := fmt.Sprintf("its machine-id is %s, this machine's is %s", node.MachineID, machineID)
	if same {
		ids = "of this same machine (machine-id " + machineID + ")"
	}
	switch {
	case node.Ready && same:
		return blocked(symptom.NodeNameExists, "kubectl delete node "+node.Name+", then join again", "Node %s exists and is Ready, %s: from an earlier join", node.Name, ids)
	case node.Ready:
		return blocked(symptom.NodeNameExists, "join under another name (nodeRegistration.name), or make sure that the other machine is gone before: kubectl delete node "+node.Name,
			"Node %s exists and is Ready; %s", node.Name, ids)
	case same:
		return ok("Node %s is here and not Ready, %s: it will be taken over", node.Name, ids)
	}
	return warn(symptom.NodeNameExists, "if the other machine comes back, both fight for the name: kubectl delete node "+node.Name,
		"Node %s exists and is not Ready; %s", node.Name, ids)
}
