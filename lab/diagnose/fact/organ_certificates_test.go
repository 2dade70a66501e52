package fact

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8slab/lab/join"
	"k8slab/lab/symptom"
)

// signed is a certificate and its key as kubeadm writes them.
type signed struct {
	cert     *x509.Certificate
	priv     *ecdsa.PrivateKey
	pem, key string
}

// sign makes a certificate of the issuer's, or a CA where that is nil. Names that are addresses count as such.
func sign(t *testing.T, issuer *signed, names ...string) *signed {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	parent, by := template, key
	if issuer == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	} else {
		parent, by = issuer.cert, issuer.priv
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &signed{cert, key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))}
}

// pki is a control plane's directory of certificates, and what its ports serve.
type pki struct {
	files  map[string]string
	ca     *signed
	etcd   *signed
	served map[string]*signed
}

func (p *pki) put(name string, s *signed) {
	p.files[path.Join(pkiDir, name+".crt")], p.files[path.Join(pkiDir, name+".key")] = s.pem, s.key
}

func (p *pki) kubeconfig(name string, ca, user *signed) {
	b64 := base64.StdEncoding.EncodeToString
	p.files["/etc/kubernetes/"+name] = fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],
"clusters":[{"name":"c","cluster":{"server":"https://192.0.2.10:6443","certificate-authority-data":%q}}],
"users":[{"name":"u","user":{"client-certificate-data":%q,"client-key-data":%q}}]}`, b64([]byte(ca.pem)), b64([]byte(user.pem)), b64([]byte(user.key)))
}

var (
	apiNames  = []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "cp1", "192.0.2.11", "10.96.0.1", "192.0.2.10"}
	etcdNames = []string{"localhost", "cp1", "127.0.0.1", "192.0.2.11"}
)

func newPKI(t *testing.T) *pki {
	t.Helper()
	p := &pki{files: map[string]string{
		manifestDir + "/kube-apiserver.yaml": "    - --advertise-address=192.0.2.11\n    - --service-cluster-ip-range=10.96.0.0/12\n",
		manifestDir + "/etcd.yaml":           "    - --initial-advertise-peer-urls=https://192.0.2.11:2380\n",
	}, ca: sign(t, nil), etcd: sign(t, nil)}
	front, api, member := sign(t, nil), sign(t, p.ca, apiNames...), sign(t, p.etcd, etcdNames...)
	for name, s := range map[string]*signed{
		"ca": p.ca, "etcd/ca": p.etcd, "front-proxy-ca": front, "apiserver": api, "apiserver-kubelet-client": sign(t, p.ca), "front-proxy-client": sign(t, front),
		"apiserver-etcd-client": sign(t, p.etcd), "etcd/server": member, "etcd/peer": member, "etcd/healthcheck-client": sign(t, p.etcd),
	} {
		p.put(name, s)
	}
	for _, name := range []string{"admin.conf", "controller-manager.conf", "scheduler.conf"} {
		p.kubeconfig(name, p.ca, sign(t, p.ca))
	}
	p.served = map[string]*signed{"127.0.0.1:6443": api, "127.0.0.1:2379": member, "192.0.2.11:2380": member, "127.0.0.1:10250": sign(t, nil, "cp1")}
	return p
}

// machine serves what the ports are to serve. etcd wants a certificate of its own CA, and complains of others.
func (p *pki) machine(t *testing.T) join.Machine {
	t.Helper()
	m := machine(t, p.files)
	m.Dial = func(_ context.Context, _, address string) (net.Conn, error) {
		s := p.served[address]
		if s == nil {
			return nil, syscall.ECONNREFUSED
		}
		ours, theirs := net.Pipe()
		config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{s.cert.Raw}, PrivateKey: s.priv}}}
		if strings.HasSuffix(address, "2379") || strings.HasSuffix(address, "2380") {
			config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
			config.ClientCAs.AddCert(p.etcd.cert)
		}
		go func() {
			server := tls.Server(theirs, config)
			if err := server.Handshake(); err != nil {
				t.Errorf("%s complains: %v", address, err)
			}
			_ = theirs.Close()
		}()
		return ours, nil
	}
	return m
}

func TestIdentities(t *testing.T) {
	const pkiFile, conf = pkiDir + "/", "/etc/kubernetes/"
	for _, tt := range []struct {
		name   string
		damage func(*pki)
		id     symptom.ID
		where  string
		says   string
	}{
		{"healthy", func(*pki) {}, "", "", ""},
		{"a worker", func(p *pki) {
			p.files = map[string]string{pkiDir + "/ca.crt": p.ca.pem}
			p.served = map[string]*signed{"127.0.0.1:10250": sign(t, nil)}
		}, "", "", ""},
		{"a certificate is gone", func(p *pki) { delete(p.files, pkiFile+"front-proxy-client.crt") }, symptom.FileChanged, pkiFile + "front-proxy-client.crt", "no such file"},
		{"a certificate is cut off", func(p *pki) { p.files[pkiFile+"apiserver.crt"] = p.files[pkiFile+"apiserver.crt"][:80] }, symptom.FileChanged, pkiFile + "apiserver.crt", "no certificate"},
		{"a key is gone", func(p *pki) { delete(p.files, pkiFile+"apiserver.key") }, symptom.FileChanged, pkiFile + "apiserver.key", "no such file"},
		{"a key is another's", func(p *pki) { p.files[pkiFile+"apiserver.key"] = p.files[pkiFile+"ca.key"] }, symptom.FileChanged, pkiFile + "apiserver.key", "not the key of"},
		{"the CA's key is elsewhere", func(p *pki) { delete(p.files, pkiFile+"ca.key") }, "", "", ""},
		{"a stranger has signed", func(p *pki) { p.put("apiserver-kubelet-client", sign(t, sign(t, nil))) }, symptom.X509UnknownAuthority, pkiFile + "apiserver-kubelet-client.crt", "has not signed"},
		{"names are missing", func(p *pki) { p.put("apiserver", sign(t, p.ca, apiNames[:5]...)) }, symptom.X509SANMismatch, pkiFile + "apiserver.crt", "not for 10.96.0.1, 192.0.2.10"},
		{"a member's address is missing", func(p *pki) { p.put("etcd/peer", sign(t, p.etcd, "cp1", "127.0.0.1")) }, symptom.X509SANMismatch, pkiFile + "etcd/peer.crt", "not for 192.0.2.11"},
		{"it is served without names", func(p *pki) { p.served["127.0.0.1:6443"] = sign(t, p.ca, apiNames[1:]...) }, symptom.X509SANMismatch, "port 6443", "not for kubernetes"},
		{"a stranger's is served", func(p *pki) { p.served["192.0.2.11:2380"] = sign(t, sign(t, nil), etcdNames...) }, symptom.X509UnknownAuthority, "port 2380", "has not signed"},
		{"nothing is served", func(p *pki) { p.served = nil }, "", "", ""},
		{"a kubeconfig has another CA", func(p *pki) { p.kubeconfig("scheduler.conf", sign(t, nil), sign(t, p.ca)) }, symptom.X509UnknownAuthority, conf + "scheduler.conf", "its CA is not the one"},
		{"a kubeconfig has a stranger's certificate", func(p *pki) { p.kubeconfig("admin.conf", p.ca, sign(t, sign(t, nil))) }, symptom.X509UnknownAuthority, conf + "admin.conf", "has not signed"},
		{"a kubeconfig is cut off", func(p *pki) { p.files[conf+"controller-manager.conf"] = "{" }, symptom.FileChanged, conf + "controller-manager.conf", "read kubeconfig"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPKI(t)
			tt.damage(p)
			w := &measurer{m: p.machine(t), patience: 1}
			found, err := w.identities(t.Context())
			if err != nil || tt.id == "" && len(found) > 0 {
				t.Fatalf("%v %v", found, err)
			}
			if tt.id != "" && (len(found) != 1 || found[0].Symptom != tt.id || found[0].Where != tt.where || !strings.Contains(found[0].Text, tt.says)) {
				t.Errorf("%+v", found)
			}
		})
	}
}

// The dates of what lies in kubeconfigs and of what is served are facts, for a judge with a clock that is right.
func TestDatesOfIdentities(t *testing.T) {
	p := newPKI(t)
	w := &measurer{m: p.machine(t), patience: 1}
	if _, err := w.identities(t.Context()); err != nil {
		t.Fatal(err)
	}
	var places []string
	for _, cert := range w.dated {
		places = append(places, cert.File)
		if cert.NotAfter.IsZero() {
			t.Errorf("%+v", cert)
		}
	}
	want := []string{"/etc/kubernetes/admin.conf", "/etc/kubernetes/controller-manager.conf", "/etc/kubernetes/scheduler.conf", "port 6443", "port 2379", "port 2380"}
	if !slices.Equal(places, want) {
		t.Errorf("%v", places)
	}
}
