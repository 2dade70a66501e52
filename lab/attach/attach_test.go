package attach

import (
	"slices"
	"strings"
	"testing"

	"k8slab/config"
	"k8slab/lab/kube"
	"k8slab/lab/labtest"
)

func TestName(t *testing.T) {
	tests := []struct{ asked, recorded, endpoint, want string }{
		{"", "kubernetes", "k8s.home.lan:6443", "k8s"},
		{"", "prod", "k8s.home.lan:6443", "prod"},
		{"mine", "prod", "k8s.home.lan:6443", "mine"},
		{"", "kubernetes", "192.168.4.60:6443", "home"},
		{"", "", "", "home"},
	}
	for _, tt := range tests {
		if got := name(tt.asked, tt.recorded, tt.endpoint); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}

func TestDiffering(t *testing.T) {
	all := config.SSH{User: "ops", Port: 2222, IdentityFile: "/k", Jump: "gate", Sudo: true}
	tests := []struct {
		name      string
		own, want config.SSH
	}{
		{"the same", config.SSH{Host: "h", User: "ops", Port: 2222, IdentityFile: "/k", Jump: "gate", Sudo: true}, config.SSH{Host: "h"}},
		{"another user", config.SSH{User: "root", Port: 2222}, config.SSH{User: "root"}},
		{"another port and jump host", config.SSH{Port: 22, Jump: "other"}, config.SSH{Port: 22, Jump: "other"}},
		{"another key", config.SSH{IdentityFile: "/own"}, config.SSH{IdentityFile: "/own"}},
	}
	for _, tt := range tests {
		if got := differing(tt.own, all); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
	if got := differing(config.SSH{User: "ops", Sudo: true}, config.SSH{User: "root"}); !got.Sudo || got.User != "ops" {
		t.Errorf("sudo that only this one needs: %+v", got)
	}
}

// home is what the API server of a cluster says.
func home() (kube.ClusterConfiguration, []kube.Node) {
	record := kube.ClusterConfiguration{ClusterName: "kubernetes", KubernetesVersion: "v1.35.4", ControlPlaneEndpoint: "k8s.home.lan"}
	record.Networking.PodSubnet, record.Networking.ServiceSubnet = "10.244.0.0/16", "10.96.0.0/12"
	return record, []kube.Node{
		{Name: "nas", Role: "worker", IP: "192.168.4.71", MachineID: "c"},
		{Name: "cp2", Role: kube.RoleControlPlane, IP: "192.168.4.62", MachineID: "b"},
		{Name: "cp1", Role: kube.RoleControlPlane, IP: "192.168.4.61", MachineID: "a"},
	}
}

// The description has the control planes first, the login of all once, and of a node only what differs. It is a cluster.yaml that can be read.
func TestDescribe(t *testing.T) {
	record, nodes := home()
	o := Options{
		First:  config.SSH{Host: "gate.home.lan", User: "ops", Port: 2222, Sudo: true},
		Logins: map[string]config.SSH{"nas": {Host: "nas.home.lan", User: "root", Port: 2222}},
		Lookup: func(name string) (config.SSH, bool) {
			return config.SSH{Host: "192.168.4.62", User: "ops", IdentityFile: "/k", Sudo: true}, name == "cp2" || name == "nas"
		},
	}
	c := describe(o, record, "calico", nodes, "a")
	if c.Name != "k8s" || c.Network.Endpoint != "k8s.home.lan:6443" || c.Network.CNI != "calico" || c.Kubernetes.Version != "v1.35.4" || c.SSH.Host != "" {
		t.Errorf("%+v", c)
	}
	if got := config.Names(c.Nodes); !slices.Equal(got, []string{"cp1", "cp2", "nas"}) {
		t.Fatalf("nodes %q", got)
	}
	want := []config.SSH{
		{Host: "gate.home.lan"},              // the machine that was logged in to, at another address than its Node's
		{IdentityFile: "/k"},                 // by ~/.ssh/config, whose host is the Node's address
		{Host: "nas.home.lan", User: "root"}, // a login that was named comes before ~/.ssh/config
	}
	for i, n := range c.Nodes {
		if n.SSH != want[i] {
			t.Errorf("%s: %+v, want %+v", n.Name, n.SSH, want[i])
		}
	}
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	again, warnings, err := config.Parse("home.yaml", text)
	if err != nil || len(again.Nodes) != 3 || again.APIEndpoint() != "k8s.home.lan:6443" {
		t.Errorf("%v, %v:\n%s", err, warnings, text)
	}
}

// Without an endpoint of its own a cluster has that of its first control plane, and with one that has a port it is that.
func TestDescribeEndpoint(t *testing.T) {
	for recorded, want := range map[string]string{"": "192.168.4.61:6443", "10.0.0.9:8443": "10.0.0.9:8443", "10.0.0.9": "10.0.0.9:6443"} {
		record, nodes := home()
		record.ControlPlaneEndpoint = recorded
		if got := describe(Options{First: config.SSH{Host: "192.168.4.61"}}, record, "", nodes, "a").APIEndpoint(); got != want {
			t.Errorf("%q: %s, want %s", recorded, got, want)
		}
	}
}

// A cluster is not kept in place of a lab of the same name.
func TestKeep(t *testing.T) {
	record, nodes := home()
	labtest.Own(t)
	f := Found{Cluster: describe(Options{First: config.SSH{Host: "192.168.4.61"}}, record, "", nodes, "a")}
	f.Name = f.Cluster.Name
	for range 2 {
		if err := f.Keep(); err != nil {
			t.Fatal(err)
		}
	}
	made := labtest.Closed(t, labtest.Small)
	if _, err := made.ID(); err != nil {
		t.Fatal(err)
	}
	if err := made.Settle(); err != nil {
		t.Fatal(err)
	}
	f.Cluster.Name, f.Name = made.Cluster.Name, made.Cluster.Name
	if err := f.Keep(); err == nil || !strings.Contains(err.Error(), "another --name") {
		t.Errorf("in place of a lab: %v", err)
	}
}
