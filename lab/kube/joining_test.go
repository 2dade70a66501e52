package kube

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"k8s.io/cluster-bootstrap/token/jws"
)

const certificateKey = "f8902e114ef118304e561c3ecd4d0b543adc226b7a07f675f56564185ffe0c07"

func (g *gate) object(t *testing.T, path string, object any) {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	g.answers(path, http.StatusOK, string(raw))
}

func (g *gate) pin() string {
	sum := sha256.Sum256(g.Certificate().RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// clusterInfo serves a cluster-info that is signed with the token, and returns it as a visitor reads it.
func (g *gate) clusterInfo(t *testing.T, token string) ClusterInfo {
	t.Helper()
	kubeconfig := string(kubeconfigFor("https://example.com:6443", g.caPEM()))
	id, secret, _ := strings.Cut(token, ".")
	signature, err := jws.ComputeDetachedSignature(kubeconfig, id, secret)
	if err != nil {
		t.Fatal(err)
	}
	g.object(t, "/api/v1/namespaces/kube-public/configmaps/cluster-info", fields{"data": fields{"kubeconfig": kubeconfig, "jws-kubeconfig-" + id: signature}})
	v := Anonymous("example.com:6443", g.dial)
	defer v.Close()
	info, err := v.ClusterInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestClusterInfoVerify(t *testing.T) {
	info := newGate(t).clusterInfo(t, visitorToken)
	tests := []struct {
		token string
		want  error
	}{
		{visitorToken, nil}, {"abcdef.ffffffffffffffff", ErrBadSignature}, {"zzzzzz.0123456789abcdef", ErrNoSignature},
	}
	for _, tt := range tests {
		if err := info.Verify(tt.token); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
			t.Errorf("%s: %v, want %v", tt.token, err, tt.want)
		}
	}
	if err := info.Verify("nothing"); err == nil || strings.Contains(err.Error(), "nothing") {
		t.Errorf("no token: %v", err)
	}
	forged := info
	forged.kubeconfig += " "
	if err := forged.Verify(visitorToken); !errors.Is(err, ErrBadSignature) {
		t.Errorf("a changed cluster-info: %v", err)
	}
}

func TestClusterInfoPinned(t *testing.T) {
	g := newGate(t)
	info := g.clusterInfo(t, visitorToken)
	other := "sha256:" + strings.Repeat("0", 64)
	for name, pins := range map[string][]string{"the one": {g.pin()}, "one of two": {other, g.pin()}, "in capitals": {"sha256:" + strings.ToUpper(g.pin()[7:])}} {
		if ca, err := info.Pinned(pins); err != nil || string(ca) != string(g.caPEM()) {
			t.Errorf("%s: %q, %v", name, ca, err)
		}
	}
	_, err := info.Pinned([]string{other})
	if failure, ok := errors.AsType[*PinError](err); !ok || failure.Found[0] != g.pin() {
		t.Errorf("another: %v", err)
	}
	for _, pin := range []string{"", "sha256:", "sha256:00", "sha512:" + strings.Repeat("0", 64), strings.Repeat("0", 64), "sha256:" + strings.Repeat("z", 64)} {
		if _, err := info.Pinned([]string{g.pin(), pin}); err == nil {
			t.Errorf("%q was accepted", pin)
		}
	}
	if _, err := (ClusterInfo{}).Pinned([]string{g.pin()}); err == nil {
		t.Error("an empty cluster-info is pinned")
	}
}

func TestDocuments(t *testing.T) {
	g := newGate(t)
	g.object(t, "/api/v1/namespaces/kube-system/configmaps/kubeadm-config", fields{"data": fields{
		"ClusterConfiguration": "apiServer: {}\nkubernetesVersion: v1.36.3\ncontrolPlaneEndpoint: a:6443\nnetworking: {podSubnet: 10.244.0.0/16}\n",
	}})
	g.object(t, "/api/v1/namespaces/kube-system/configmaps/kubelet-config", fields{"data": fields{"kubelet": "cgroupDriver: systemd\nfailSwapOn: false\n"}})
	v, err := WithToken("example.com:6443", g.caPEM(), visitorToken, g.dial)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	cluster, err := v.ClusterConfiguration(t.Context())
	if err != nil || cluster.KubernetesVersion != "v1.36.3" || cluster.ControlPlaneEndpoint != "a:6443" || cluster.Networking.PodSubnet != "10.244.0.0/16" {
		t.Errorf("%+v, %v", cluster, err)
	}
	kubelet, err := v.KubeletConfiguration(t.Context())
	if err != nil || kubelet.CgroupDriver != "systemd" || kubelet.FailSwapOn == nil || *kubelet.FailSwapOn || kubelet.FailCgroupV1 != nil {
		t.Errorf("%+v, %v", kubelet, err)
	}
}

func TestVisitorNode(t *testing.T) {
	g := newGate(t)
	g.object(t, "/api/v1/nodes/w1", fields{"metadata": fields{"name": "w1"}, "status": fields{
		"nodeInfo": fields{"machineID": "m"}, "conditions": []fields{{"type": "Ready", "status": "True"}},
	}})
	g.answers("/api/v1/nodes/w2", http.StatusForbidden, `{"kind":"Status","message":"no right"}`)
	v, err := WithToken("example.com:6443", g.caPEM(), visitorToken, g.dial)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if node, err := v.Node(t.Context(), "w1"); err != nil || !node.Ready || node.MachineID != "m" {
		t.Errorf("%+v, %v", node, err)
	}
	if _, err := v.Node(t.Context(), "w2"); !Refused(err, http.StatusForbidden) || !strings.Contains(err.Error(), "no right") {
		t.Errorf("%v", err)
	}
	if _, err := v.Node(t.Context(), "w3"); !Refused(err, http.StatusNotFound) || Refused(err, http.StatusForbidden) {
		t.Errorf("%v", err)
	}
}

// sealed encrypts as kubeadm does: AES-256-GCM with the nonce first, in a Secret's base64.
func sealed(t *testing.T, key, text string) string {
	t.Helper()
	raw, err := hex.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	block, err := aes.NewCipher(raw)
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

func TestCheckCertificateKey(t *testing.T) {
	other := strings.Repeat("ab", 32)
	tests := []struct {
		name string
		key  string
		data fields
		want error
	}{
		{"fits", certificateKey, fields{"ca.key": sealed(t, certificateKey, "key"), "external-etcd.key": ""}, nil},
		{"of an earlier upload", other, fields{"ca.key": sealed(t, certificateKey, "key")}, ErrWrongKey},
		{"of a part of the upload", certificateKey, fields{"ca.key": sealed(t, certificateKey, "key"), "sa.key": sealed(t, other, "key")}, ErrWrongKey},
		{"no hex", "xyz", nil, ErrWrongKey},
		{"too short", "abcd", nil, ErrWrongKey},
		{"cut upload", certificateKey, fields{"ca.key": "AAAA"}, ErrWrongKey},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := newGate(t)
			g.object(t, "/api/v1/namespaces/kube-system/secrets/kubeadm-certs", fields{"data": tt.data})
			v, err := WithToken("example.com:6443", g.caPEM(), visitorToken, g.dial)
			if err != nil {
				t.Fatal(err)
			}
			defer v.Close()
			err = v.CheckCertificateKey(t.Context(), tt.key)
			if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), tt.key) {
				t.Errorf("it shows the key: %v", err)
			}
		})
	}
	g := newGate(t)
	v, err := WithToken("example.com:6443", g.caPEM(), visitorToken, g.dial)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if err := v.CheckCertificateKey(t.Context(), certificateKey); !Refused(err, http.StatusNotFound) {
		t.Errorf("certificates that are gone: %v", err)
	}
}
