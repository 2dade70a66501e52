package cluster

import (
	"errors"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/host"
	"k8slab/lab/join"
	"k8slab/lab/labtest"
	"k8slab/lab/node"
)

func TestFirstWithKubeadm(t *testing.T) {
	gone := &node.ExitError{Status: 127, Stderr: "kubeadm: command not found"}
	broken := &node.ExitError{Status: 1, Stderr: "the API server refuses"}
	tests := []struct {
		name    string
		results map[string]error
		asked   string
		err     string
	}{
		{"the first has it", map[string]error{}, "cp1", ""},
		{"the first has lost it", map[string]error{"cp1": gone}, "cp1 cp2", ""},
		{"the first has it and fails", map[string]error{"cp1": broken}, "cp1", "the API server refuses"},
		{"none has it", map[string]error{"cp1": gone, "cp2": errors.Join(gone, nil)}, "cp1 cp2", "kube-binaries-missing: kubeadm is not found on cp1, cp2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var asked []string
			_, err := firstWithKubeadm([]config.Node{{Name: "cp1"}, {Name: "cp2"}}, func(n config.Node) (string, error) {
				asked = append(asked, n.Name)
				return "key", tt.results[n.Name]
			})
			if got := strings.Join(asked, " "); got != tt.asked {
				t.Errorf("asked %s, want %s", got, tt.asked)
			}
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}

func TestJoinCommandText(t *testing.T) {
	s := labtest.Session(t, labtest.Three)
	worker := "kubeadm join 10.30.0.10:6443 --token " + testToken + " --discovery-token-ca-cert-hash " + testHash
	controlPlane := worker + " --control-plane --certificate-key " + testKey
	for uri, ignored := range map[string]string{host.VirtualMachines: "", host.Containers: " --ignore-preflight-errors=SystemVerification,Mem,NumCPU"} {
		s.URI = uri
		for want, key := range map[string]string{worker: "", controlPlane: testKey} {
			got := joinCommand(s, testToken, testHash, key)
			if got != want+ignored {
				t.Errorf("%s: got %s", uri, got)
			}
			words, err := join.SplitCommand(got)
			if err == nil {
				_, err = join.ParseCommand(words)
			}
			if err != nil {
				t.Errorf("%s: labnode join refuses it: %v", uri, err)
			}
		}
	}
	// `up` deletes the tokens that are its own.
	if strings.HasPrefix(joinCommandMark, tokenMark) {
		t.Error("up would delete the tokens of join commands")
	}
}
