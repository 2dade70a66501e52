package repair

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

const (
	kubernetesDir = "/etc/kubernetes/"
	pkiDir        = kubernetesDir + "pki/"
)

// leaf is a certificate of a control plane that kubeadm makes, with its key.
type leaf struct {
	phase string // of `kubeadm init phase certs`
	base  string // path below pkiDir, without the ending
	ca    string // likewise
	pods  []string
}

var leaves = []leaf{
	{"apiserver", "apiserver", "ca", []string{"kube-apiserver"}},
	{"apiserver-kubelet-client", "apiserver-kubelet-client", "ca", []string{"kube-apiserver"}},
	{"front-proxy-client", "front-proxy-client", "front-proxy-ca", []string{"kube-apiserver"}},
	// An API server that was refused for long tries its etcd only every two minutes.
	{"etcd-server", "etcd/server", "etcd/ca", []string{etcdPod, "kube-apiserver"}},
	{"etcd-peer", "etcd/peer", "etcd/ca", []string{etcdPod}},
	{"etcd-healthcheck-client", "etcd/healthcheck-client", "etcd/ca", nil},
	{"apiserver-etcd-client", "apiserver-etcd-client", "etcd/ca", []string{"kube-apiserver"}},
}

// shared are the certificates and keys that all control planes have in common, as certificate and key.
var shared = [][2]string{
	{"ca.crt", "ca.key"}, {"front-proxy-ca.crt", "front-proxy-ca.key"}, {"etcd/ca.crt", "etcd/ca.key"}, {"sa.pub", "sa.key"},
}

// login is a kubeconfig of a control plane that kubeadm makes.
type login struct {
	phase string // of `kubeadm init phase kubeconfig`
	pods  []string
}

var logins = []login{
	{"admin", nil}, {"controller-manager", []string{"kube-controller-manager"}}, {"scheduler", []string{"kube-scheduler"}},
}

func (l login) file() string { return kubernetesDir + l.phase + ".conf" }

// pkiFiles are the files that the judgement of a control plane's credentials needs.
func pkiFiles() (files []string) {
	for _, l := range leaves {
		files = append(files, pkiDir+l.base+".crt", pkiDir+l.base+".key")
	}
	for _, s := range shared {
		files = append(files, pkiDir+s[0], pkiDir+s[1])
	}
	for _, l := range logins {
		files = append(files, l.file())
	}
	return files
}

// expiredError says that a certificate is too old.
type expiredError struct{ at time.Time }

func (e *expiredError) Error() string { return "it expired on " + e.at.Format(time.DateOnly) }

// wrongPair says what is wrong with a certificate, its key, and the names that it must have; nil if nothing is.
func wrongPair(certificate, key, ca string, names []string, now time.Time) error {
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		return errors.New("certificate and key cannot be read, or are not of each other")
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(ca)) {
		return errors.New("there is no authority to compare it with")
	}
	switch is := pair.Leaf; {
	case now.After(is.NotAfter):
		return &expiredError{is.NotAfter}
	case now.Before(is.NotBefore):
		return nil // a clock is wrong, not the certificate
	default:
		options := x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
		if _, err := is.Verify(options); err != nil {
			return errors.New("it is not signed by the cluster's authority")
		}
		for _, name := range names {
			if is.VerifyHostname(name) != nil {
				return fmt.Errorf("it lacks the name %s", name)
			}
		}
	}
	return nil
}

// soundShared tells whether a shared certificate or public key and its key can be read and are of each other.
func soundShared(public, key string) bool {
	if strings.Contains(public, "BEGIN PUBLIC KEY") {
		block, _ := pem.Decode([]byte(key))
		published, _ := pem.Decode([]byte(public))
		if block == nil || published == nil {
			return false
		}
		own, err := x509.ParsePKCS1PrivateKey(block.Bytes)
		if err != nil {
			return false
		}
		text, err := x509.MarshalPKIXPublicKey(own.Public())
		return err == nil && slices.Equal(text, published.Bytes)
	}
	pair, err := tls.X509KeyPair([]byte(public), []byte(key))
	return err == nil && pair.Leaf.IsCA
}

// kubeconfig is what of a kubeconfig is judged.
type kubeconfig struct {
	Clusters []struct {
		Cluster struct {
			Server string
			CA     string `json:"certificate-authority-data"`
		}
	}
	Users []struct {
		User struct {
			Certificate     string `json:"client-certificate-data"`
			Key             string `json:"client-key-data"`
			CertificateFile string `json:"client-certificate"`
			Token           string
		}
	}
}

// wrongCluster says what is wrong with a kubeconfig's cluster: it cannot be read, trusts another authority, or leads to no server of these.
func wrongCluster(text, ca string, servers []string) error {
	var k kubeconfig
	if err := yaml.Unmarshal([]byte(text), &k); err != nil || len(k.Clusters) != 1 {
		return errors.New("it is no kubeconfig of one cluster")
	}
	c := k.Clusters[0].Cluster
	trusts, _ := base64.StdEncoding.DecodeString(c.CA)
	switch {
	case strings.TrimSpace(string(trusts)) != strings.TrimSpace(ca):
		return errors.New("it does not trust the cluster's authority")
	case !slices.Contains(servers, c.Server):
		return fmt.Errorf("its server is %s", c.Server)
	}
	return nil
}

// wrongLogin says what is wrong with a kubeconfig: its cluster, or its certificate. One in a file of its own is not looked at.
func wrongLogin(text, ca string, servers []string, now time.Time) error {
	if err := wrongCluster(text, ca, servers); err != nil {
		return err
	}
	var k kubeconfig
	if err := yaml.Unmarshal([]byte(text), &k); err != nil || len(k.Users) != 1 {
		return errors.New("it is no kubeconfig of one user")
	}
	u := k.Users[0].User
	if u.Token != "" || u.CertificateFile != "" {
		return nil
	}
	certificate, _ := base64.StdEncoding.DecodeString(u.Certificate)
	key, _ := base64.StdEncoding.DecodeString(u.Key)
	return wrongPair(string(certificate), string(key), ca, nil, now)
}
