package fact

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

const pkiDir = "/etc/kubernetes/pki"

// credential is a certificate with its key, of kubeadm's. Names are relative to its directory.
type credential struct {
	name   string // of the certificate without ".crt", and of its key without ".key"
	issuer string
	etcd   bool                     // only where etcd runs on the node
	server func(*identity) []string // the names that it must have
}

var credentials = []credential{
	{name: "apiserver", issuer: "ca", server: (*identity).apiNames},
	{name: "apiserver-kubelet-client", issuer: "ca"},
	{name: "front-proxy-client", issuer: "front-proxy-ca"},
	{name: "apiserver-etcd-client", issuer: "etcd/ca", etcd: true},
	{name: "etcd/server", issuer: "etcd/ca", etcd: true, server: (*identity).etcdNames},
	{name: "etcd/peer", issuer: "etcd/ca", etcd: true, server: (*identity).etcdNames},
	{name: "etcd/healthcheck-client", issuer: "etcd/ca", etcd: true},
}

// kubeconfigs are those of a node. kubelet's own is everywhere; how kubelet would start with it another organ says.
var kubeconfigs = []string{"admin.conf", "super-admin.conf", "controller-manager.conf", "scheduler.conf", "kubelet.conf"}

// identity is one look at the certificates of a node.
type identity struct {
	w     *measurer
	cas   map[string][]*x509.Certificate // by the name of their file
	found []join.Defect
	dated []Certificate // whose dates the judge compares with the right clock
}

// identities judges certificates where they lie and where they are served. How long they are valid is judged by their dates, from outside:
// this machine's clock may be wrong.
func (w *measurer) identities(ctx context.Context) ([]join.Defect, error) {
	if w.m.OtherPKI() != "" { // which the facts say
		return nil, errSkipped
	}
	i := &identity{w: w, cas: map[string][]*x509.Certificate{}}
	i.authorities()
	if w.m.Exists(path.Join(manifestDir, "kube-apiserver.yaml")) {
		for _, cred := range credentials {
			if !cred.etcd || w.m.Exists(path.Join(manifestDir, "etcd.yaml")) {
				i.pair(cred)
			}
		}
	}
	for _, name := range kubeconfigs {
		i.kubeconfig(path.Join("/etc/kubernetes", name))
	}
	i.served(ctx)
	w.dated = i.dated
	return i.found, nil
}

func (i *identity) bad(id symptom.ID, where, format string, args ...any) {
	i.found = append(i.found, join.Defect{Symptom: id, Where: where, Text: fmt.Sprintf(format, args...)})
}

// authorities reads the CAs. The cluster's own is on every node.
func (i *identity) authorities() {
	names := []string{"ca"}
	if i.w.m.Exists(path.Join(manifestDir, "kube-apiserver.yaml")) {
		names = append(names, "front-proxy-ca")
	}
	if i.w.m.Exists(path.Join(manifestDir, "etcd.yaml")) {
		names = append(names, "etcd/ca")
	}
	for _, name := range names {
		i.cas[name] = i.certificates(name, true)
	}
}

// certificates reads those of a file, and judges its key; none where they cannot be read.
func (i *identity) certificates(name string, keyMayBeAway bool) []*x509.Certificate {
	file := path.Join(pkiDir, name+".crt")
	text, err := i.w.m.Read(file)
	var certs []*x509.Certificate
	if err == nil {
		certs, err = kube.Certificates([]byte(text))
	}
	if err != nil {
		i.bad(symptom.FileChanged, file, "%s", join.Plain(err))
		return nil
	}
	i.key(file, []byte(text), path.Join(pkiDir, name+".key"), keyMayBeAway)
	return certs
}

// key judges whether a key is that of a certificate. A CA's key may be elsewhere.
func (i *identity) key(file string, cert []byte, keyFile string, mayBeAway bool) {
	key, err := i.w.m.Read(keyFile)
	if mayBeAway && !i.w.m.Exists(keyFile) {
		return
	}
	if err != nil {
		i.bad(symptom.FileChanged, keyFile, "the key of %s: %s", file, join.Plain(err))
		return
	}
	if _, err := tls.X509KeyPair(cert, []byte(key)); err != nil {
		i.bad(symptom.FileChanged, keyFile, "it is not the key of %s: %v", file, err)
	}
}

// pair judges a certificate of kubeadm's with its key.
func (i *identity) pair(cred credential) {
	certs := i.certificates(cred.name, false)
	if certs == nil {
		return
	}
	file := path.Join(pkiDir, cred.name+".crt")
	i.issued(file, certs[0], cred.issuer)
	if cred.server != nil {
		i.names(file, certs[0], cred.server(i))
	}
}

// issued judges whether one of the node's CAs has signed a certificate. Dates do not matter here.
func (i *identity) issued(where string, cert *x509.Certificate, ca string) {
	issuers := i.cas[ca]
	if len(issuers) == 0 { // which has been said
		return
	}
	if !slices.ContainsFunc(issuers, func(ca *x509.Certificate) bool { return cert.CheckSignatureFrom(ca) == nil }) {
		i.bad(symptom.X509UnknownAuthority, where, "the CA in %s has not signed its certificate (issuer %s)",
			path.Join(pkiDir, ca+".crt"), cert.Issuer)
	}
}

// names judges whether a server's certificate has the names and addresses by which it is asked.
func (i *identity) names(where string, cert *x509.Certificate, needed []string) {
	missing := slices.DeleteFunc(needed, func(name string) bool { return cert.VerifyHostname(name) == nil })
	if len(missing) > 0 {
		i.bad(symptom.X509SANMismatch, where, "its certificate is not for %s", strings.Join(missing, ", "))
	}
}

// kubeconfig judges the certificates in a kubeconfig.
func (i *identity) kubeconfig(file string) {
	text, err := i.w.m.Read(file)
	if err != nil {
		if file == "/etc/kubernetes/admin.conf" && i.w.m.Exists(path.Join(manifestDir, "kube-apiserver.yaml")) {
			i.bad(symptom.FileChanged, file, "%s", join.Plain(err))
		}
		return // each component that misses one fails
	}
	c, err := kube.ReadCredentials([]byte(text))
	if err != nil {
		i.bad(symptom.FileChanged, file, "%v", err)
		return
	}
	if len(c.CA) > 0 && len(i.cas["ca"]) > 0 {
		cas, err := kube.Certificates(c.CA)
		if err != nil {
			i.bad(symptom.FileChanged, file, "its CA: %v", err)
		} else if !slices.ContainsFunc(cas, func(ca *x509.Certificate) bool { return slices.ContainsFunc(i.cas["ca"], ca.Equal) }) {
			i.bad(symptom.X509UnknownAuthority, file, "its CA is not the one in %s", path.Join(pkiDir, "ca.crt"))
		}
	}
	where, inside := file, len(c.Cert) > 0
	if !inside && c.CertFile != "" {
		text, _ := i.w.m.Read(c.CertFile)
		where, c.Cert = c.CertFile, []byte(text)
	}
	certs, err := kube.Certificates(c.Cert)
	if err != nil {
		if inside {
			i.bad(symptom.FileChanged, file, "its client certificate: %v", err)
		}
		return
	}
	i.issued(where, certs[0], "ca")
	if !inside { // its file's dates are known
		return
	}
	i.date(file, certs[0])
	if _, err := tls.X509KeyPair(c.Cert, c.Key); err != nil {
		i.bad(symptom.FileChanged, file, "its client key is not that of its certificate: %v", err)
	}
}

func (i *identity) date(where string, cert *x509.Certificate) {
	i.dated = append(i.dated, Certificate{File: where, Subject: cert.Subject.String(), NotBefore: cert.NotBefore, NotAfter: cert.NotAfter})
}

// flag is the value of a flag in a static pod's manifest.
func (i *identity) flag(component, name string) string {
	text, _ := i.w.m.Read(path.Join(manifestDir, component+".yaml"))
	found := regexp.MustCompile(`--` + name + `=(\S+)`).FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	return strings.Trim(found[1], `"'`)
}

// apiNames are those by which an API server is asked: by pods, by its own node, and by who has the administrator's kubeconfig.
func (i *identity) apiNames() []string {
	names := []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	if address := i.flag("kube-apiserver", "advertise-address"); address != "" {
		names = append(names, address)
	}
	first, _, _ := strings.Cut(i.flag("kube-apiserver", "service-cluster-ip-range"), ",")
	if services, err := netip.ParsePrefix(first); err == nil {
		names = append(names, services.Masked().Addr().Next().String())
	}
	text, _ := i.w.m.Read("/etc/kubernetes/admin.conf")
	admin, _ := kube.ReadCredentials([]byte(text))
	if u, err := url.Parse(admin.Server); err == nil && u.Hostname() != "" {
		names = append(names, u.Hostname())
	}
	return names
}

// etcdNames are those by which the other members and the API server ask a member.
func (i *identity) etcdNames() []string {
	names := []string{"127.0.0.1"}
	if u, err := url.Parse(i.flag("etcd", "initial-advertise-peer-urls")); err == nil && u.Hostname() != "" {
		names = append(names, u.Hostname())
	}
	return names
}

// server is a port of the node's own on which a certificate is served.
type server struct {
	port, host string
	manifest   string // the static pod behind it, "" for kubelet
	issuer     string // "" where it signs for itself, and nobody looks
	client     string // the credential without which it would complain
	names      func(*identity) []string
}

// served judges the certificates of the node's servers. One that does not answer has checks of its own.
func (i *identity) served(ctx context.Context) {
	member := "127.0.0.1"
	if names := i.etcdNames(); len(names) > 1 {
		member = names[1]
	}
	for _, s := range []server{
		{port: "6443", manifest: "kube-apiserver", issuer: "ca", names: (*identity).apiNames},
		{port: "10257", manifest: "kube-controller-manager"},
		{port: "10259", manifest: "kube-scheduler"},
		{port: "10250"},
		{port: "2379", manifest: "etcd", issuer: "etcd/ca", client: "etcd/healthcheck-client", names: (*identity).etcdNames},
		{port: "2380", host: member, manifest: "etcd", issuer: "etcd/ca", client: "etcd/peer", names: (*identity).etcdNames},
	} {
		if s.manifest != "" && !i.w.m.Exists(path.Join(manifestDir, s.manifest+".yaml")) {
			continue
		}
		if s.host == "" {
			s.host = "127.0.0.1"
		}
		if s.manifest == "kube-apiserver" {
			s.port = cmp.Or(i.flag(s.manifest, "secure-port"), s.port)
		}
		cert := i.w.serves(ctx, s)
		if cert == nil {
			continue
		}
		where := "port " + s.port
		if s.issuer == "" {
			if now := i.w.m.Now(); now.After(cert.NotAfter) {
				i.found = append(i.found, join.Defect{Symptom: symptom.CertificateExpired, Where: where, Warn: true,
					Text: "its certificate was valid until " + cert.NotAfter.UTC().Format("2006-01-02 15:04:05Z") + "; nobody checks it"})
			}
			continue
		}
		i.date(where, cert)
		i.issued(where, cert, s.issuer)
		i.names(where, cert, s.names(i))
	}
}

// handshakeLimit bounds one handshake with a server of this machine.
const handshakeLimit = 1500 * time.Millisecond

// serves is the certificate that a server shows, nil when it shows none. The client ends the handshake as its server wants it, so that no
// server complains in its log.
func (w *measurer) serves(ctx context.Context, s server) *x509.Certificate {
	ctx, cancel := context.WithTimeout(ctx, w.patience*handshakeLimit)
	defer cancel()
	conn, err := w.m.Dial(ctx, "tcp", net.JoinHostPort(s.host, s.port))
	if err != nil {
		return nil
	}
	defer conn.Close()
	var shown *x509.Certificate
	config := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12, VerifyConnection: func(state tls.ConnectionState) error {
		shown = state.PeerCertificates[0]
		return nil
	}}
	if s.client != "" {
		cert, _ := w.m.Read(path.Join(pkiDir, s.client+".crt"))
		key, _ := w.m.Read(path.Join(pkiDir, s.client+".key"))
		if pair, err := tls.X509KeyPair([]byte(cert), []byte(key)); err == nil {
			config.Certificates = []tls.Certificate{pair}
		}
	}
	_ = tls.Client(conn, config).HandshakeContext(ctx) // what it has shown counts
	return shown
}
