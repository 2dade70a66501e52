package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
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
		IPAddresses: []net.IP{c.Network.VirtualIP.AsSlice()},
	}
	for _, n := range c.Nodes {
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
