package kube

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/cluster-bootstrap/token/jws"
	"sigs.k8s.io/yaml"
)

// ClusterInfo is what a cluster shows anonymous clients: its CA, and for each bootstrap token a signature by which an owner of the token
// can verify it.
type ClusterInfo struct {
	kubeconfig string
	signatures map[string]string // by token ID
}

// The ways in which cluster-info fails a token or a pin.
var (
	// ErrNoSignature: the token is unknown to the cluster, or has expired: its signature is removed within seconds then.
	ErrNoSignature = errors.New("the cluster's cluster-info is not signed for this token")
	// ErrBadSignature: the cluster knows a token of this ID, with another secret.
	ErrBadSignature = errors.New("the signature of cluster-info does not fit the token")
)

// ClusterInfo reads the public cluster-info. Believe it only after Verify or Pinned.
func (v *Visitor) ClusterInfo(ctx context.Context) (ClusterInfo, error) {
	var object corev1.ConfigMap
	if err := v.object(ctx, "read cluster-info", "/api/v1/namespaces/kube-public/configmaps/"+clusterInfo, &object); err != nil {
		return ClusterInfo{}, err
	}
	info := ClusterInfo{kubeconfig: object.Data["kubeconfig"], signatures: map[string]string{}}
	for key, value := range object.Data {
		if id, ok := strings.CutPrefix(key, jwsPrefix); ok {
			info.signatures[id] = value
		}
	}
	return info, nil
}

// Verify checks the signature that was made with the token: ErrNoSignature or ErrBadSignature when it is not the cluster's.
func (i ClusterInfo) Verify(token string) error {
	id, secret, ok := strings.Cut(token, ".")
	if !ok {
		return errors.New("read bootstrap token: it is not id.secret")
	}
	signature := i.signatures[id]
	if signature == "" {
		return fmt.Errorf("%w (token id %s)", ErrNoSignature, id)
	}
	if !jws.DetachedTokenIsValid(signature, i.kubeconfig, id, secret) {
		return fmt.Errorf("%w (token id %s)", ErrBadSignature, id)
	}
	return nil
}

// PinError says that no pin matches the CA.
type PinError struct {
	Found []string // "sha256:" and hex of each CA certificate's public key
	Pins  []string
}

func (e *PinError) Error() string {
	return fmt.Sprintf("the cluster's CA has the hash %s, expected %s", strings.Join(e.Found, " and "), strings.Join(e.Pins, " or "))
}

// Pinned returns those certificates of the cluster's CA (PEM) that match one of the pins: "sha256:" and 64 hex digits, of the public key.
// The error is a *PinError if none does.
func (i ClusterInfo) Pinned(pins []string) ([]byte, error) {
	for _, pin := range pins {
		if sum, err := hex.DecodeString(strings.TrimPrefix(strings.ToLower(pin), "sha256:")); err != nil || len(sum) != sha256.Size || !strings.HasPrefix(pin, "sha256:") {
			return nil, fmt.Errorf("ca hash %q is not sha256: and 64 hex digits", pin)
		}
	}
	_, cluster, err := currentCluster([]byte(i.kubeconfig))
	if err != nil {
		return nil, fmt.Errorf("read cluster-info: %w", err)
	}
	certs, err := certutil.ParseCertsPEM(cluster.CertificateAuthorityData)
	if err != nil {
		return nil, fmt.Errorf("read cluster-info: its CA: %w", err)
	}
	failure := &PinError{Pins: pins}
	var trusted []*x509.Certificate
	for _, cert := range certs {
		sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
		hash := "sha256:" + hex.EncodeToString(sum[:])
		failure.Found = append(failure.Found, hash)
		for _, pin := range pins {
			if strings.EqualFold(pin, hash) {
				trusted = append(trusted, cert)
			}
		}
	}
	if len(trusted) == 0 {
		return nil, failure
	}
	return certutil.EncodeCertificates(trusted...)
}

// ClusterConfiguration is what a joining machine needs to know of kubeadm's document of that name.
type ClusterConfiguration struct {
	ClusterName          string `json:"clusterName"`
	KubernetesVersion    string `json:"kubernetesVersion"` // "v1.36.3"
	ControlPlaneEndpoint string `json:"controlPlaneEndpoint"`
	ImageRepository      string `json:"imageRepository"`
	Networking           struct {
		ServiceSubnet string `json:"serviceSubnet"`
		PodSubnet     string `json:"podSubnet"`
	} `json:"networking"`
	Etcd struct {
		External *struct {
			Endpoints []string `json:"endpoints"`
		} `json:"external"` // nil where control planes run etcd themselves
	} `json:"etcd"`
}

// ClusterConfiguration reads kubeadm's record of the cluster.
func (c *Client) ClusterConfiguration(ctx context.Context) (is ClusterConfiguration, err error) {
	text, err := c.Document(ctx, metav1.NamespaceSystem, kubeadmConfig, "ClusterConfiguration")
	if err == nil {
		err = yaml.Unmarshal([]byte(text), &is)
	}
	if err != nil {
		return is, fmt.Errorf("read kubeadm's record of the cluster: %w", err)
	}
	return is, nil
}

// NetworkPlugin is the name of the pod network, by its DaemonSet; "" for one that is not known.
func (c *Client) NetworkPlugin(ctx context.Context) (string, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	sets, err := c.set.AppsV1().DaemonSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("list daemonsets: %w", err)
	}
	for _, d := range sets.Items {
		for _, name := range []string{"flannel", "calico", "cilium", "canal", "weave", "kube-router", "antrea", "kindnet"} {
			if strings.Contains(d.Name, name) {
				return name, nil
			}
		}
	}
	return "", nil
}

// ClusterConfiguration reads kubeadm's record of the cluster.
func (v *Visitor) ClusterConfiguration(ctx context.Context) (ClusterConfiguration, error) {
	var config ClusterConfiguration
	return config, v.document(ctx, "kubeadm-config", "ClusterConfiguration", &config)
}

// KubeletConfiguration is what a joining machine needs to know of the kubelet configuration that it will get. Nil is kubelet's default.
type KubeletConfiguration struct {
	CgroupDriver string `json:"cgroupDriver"`
	FailSwapOn   *bool  `json:"failSwapOn"`
	FailCgroupV1 *bool  `json:"failCgroupV1"`
}

// KubeletConfiguration reads the kubelet configuration of the cluster.
func (v *Visitor) KubeletConfiguration(ctx context.Context) (KubeletConfiguration, error) {
	var config KubeletConfiguration
	return config, v.document(ctx, "kubelet-config", "kubelet", &config)
}

// document reads the YAML under a key of a ConfigMap in kube-system.
func (v *Visitor) document(ctx context.Context, name, key string, into any) error {
	var object corev1.ConfigMap
	if err := v.object(ctx, "read "+name, "/api/v1/namespaces/kube-system/configmaps/"+name, &object); err != nil {
		return err
	}
	if err := yaml.Unmarshal([]byte(object.Data[key]), into); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

// Node reads one node; Refused(err, 404) when there is none of that name.
func (v *Visitor) Node(ctx context.Context, name string) (Node, error) {
	var object corev1.Node
	if err := v.object(ctx, "read node "+name, "/api/v1/nodes/"+url.PathEscape(name), &object); err != nil {
		return Node{}, err
	}
	return toNode(&object), nil
}

// ErrWrongKey is a certificate key that does not decrypt the uploaded certificates.
var ErrWrongKey = errors.New("the certificate key does not decrypt the uploaded certificates")

// CheckCertificateKey reads the certificates that kubeadm uploaded for joining control planes and tries the key (hex) on each of them:
// ErrWrongKey when it does not fit, Refused(err, 404) when they are gone. What was decrypted is dropped.
func (v *Visitor) CheckCertificateKey(ctx context.Context, key string) error {
	raw, err := hex.DecodeString(key)
	if err != nil {
		return fmt.Errorf("%w: it is not hex digits", ErrWrongKey) // not the decoder's error, which would show a part of the key
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return fmt.Errorf("%w: it has %d bytes, kubeadm makes 32", ErrWrongKey, len(raw))
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return err
	}
	var secret corev1.Secret
	if err := v.object(ctx, "read the uploaded certificates", "/api/v1/namespaces/kube-system/secrets/kubeadm-certs", &secret); err != nil {
		return err
	}
	for name, data := range secret.Data {
		if len(data) == 0 { // a file that was not there when the certificates were uploaded
			continue
		}
		if len(data) < gcm.NonceSize() {
			return fmt.Errorf("%w: %s is too short", ErrWrongKey, name)
		}
		if _, err := gcm.Open(nil, data[:gcm.NonceSize()], data[gcm.NonceSize():], nil); err != nil {
			return fmt.Errorf("%w: %s", ErrWrongKey, name)
		}
	}
	return nil
}
