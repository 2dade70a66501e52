package join

import (
	"strings"
	"testing"
)

// FuzzCommand reads join commands as people paste them. What a command leaves out, as the API server's address, the environment may give; so
// what is taken is one JoinConfiguration, and what joins has an address and a token.
func FuzzCommand(f *testing.F) {
	credentials := "--token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:" + strings.Repeat("0", 64)
	f.Add("kubeadm join 10.0.0.1:6443 " + credentials)
	f.Add("kubeadm join " + credentials) // completed with MASTER_IP
	f.Add("sudo kubeadm join h:1 --control-plane --certificate-key x \\\n\t--token=")
	f.Fuzz(func(t *testing.T, command string) {
		text, err := ParseCommand(strings.Fields(command))
		if err != nil {
			return
		}
		if _, err := findConfiguration(text); err != nil {
			t.Fatalf("%q became a configuration that is none: %v\n%s", command, err, text)
		}
		_, target, err := ReadConfiguration(text, Environment{ControlPlane: "10.30.0.10"})
		if err == nil && (target.Endpoint == "" || target.Token == "") {
			t.Errorf("%q would join without an address or a token: %+v", command, target)
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
