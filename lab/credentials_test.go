package lab

import (
	"errors"
	"strings"
	"testing"

	"k8slab/config"
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
