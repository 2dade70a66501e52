package cluster

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"k8slab/config"
	"k8slab/lab/golden"
	"k8slab/lab/host"
	"k8slab/lab/labtest"
	"k8slab/lab/session"
)

const (
	testToken = "abcdef.0123456789abcdef"
	testKey   = "6bd1a5a1b3a3d8f1e0c9b7a65443322110ffeeddccbbaa99887766554433221f"
	testHash  = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
)

func TestKubeadmDocuments(t *testing.T) {
	tests := []struct {
		name, file, uri string
		documents       func(*session.Session) []any
		golden          string
	}{
		{"init in containers", labtest.Three, host.Containers, func(s *session.Session) []any {
			return initDocuments(s, labtest.Node(t, s.Lab, "cp1"), testToken, testKey)
		}, "init-containers.yaml"},
		{"init in virtual machines", labtest.Onboard, host.VirtualMachines, func(s *session.Session) []any {
			return initDocuments(s, labtest.Node(t, s.Lab, "cp1"), testToken, testKey)
		}, "init-machines.yaml"},
		{"join of a control plane", labtest.Three, host.Containers, func(s *session.Session) []any {
			return joinDocuments(s, labtest.Node(t, s.Lab, "cp2"), testToken, testHash, testKey)
		}, "join-control-plane.yaml"},
		// A worker gets no key, whoever gives one.
		{"join of a worker", labtest.Three, host.VirtualMachines, func(s *session.Session) []any {
			return joinDocuments(s, labtest.Node(t, s.Lab, "w1"), testToken, testHash, testKey)
		}, "join-worker.yaml"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := labtest.Session(t, tt.file)
			s.URI = tt.uri
			text, err := marshal(tt.documents(s))
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, tt.golden, text)
			for _, doc := range strings.Split(text, "---\n")[1:] {
				var o struct{ APIVersion, Kind string }
				if err := yaml.Unmarshal([]byte(doc), &o); err != nil || o.APIVersion == "" || o.Kind == "" {
					t.Errorf("%+v, %v:\n%s", o, err, doc)
				}
			}
			if strings.Contains(tt.name, "worker") && strings.Contains(text, testKey) {
				t.Error("a worker gets the certificate key")
			}
		})
	}
}

// A second one, also one that is still to be onboarded, has controllers of its own.
func TestLoneControlPlane(t *testing.T) {
	s := labtest.Session(t, labtest.Small)
	if !loneControlPlane(s) || loneControlPlane(labtest.Session(t, labtest.Three)) {
		t.Error("one control plane is not lone, or one of three is")
	}
	s.Cluster.Nodes = append(s.Cluster.Nodes, config.Node{Name: "cp2", Role: config.ControlPlane, Onboard: true})
	if loneControlPlane(s) {
		t.Error("with one to be onboarded it is lone")
	}
}

func TestTimeouts(t *testing.T) {
	for _, file := range []string{labtest.Three, labtest.Small} {
		s := labtest.Session(t, file)
		got := timeouts(s)
		var sum time.Duration
		// Timeouts of kubeadm.k8s.io/v1beta4; upgradeManifests has no part in init and join.
		for _, name := range []string{"controlPlaneComponentHealthCheck", "kubeletHealthCheck", "kubernetesAPICall", "etcdAPICall", "tlsBootstrap", "discovery"} {
			text, _ := got[name].(string)
			d, err := time.ParseDuration(text)
			if err != nil || d <= 0 {
				t.Errorf("%s: %q, %v", name, text, err)
			}
			sum += d
		}
		if len(got) != 6 {
			t.Errorf("got %v", got)
		}
		if budget := (&Run{Session: s}).joinBudget(); sum >= budget {
			t.Errorf("%s: kubeadm may take %s, its budget is %s", file, sum, budget)
		}
	}
}

func TestMarshalErrorHasNoSecret(t *testing.T) {
	s := labtest.Session(t, labtest.Three)
	for name, documents := range map[string][]any{
		"init": initDocuments(s, labtest.Node(t, s.Lab, "cp1"), testToken, testKey),
		"join": joinDocuments(s, labtest.Node(t, s.Lab, "cp2"), testToken, testHash, testKey),
	} {
		first := documents[0].(object)
		first["timeouts"] = make(chan int) // nothing that can be written
		_, err := marshal(documents)
		if err == nil || strings.Contains(err.Error(), testKey) || strings.Contains(err.Error(), "0123456789abcdef") {
			t.Errorf("%s: %v, want an error without a secret", name, err)
		}
	}
}

// Some random tokens and keys look like numbers to YAML.
func TestMarshalKeepsText(t *testing.T) {
	s := labtest.Session(t, labtest.Three)
	for _, token := range []string{"123456.1234567890123456", "1e1234.0000000000000000", "012345.6789012345678901"} {
		for _, key := range []string{strings.Repeat("1", 64), "1e" + strings.Repeat("2", 62)} {
			text, err := marshal(joinDocuments(s, labtest.Node(t, s.Lab, "cp2"), token, testHash, key))
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Discovery    struct{ BootstrapToken struct{ Token string } }
				ControlPlane struct{ CertificateKey string }
			}
			if err := yaml.Unmarshal([]byte(text), &got); err != nil || got.Discovery.BootstrapToken.Token != token || got.ControlPlane.CertificateKey != key {
				t.Errorf("got %+v, %v", got, err)
			}
		}
	}
}

func TestNewCertificateKey(t *testing.T) {
	a, err := newCertificateKey()
	if err != nil || len(a) != 64 || strings.Trim(a, "0123456789abcdef") != "" {
		t.Errorf("got %q, %v, want 64 hexadecimal digits", a, err)
	}
	if b, err := newCertificateKey(); err != nil || a == b {
		t.Errorf("twice the same: %v", err)
	}
}

func TestCause(t *testing.T) {
	tests := []struct{ name, out, want string }{
		{"error execution phase", "[init] x\n[kubelet-start] y\nerror execution phase kubelet-start: z\nTo see the stack trace\n",
			"error execution phase kubelet-start: z\nTo see the stack trace"},
		{"preflight", "[preflight] Running\n\t[ERROR Port-6443]: in use\n[preflight] If you know\nerror: x\n",
			"\t[ERROR Port-6443]: in use\n[preflight] If you know\nerror: x"},
		{"plain", "a\nerror: unknown flag\n", "error: unknown flag"},
		{"no error line", "1\n2\n3\n4\n5\n6\n7\n", "3\n4\n5\n6\n7"},
		{"short", "killed\n", "killed"},
		{"nothing", "", ""},
		{"the word inside a line", "[x] no error here\nend\n", "[x] no error here\nend"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := cause(tt.out); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
