package kube

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

func newCA(t *testing.T) (certPEM []byte, publicKey []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	publicKey, err = x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), publicKey
}

func TestCACertHash(t *testing.T) {
	ca, publicKey := newCA(t)
	want := fmt.Sprintf("sha256:%x", sha256.Sum256(publicKey))
	got, err := CACertHash(kubeconfigFor("https://h:6443", ca))
	if err != nil || got != want {
		t.Errorf("hash %s, error %v, want %s", got, err, want)
	}
	for name, kubeconfig := range map[string][]byte{
		"no ca":      kubeconfigFor("https://h:6443", nil),
		"not a ca":   kubeconfigFor("https://h:6443", []byte("text")),
		"no cluster": []byte(`{"apiVersion":"v1","kind":"Config","current-context":"x"}`),
	} {
		if hash, err := CACertHash(kubeconfig); err == nil {
			t.Errorf("%s: hash %s", name, hash)
		}
	}
}

func TestCACertHashOfClusterInfo(t *testing.T) {
	ca, publicKey := newCA(t)
	info := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","clusters":[
		{"name":"","cluster":{"server":"https://h:6443","certificate-authority-data":%q}}]}`, base64.StdEncoding.EncodeToString(ca))
	if got, err := CACertHash(info); err != nil || got != fmt.Sprintf("sha256:%x", sha256.Sum256(publicKey)) {
		t.Errorf("hash %s, error %v", got, err)
	}
}

func TestWithServer(t *testing.T) {
	ca, _ := newCA(t)
	out, err := WithServer(kubeconfigFor("https://10.0.0.1:6443", ca), "https://127.0.0.1:7443", "10.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.Load(out)
	if err != nil {
		t.Fatal(err)
	}
	lab, other := cfg.Clusters["lab"], cfg.Clusters["other"]
	if lab.Server != "https://127.0.0.1:7443" || lab.TLSServerName != "10.0.0.1" || string(lab.CertificateAuthorityData) != string(ca) {
		t.Errorf("cluster %+v", lab)
	}
	if other.Server != "https://other:6443" || cfg.AuthInfos["admin"].Token != "admin" || cfg.CurrentContext != "admin@lab" {
		t.Error("something else changed")
	}
	for _, server := range []string{"http://h:6443", "h:6443", "", "https://", ":"} {
		if _, err := WithServer(kubeconfigFor("https://h:6443", ca), server, ""); err == nil {
			t.Errorf("server %q was accepted", server)
		}
	}
}

func TestFromNode(t *testing.T) {
	ca, _ := newCA(t)
	carry := func(text string) string {
		return base64.StdEncoding.EncodeToString([]byte(text))
	}
	admin := func(cluster, user string) []byte {
		return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: admin@lab
preferences: {colors: true}
contexts:
- {name: admin@lab, context: {cluster: lab, user: admin, namespace: kube-system}}
- {name: other, context: {cluster: lab, user: other}}
clusters:
- {name: lab, cluster: {server: "https://10.0.0.1:6443", certificate-authority-data: %s%s}}
users:
- {name: admin, user: {client-certificate-data: %s, client-key-data: %s%s}}
- {name: other, user: {tokenFile: /etc/shadow}}
`, carry(string(ca)), cluster, carry("cert"), carry("key"), user)
	}
	out, err := FromNode(admin("", ""))
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.Load(out)
	if err != nil {
		t.Fatal(err)
	}
	user, cluster := cfg.AuthInfos["admin"], cfg.Clusters["lab"]
	if string(user.ClientKeyData) != "key" || string(user.ClientCertificateData) != "cert" || string(cluster.CertificateAuthorityData) != string(ca) ||
		cluster.Server != "https://10.0.0.1:6443" || len(cfg.AuthInfos) != 1 || len(cfg.Contexts) != 1 || strings.Contains(string(out), "shadow") {
		t.Errorf("got %s", out)
	}
	for name, bad := range map[string][]byte{
		"tokenFile":                admin("", ", tokenFile: /root/.git-credentials"),
		"client-key":               admin("", ", client-key: /root/key"),
		"client-certificate":       admin("", ", client-certificate: /dev/zero"),
		"certificate-authority":    admin(", certificate-authority: /etc/shadow", ""),
		"proxy-url":                admin(", proxy-url: http://192.0.2.1", ""),
		"insecure-skip-tls-verify": admin(", insecure-skip-tls-verify: true", ""),
		"as":                       admin("", ", as: root"),
		"exec":                     admin("", ", exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never}"),
		"auth-provider":            admin("", ", auth-provider: {name: gcp}"),
		"username":                 admin("", ", username: root, password: x"),
		"no user":                  []byte(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"https://h"}}]}`),
	} {
		if out, err := FromNode(bad); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %s, error %v", name, out, err)
		}
	}
}
