package join

import (
	"strings"
	"testing"
)

// FuzzCommand reads join commands as people paste them.
func FuzzCommand(f *testing.F) {
	f.Add("kubeadm join 10.0.0.1:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:" + strings.Repeat("0", 64))
	f.Add("sudo kubeadm join h:1 --control-plane --certificate-key x \\\n\t--token=")
	f.Fuzz(func(t *testing.T, command string) {
		text, err := ParseCommand(strings.Fields(command))
		if err != nil {
			return
		}
		if _, err := ParseConfig(text); err != nil {
			t.Errorf("%q became a configuration that is none: %v\n%s", command, err, text)
		}
	})
}

// FuzzLine reads events and outcomes as a node says them.
func FuzzLine(f *testing.F) {
	f.Add([]byte(`{"phase":"kubeadm","state":"progress","detail":"x"}`))
	f.Add([]byte(`{"outcome":{"joined":true}}`))
	f.Fuzz(func(_ *testing.T, line []byte) {
		_, _, _ = ParseLine(line)
	})
}
