package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"k8slab/config"
)

// pki is a key that is its own authority, for all addresses of the cluster.
type pki struct {
	cert, key []byte // PEM
	pair      tls.Certificate
}

func newPKI(t *testing.T, c *config.Cluster) pki {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{c.Network.VirtualIP.AsSlice(), net.IPv4(127, 0, 0, 1)},
		DNSNames:    []string{"kubernetes", "kubernetes.default.svc", "localhost"},
	}
	for _, n := range append(slices.Clone(c.Nodes), added) {
		template.DNSNames = append(template.DNSNames, n.Name)
		template.IPAddresses = append(template.IPAddresses, n.IP.AsSlice())
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	p := pki{cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})}
	if p.pair, err = tls.X509KeyPair(p.cert, p.key); err != nil {
		t.Fatal(err)
	}
	return p
}

// serviceAccounts is the key of service accounts, as kubeadm makes it.
var serviceAccounts = sync.OnceValue(func() (pair [2]string) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		panic(err)
	}
	return [2]string{
		string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})),
		string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
	}
})

// expired is a certificate of the authority that is too old.
func (p pki) expired(t *testing.T) string {
	t.Helper()
	template := *p.pair.Leaf
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(2), time.Now().Add(-48*time.Hour), time.Now().Add(-time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, &template, p.pair.Leaf, p.pair.Leaf.PublicKey, p.pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// login is a kubeconfig with a certificate in it, as kubeadm prints it.
func (p pki) login(server, user string) string {
	text, _ := json.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "x",
		"clusters": []object{{"name": "lab", "cluster": object{"server": server, "certificate-authority-data": p.cert}}},
		"contexts": []object{{"name": "x", "context": object{"cluster": "lab", "user": user}}},
		"users":    []object{{"name": user, "user": object{"client-certificate-data": p.cert, "client-key-data": p.key}}},
	})
	return string(text)
}

// kubeconfig is a control plane's admin.conf.
func (p pki) kubeconfig(server string) string {
	text, _ := json.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "admin@lab",
		"clusters": []object{{"name": "lab", "cluster": object{"server": server, "certificate-authority-data": p.cert}}},
		"contexts": []object{{"name": "admin@lab", "context": object{"cluster": "lab", "user": "admin"}}},
		"users":    []object{{"name": "admin", "user": object{"token": "admin"}}},
	})
	return string(text)
}
