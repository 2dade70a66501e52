package join

import (
	"reflect"
	"strings"
	"testing"
)

const workerConfig = `---
apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken:
    apiServerEndpoint: 10.30.0.10:6443
    caCertHashes: [sha256:0000000000000000000000000000000000000000000000000000000000000000]
    token: abcdef.0123456789abcdef
nodeRegistration:
  name: w1
  criSocket: unix:///run/containerd/containerd.sock
  imagePullPolicy: IfNotPresent
  ignorePreflightErrors: [Mem, NumCPU]
  kubeletExtraArgs:
  - {name: v, value: "2"}
  - {name: node-ip, value: 10.30.0.21}
timeouts: {discovery: 1m0s}
`

const controlPlaneConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
--- # what follows is kubeadm's
apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
controlPlane:
  certificateKey: ` + testKey + `
  localAPIEndpoint: {advertiseAddress: 10.30.0.12, bindPort: 6443}
discovery:
  bootstrapToken: {apiServerEndpoint: "api.example.com:6443", token: abcdef.0123456789abcdef, unsafeSkipCAVerification: true}
nodeRegistration:
  taints: []
`

func TestParseConfig(t *testing.T) {
	tests := []struct {
		name, text string
		want       Target
	}{
		{"worker", workerConfig, Target{
			Name: "w1", Endpoint: "10.30.0.10:6443", Token: testToken, CACertHashes: []string{"sha256:" + strings.Repeat("0", 64)},
			Address: "10.30.0.21", CRISocket: "unix:///run/containerd/containerd.sock", Ignore: []string{"Mem", "NumCPU"}, ImagePullPolicy: "IfNotPresent",
		}},
		{"control plane", controlPlaneConfig, Target{
			ControlPlane: true, Endpoint: "api.example.com:6443", Token: testToken, CertificateKey: testKey, Address: "10.30.0.12",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseConfig([]byte(tt.text))
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, %v\nwant %+v", got, err, tt.want)
			}
		})
	}
}

func TestParseConfigRefuses(t *testing.T) {
	tests := []struct {
		name, from, to string
		want           []string
	}{
		{"discovery by file", "  bootstrapToken:\n", "  file: {kubeConfigPath: /x}\n  bootstrapToken:\n", []string{"discovery.file is not supported"}},
		{"no discovery", "discovery:", "other:", []string{"discovery.bootstrapToken is missing"}},
		{"an older version", "kubeadm.k8s.io/v1beta4", "kubeadm.k8s.io/v1beta3", []string{"v1beta3", "kubeadm config migrate"}},
		{"no JoinConfiguration", "kind: JoinConfiguration", "kind: InitConfiguration", []string{"no JoinConfiguration"}},
		{"two of them", "timeouts: {discovery: 1m0s}\n", workerConfig, []string{"more than one"}},
		{"all at once", "token: abcdef.0123456789abcdef\nnode", "token: abcdef.0123456789ABCDEF\nnode", []string{"bootstrap token"}},
		{"endpoint", "10.30.0.10:6443", "10.30.0.10", []string{"HOST:PORT"}},
		{"address", "10.30.0.21", "10.30.0.321", []string{"10.30.0.321"}},
		{"socket", "unix:///run/containerd", "tcp://1.2.3.4/run/containerd", []string{"unix:///PATH"}},
		{"empty token and endpoint", "token: abcdef.0123456789abcdef", "token: ''", []string{"token is empty"}},
		{"no YAML", "discovery:", "\tdiscovery: [", []string{"not YAML"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.ReplaceAll(workerConfig, tt.from, tt.to)
			if text == workerConfig {
				t.Fatal("nothing was replaced")
			}
			_, err := ParseConfig([]byte(text))
			if err == nil {
				t.Fatal("it was accepted")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
			if strings.Contains(strings.ToLower(err.Error()), "0123456789abcdef") {
				t.Errorf("it shows the token: %v", err)
			}
		})
	}
}

func TestValidateReportsAllAtOnce(t *testing.T) {
	err := Target{Endpoint: "x", Token: "y", CertificateKey: "z", Address: "a", Peers: []string{"b"}, CRISocket: "c"}.Validate()
	for _, want := range []string{"endpoint", "token", "certificate key", "address", "peer", "CRI socket"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	if err := (Target{}).Validate(); err != nil {
		t.Errorf("nothing is wrong with nothing: %v", err)
	}
}
