package join

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"k8slab/lab/symptom"
)

var clusterDefects = []defect{
	{"name that does not resolve", false, clusterShape{}, func(s *scene) { s.target.Endpoint = "api.example.com:6443" }, "endpoint-name", Blocked, symptom.DNSResolutionFailure, "no such host"},
	{"name of this machine", false, clusterShape{}, func(s *scene) { s.named("127.0.1.1") }, "endpoint-name", Blocked, symptom.DNSResolutionFailure, "127.0.1.1"},
	{"name that resolves", false, clusterShape{}, func(s *scene) { s.named("10.30.0.10") }, "endpoint-tls", OK, "", "api.example.com"},
	{"API server refuses", false, clusterShape{}, func(s *scene) { s.target.Endpoint = "10.30.0.12:6443" }, "endpoint-connect", Blocked, symptom.APIServerUnreachable, "refuses connections"},
	{"no route", false, clusterShape{}, func(s *scene) { s.host(testEndpoint, "no route") }, "endpoint-connect", Blocked, symptom.APIServerUnreachable, "no way to"},
	{"nobody answers", false, clusterShape{}, func(s *scene) { s.host(testEndpoint, "silent") }, "endpoint-connect", Blocked, symptom.APIServerUnreachable, "does not answer at all"},
	{"no TLS there", false, clusterShape{}, func(s *scene) { s.host(testEndpoint, plainServer(s.t)) }, "endpoint-tls", Blocked, symptom.APIServerUnreachable, "no TLS"},
	{"accepts and is silent", false, clusterShape{}, func(s *scene) { s.host(testEndpoint, silentServer(s.t)) }, "endpoint-tls", Warn, symptom.APIServerUnreachable, "hangs or is very slow"},
	{"no pin, no token sent", false, clusterShape{}, func(s *scene) { s.target.CACertHashes = nil }, "version", Warn, "", "no CA hash is given, so the token is not sent"},
	{"certificate of another name", false, clusterShape{names: []string{"other.example.com"}}, nil, "endpoint-tls", Blocked, symptom.X509SANMismatch, "10.30.0.10"},
	{"certificate of another CA", false, clusterShape{otherCA: true}, nil, "endpoint-tls", Blocked, symptom.X509UnknownAuthority, "not from the cluster's CA"},
	{"certificate expired", false, clusterShape{from: time.Now().Add(-2 * time.Hour), to: time.Now().Add(-time.Hour)}, nil, "endpoint-tls", Blocked, symptom.CertificateExpired, "was valid"},
	{"clock before the certificate", false, clusterShape{}, func(s *scene) { s.Now = func() time.Time { return time.Now().Add(-3 * time.Hour) } },
		"endpoint-tls", Blocked, symptom.ClockSkew, "here it is"},
	{"clock after the certificate", false, clusterShape{}, func(s *scene) { s.Now = func() time.Time { return time.Now().Add(3 * time.Hour) } },
		"endpoint-tls", Blocked, symptom.ClockSkew, "here it is"},
	{"clock ten minutes behind", false, clusterShape{}, func(s *scene) { s.cluster.set(func() { s.cluster.date = time.Now().Add(10 * time.Minute) }) },
		"clock", Blocked, symptom.ClockSkew, "behind"},
	{"clock a minute ahead", false, clusterShape{}, func(s *scene) { s.cluster.set(func() { s.cluster.date = time.Now().Add(-time.Minute) }) },
		"clock", Warn, symptom.ClockSkew, "ahead of"},
	{"API server unhealthy", false, clusterShape{}, func(s *scene) { s.cluster.set(func() { s.cluster.live = http.StatusInternalServerError }) },
		"endpoint-health", Blocked, symptom.APIServerUnreachable, "500"},
	{"no API server", false, clusterShape{}, func(s *scene) { s.cluster.set(func() { s.cluster.live = http.StatusNotFound }) },
		"endpoint-health", Blocked, symptom.APIServerUnreachable, "not an API server"},
	{"strangers get nothing", false, clusterShape{}, func(s *scene) { s.cluster.set(func() { s.cluster.live = http.StatusUnauthorized }) }, "endpoint-health", OK, "", "401"},
	{"wrong CA hash", false, clusterShape{}, func(s *scene) { s.target.CACertHashes = []string{"sha256:" + strings.Repeat("0", 64)} },
		"ca-hash", Blocked, symptom.CACertHashMismatch, "the cluster's CA has the hash"},
	{"malformed CA hash", false, clusterShape{}, func(s *scene) { s.target.CACertHashes = []string{"sha256:xyz"} }, "ca-hash", Blocked, symptom.CACertHashMismatch, "xyz"},
	{"no CA hash", false, clusterShape{}, func(s *scene) { s.target.CACertHashes = nil }, "ca-hash", Warn, symptom.CACertHashMismatch, "no CA hash"},
	{"no cluster-info", false, clusterShape{}, func(s *scene) { s.cluster.set(func() { s.cluster.info = nil }) }, "bootstrap-token", Blocked, symptom.JoinConfigMissing, "kube-public/cluster-info"},
	{"no kubeadm-config", false, clusterShape{}, func(s *scene) {
		s.cluster.set(func() { delete(s.cluster.objects, "/api/v1/namespaces/kube-system/configmaps/kubeadm-config") })
	}, "bootstrap-token", Blocked, symptom.JoinConfigMissing, "kubeadm-config"},
	{"no kubelet-config", false, clusterShape{}, func(s *scene) {
		s.cluster.set(func() { delete(s.cluster.objects, "/api/v1/namespaces/kube-system/configmaps/kubelet-config") })
	}, "bootstrap-token", Blocked, symptom.JoinConfigMissing, "kubelet-config"},
	{"cluster-info hidden", false, clusterShape{}, func(s *scene) {
		s.cluster.set(func() {
			s.cluster.status["/api/v1/namespaces/kube-public/configmaps/cluster-info"] = http.StatusForbidden
		})
	}, "ca-hash", Blocked, symptom.BootstrapRBACForbidden, "403"},
	{"token expired", false, clusterShape{}, func(s *scene) { s.cluster.sign("zzzzzz.0123456789abcdef") }, "bootstrap-token", Blocked, symptom.TokenExpiredOrInvalid, "not signed"},
	{"token with another secret", false, clusterShape{}, func(s *scene) { s.cluster.sign("abcdef.ffffffffffffffff") }, "bootstrap-token", Blocked, symptom.TokenExpiredOrInvalid, "does not fit"},
	{"token not for authentication", false, clusterShape{}, func(s *scene) { s.refuses(http.StatusUnauthorized) }, "bootstrap-token", Blocked, symptom.TokenExpiredOrInvalid, "401"},
	{"token without rights", false, clusterShape{}, func(s *scene) { s.refuses(http.StatusForbidden) }, "bootstrap-token", Blocked, symptom.BootstrapRBACForbidden, "403"},
	{"old kubeadm", false, clusterShape{}, func(s *scene) { s.answer("/usr/bin/kubeadm version", "v1.35.4\n") }, "version", Blocked, symptom.VersionSkew, "v1.35.4"},
	{"kubelet too new", false, clusterShape{}, func(s *scene) { s.answer("/usr/bin/kubelet --version", "Kubernetes v1.37.0\n") }, "version", Blocked, symptom.VersionSkew, "v1.37.0"},
	{"kubelet two older", false, clusterShape{}, func(s *scene) { s.answer("/usr/bin/kubelet --version", "Kubernetes v1.34.4\n") }, "version", OK, "", "v1.34.4"},
	{"kubelet four older", false, clusterShape{}, func(s *scene) { s.answer("/usr/bin/kubelet --version", "Kubernetes v1.32.0\n") }, "version", Blocked, symptom.VersionSkew, "v1.32.0"},
	{"Node of another machine", false, clusterShape{}, func(s *scene) { s.cluster.node("w1", "f"+testMachineID[1:], "True") },
		"node-name", Blocked, symptom.NodeNameExists, "its machine-id is f123456789abcdef0123456789abcdef, this machine's is " + testMachineID},
	{"Node of this machine", false, clusterShape{}, func(s *scene) { s.cluster.node("w1", testMachineID, "True") }, "node-name", Blocked, symptom.NodeNameExists, "same machine"},
	{"Node of this machine, not ready", false, clusterShape{}, func(s *scene) { s.cluster.node("w1", testMachineID, "Unknown") }, "node-name", OK, "", "taken over"},
	{"Node of another machine, not ready", false, clusterShape{}, func(s *scene) { s.cluster.node("w1", "f"+testMachineID[1:], "Unknown") }, "node-name", Warn, symptom.NodeNameExists, "not Ready"},
	{"no stable endpoint", true, clusterShape{}, func(s *scene) {
		s.cluster.object("/api/v1/namespaces/kube-system/configmaps/kubeadm-config", map[string]any{"data": map[string]string{"ClusterConfiguration": "kubernetesVersion: v1.36.3\n"}})
	}, "control-plane-endpoint", Blocked, symptom.ControlPlaneEndpointMissing, "no stable"},
	{"certificates gone", true, clusterShape{}, func(s *scene) {
		s.cluster.object("/api/v1/namespaces/kube-system/secrets/kubeadm-certs", nil)
	}, "certificate-key", Blocked, symptom.CertificateKeyExpired, "two hours"},
	{"key of an earlier upload", true, clusterShape{}, func(s *scene) { s.target.CertificateKey = strings.Repeat("ab", 32) },
		"certificate-key", Blocked, symptom.CertificateKeyInvalid, "does not decrypt"},
	{"no certificate key", true, clusterShape{}, func(s *scene) { s.target.CertificateKey = "" }, "certificate-key", Blocked, symptom.CertificateKeyExpired, "no certificate key"},
	{"certificates brought by hand", true, clusterShape{}, func(s *scene) {
		s.target.CertificateKey = ""
		s.write("/etc/kubernetes/pki/ca.key", "x")
	}, "certificate-key", OK, "", ""},
	{"peer's etcd unreachable", true, clusterShape{}, func(s *scene) { s.host("10.30.0.11:2380", "no route") }, "etcd-peers", Blocked, symptom.EtcdUnreachable, "10.30.0.11:2380"},
}

// named makes the endpoint a name that resolves to the address.
func (s *scene) named(address string) {
	s.target.Endpoint = "api.example.com:6443"
	s.Lookup = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr(address)}, nil
	}
}

func (s *scene) refuses(status int) {
	s.cluster.set(func() { s.cluster.status["/api/v1/namespaces/kube-system/configmaps/kubeadm-config"] = status })
}

func plainServer(t testing.TB) string {
	t.Helper()
	server := newPlainServer()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// silentServer accepts connections and says nothing.
func silentServer(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}
