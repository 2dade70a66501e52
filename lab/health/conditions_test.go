package health

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/diagnose"
	"k8slab/lab/kube"
	"k8slab/lab/labtest"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// The node is ailing whose probe the others miss, at its address or behind the Service, and none where two are missed at once.
func TestUnreached(t *testing.T) {
	nodes := []config.Node{{Name: "cp1"}, {Name: "w1"}, {Name: "w2"}}
	probes := map[string]kube.Pod{
		"cp1": {Name: "probe-a", IP: "10.244.0.2"}, "w1": {Name: "probe-b", IP: "10.244.1.2"}, "w2": {Name: "probe-c", IP: "10.244.2.2"},
	}
	const service = "by way of the service 10.96.0.9:8080: "
	tests := []struct {
		name    string
		answers [][]string
		want    []string
	}{
		{"all is well", [][]string{{}, {}, {}}, nil},
		{"its address", [][]string{{"10.244.2.2:8080: i/o timeout"}, {"10.244.2.2:8080: i/o timeout"}, {}}, []string{"w2", "w2"}},
		{"behind the Service", [][]string{{service + "probe-c"}, {service + "probe-c"}, {service + "probe-c"}}, []string{"w2", "w2", "w2"}},
		{"one reaches nobody", [][]string{{}, {"10.244.0.2:8080: i/o timeout", "10.244.2.2:8080: i/o timeout"}, {}}, []string{"w1"}},
		{"a way between two", [][]string{{"10.244.1.2:8080: i/o timeout"}, {}, {}}, []string{""}},
		{"no name is known", [][]string{{}, {"lookup " + probeName + " on 10.96.0.10:53: i/o timeout", "10.244.0.2:8080: i/o timeout"}, {}},
			[]string{"w1", "w1 DNS"}},
		{"two are missed", [][]string{{service + "probe-b, probe-c"}, {}, {}}, []string{""}},
	}
	for _, tt := range tests {
		var got []string
		for _, err := range unreached(nodes, tt.answers, probes) {
			a, _ := errors.AsType[diagnose.Ailing](err)
			got = append(got, strings.TrimSpace(a.Node+" "+a.Organ))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Of a cluster that labctl did not make only what every cluster has is wanted: its pod network may be anybody's, and it has no probe.
func TestConditionsOfExisting(t *testing.T) {
	organs := func(source config.Source) (all []string) {
		c := *labtest.Cluster(t, labtest.Three)
		c.Machines = source
		for _, condition := range conditions(&session.Session{Lab: state.Lab{Cluster: &c}}, diagnose.Cluster{}) {
			all = append(all, condition.Organ)
		}
		return all
	}
	if got := organs(config.MachinesSSH); !slices.Equal(got, []string{"API server", "etcd", "node", "pod network", "CoreDNS"}) {
		t.Errorf("of one that exists: %q", got)
	}
	if got := organs(config.MachinesLibvirt); !slices.Equal(got, []string{"API server", "etcd", "node", "pod network", "CoreDNS", "pod network"}) {
		t.Errorf("of a lab: %q", got)
	}
}
