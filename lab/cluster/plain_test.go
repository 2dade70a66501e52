package cluster

import (
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/join"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// Only where a machine that exists may not set the limit of tracked connections, kube-proxy is told to leave it.
func TestOwnProxy(t *testing.T) {
	for _, source := range []config.Source{config.MachinesSSH, config.MachinesLibvirt} {
		for _, fixed := range []bool{false, true} {
			s := &session.Session{Lab: state.Lab{Cluster: &config.Cluster{Machines: source}}}
			text, err := New(s, map[string]join.Facts{"cp1": {}, "w1": {FixedConntrack: fixed}}, nil).OwnProxy()
			want := fixed && source == config.MachinesSSH
			if told := strings.Contains(text, "maxPerCore: 0"); err != nil || told != want || (text != "") != want {
				t.Errorf("%s, fixed %t: %v\n%s", source, fixed, err, text)
			}
		}
	}
}
