package join

import (
	"cmp"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/cluster-bootstrap/token/jws"
)

const (
	testToken    = "abcdef.0123456789abcdef"
	testKey      = "f8902e114ef118304e561c3ecd4d0b543adc226b7a07f675f56564185ffe0c07"
	testEndpoint = "10.30.0.10:6443"
)

// fakeCluster is an API server over real TLS with a CA of its own, as a joining machine sees it.
type fakeCluster struct {
	t      testing.TB
	server *httptest.Server
	ca     *x509.Certificate
	caKey  *ecdsa.PrivateKey
	pin    string

	mu         sync.Mutex
	info       map[string]string // cluster-info's data; nil: there is none
	objects    map[string]any    // by path, for who has the token
	status     map[string]int    // instead of the object
	live       int               // status of /livez
	date       time.Time         // zero: now
	tokensSeen []string
}

// clusterShape is what must be known before the server starts.
type clusterShape struct {
	subject   string   // its common name; "": kube-apiserver
	names     []string // in the certificate; nil: the endpoint's
	addresses []net.IP // in it, instead of the endpoint's
	from, to  time.Time
	otherCA   bool // the server's certificate is from another CA than cluster-info's
}

func newFakeCluster(t testing.TB, shape clusterShape) *fakeCluster {
	t.Helper()
	c := &fakeCluster{t: t, live: http.StatusOK, objects: map[string]any{}, status: map[string]int{}}
	c.ca, c.caKey = newCA(t)
	sum := sha256.Sum256(c.ca.RawSubjectPublicKeyInfo)
	c.pin = "sha256:" + hex.EncodeToString(sum[:])
	signer, signerKey := c.ca, c.caKey
	if shape.otherCA {
		signer, signerKey = newCA(t)
	}
	c.server = httptest.NewUnstartedServer(c)
	c.server.TLS = &tls.Config{Certificates: []tls.Certificate{leaf(t, signer, signerKey, shape)}}
	c.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	c.server.StartTLS()
	t.Cleanup(c.server.Close)
	c.sign(testToken)
	c.object("/api/v1/namespaces/kube-system/configmaps/kubeadm-config", map[string]any{"data": map[string]string{
		"ClusterConfiguration": "kubernetesVersion: v1.36.3\ncontrolPlaneEndpoint: " + testEndpoint + "\nimageRepository: example.com\n",
	}})
	c.kubelet("cgroupDriver: systemd\nfailCgroupV1: false\n")
	c.object("/api/v1/namespaces/kube-system/secrets/kubeadm-certs", map[string]any{"data": map[string]string{
		"ca.key": seal(t, testKey, "a key"), "etcd-ca.key": seal(t, testKey, "another"), "external-etcd.key": "",
	}})
	return c
}

func newCA(t testing.TB) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func leaf(t testing.TB, ca *x509.Certificate, caKey *ecdsa.PrivateKey, shape clusterShape) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: cmp.Or(shape.subject, "kube-apiserver")},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.ParseIP("10.30.0.10")}, DNSNames: []string{"api.example.com"},
	}
	if shape.names != nil {
		template.IPAddresses, template.DNSNames = nil, shape.names
	}
	if shape.addresses != nil {
		template.IPAddresses = shape.addresses
	}
	if !shape.to.IsZero() {
		template.NotBefore, template.NotAfter = shape.from, shape.to
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, ca, &key.PublicKey, caKey)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

// seal encrypts as kubeadm's upload-certs does: AES-256-GCM, the nonce first; and as JSON shows a Secret, in base64.
func seal(t testing.TB, hexKey, text string) string {
	t.Helper()
	key, err := hex.DecodeString(hexKey)
	if err != nil {
		t.Fatal(err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	nonce := make([]byte, gcm.NonceSize())
	_, _ = rand.Read(nonce)
	return base64.StdEncoding.EncodeToString(gcm.Seal(nonce, nonce, []byte(text), nil))
}

// sign makes cluster-info carry a signature of the token, and of no other.
func (c *fakeCluster) sign(token string) {
	c.t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.ca.Raw})
	kubeconfig := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters:\n- name: \"\"\n  cluster:\n    server: https://%s\n    certificate-authority-data: %s\n",
		testEndpoint, base64.StdEncoding.EncodeToString(ca))
	id, secret, _ := strings.Cut(token, ".")
	signature, err := jws.ComputeDetachedSignature(kubeconfig, id, secret)
	if err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.info = map[string]string{"kubeconfig": kubeconfig, "jws-kubeconfig-" + id: signature}
}

func (c *fakeCluster) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

func (c *fakeCluster) object(path string, o any) { c.set(func() { c.objects[path] = o }) }

func (c *fakeCluster) kubelet(yaml string) {
	c.object("/api/v1/namespaces/kube-system/configmaps/kubelet-config", map[string]any{"data": map[string]string{"kubelet": yaml}})
}

func (c *fakeCluster) node(name, machineID, ready string) {
	c.object("/api/v1/nodes/"+name, map[string]any{
		"metadata": map[string]any{"name": name},
		"status": map[string]any{
			"nodeInfo":   map[string]any{"machineID": machineID},
			"conditions": []any{map[string]any{"type": "Ready", "status": ready}},
		},
	})
}

func (c *fakeCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.date.IsZero() {
		w.Header().Set("Date", c.date.UTC().Format(http.TimeFormat))
	}
	authorization := r.Header.Get("Authorization")
	if authorization != "" {
		c.tokensSeen = append(c.tokensSeen, r.URL.Path)
	}
	path := r.URL.Path
	switch {
	case r.Method != http.MethodGet:
		c.t.Errorf("%s %s: preflight changes nothing", r.Method, path)
	case path == "/livez" || path == "/healthz":
		w.WriteHeader(c.live)
		fmt.Fprintln(w, "ok")
	case c.status[path] != 0:
		refuseWith(w, c.status[path])
	case path == "/api/v1/namespaces/kube-public/configmaps/cluster-info" && c.info != nil:
		_ = json.NewEncoder(w).Encode(map[string]any{"data": c.info})
	case strings.HasPrefix(path, "/api/v1/namespaces/kube-public/"):
		refuseWith(w, http.StatusNotFound)
	case authorization != "Bearer "+testToken:
		refuseWith(w, http.StatusUnauthorized)
	case c.objects[path] != nil:
		_ = json.NewEncoder(w).Encode(c.objects[path])
	default:
		refuseWith(w, http.StatusNotFound)
	}
}

func refuseWith(w http.ResponseWriter, status int) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "it said so", "code": status})
}

// join makes the machine reach the cluster at its endpoint, and returns what to join.
func (c *fakeCluster) join(f *fakeMachine, controlPlane bool) Target {
	f.host(testEndpoint, c.server.Listener.Addr().String())
	t := Target{Endpoint: testEndpoint, Token: testToken, CACertHashes: []string{c.pin}, Address: "10.30.0.21", ControlPlane: controlPlane}
	if controlPlane {
		t.CertificateKey = testKey
		t.Peers = []string{"10.30.0.11"}
		f.host("10.30.0.11:2379", c.server.Listener.Addr().String())
		f.host("10.30.0.11:2380", c.server.Listener.Addr().String())
	}
	return t
}

// newPlainServer answers in plain text at a port where TLS is expected.
func newPlainServer() *httptest.Server {
	return httptest.NewServer(http.NotFoundHandler())
}
