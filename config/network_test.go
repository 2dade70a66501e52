package config

import (
	"strconv"
	"strings"
	"testing"
)

const hosts = "; use an address from 10.30.0.2 to 10.30.0.254"

func TestNetworkProblems(t *testing.T) {
	const cidr, pods, services = "2: network.cidr: ", "2: network.pod_subnet: ", "2: network.service_subnet: "
	const far = "nodes: [{name: cp1, role: control-plane, ip: 10.31.0.11}]\n"
	const share = "; use ranges that share no address"
	runProblemTests(t, []problemTest{
		{"smallest", "network: {cidr: 10.30.0.0/28}\n" + plane, nil},
		{"too small", plane + "network: {cidr: 10.30.0.0/29}", []string{cidr + "/29 is out of range; use a prefix length from /8 to /28"}},
		{"too large", plane + "network: {cidr: 10.0.0.0/7}", []string{cidr + "/7 is out of range; use a prefix length from /8 to /28"}},
		{"host bits", far + "network: {cidr: 10.30.0.5/24}", []string{cidr + "10.30.0.5/24 is an address inside a network; use the network itself, 10.30.0.0/24"}},
		{"loopback", far + "network: {cidr: 127.0.0.0/24}", []string{cidr + "127.0.0.0/24 overlaps 127.0.0.0/8, which is reserved; use a private range such as 10.30.0.0/24"}},
		{"multicast", plane + "network: {pod_subnet: 230.0.0.0/16}", []string{pods + "230.0.0.0/16 overlaps 224.0.0.0/3, which is reserved; use a private range such as 10.30.0.0/24"}},
		{"pods too small", plane + "network: {pod_subnet: 10.244.0.0/25}", []string{pods + "/25 is out of range; use a prefix length from /8 to /24"}},
		{"services too large", plane + "network: {service_subnet: 10.64.0.0/11}", []string{services + "/11 is out of range; use a prefix length from /12 to /28"}},
		{"uplink", plane + "network: {uplink: bridge}", []string{`2: network.uplink: "bridge" is not known; use nat, none or auto`}},
		{"cni", plane + "network: {cni: calico}", []string{`2: network.cni: "calico" is not supported; use flannel`}},
		{"pods over machines", plane + "network: {pod_subnet: 10.30.0.0/16}", []string{pods + "10.30.0.0/16 overlaps network.cidr 10.30.0.0/24 (the default)" + share}},
		{"services over machines", plane + "network: {service_subnet: 10.30.0.0/24}", []string{services + "10.30.0.0/24 overlaps network.cidr 10.30.0.0/24 (the default)" + share}},
		{"services over pods", plane + "network: {service_subnet: 10.244.3.0/24}", []string{services + "10.244.3.0/24 overlaps network.pod_subnet 10.244.0.0/16 (the default)" + share}},
		// The written range is named, and addresses are still checked against it.
		{"machines over default pods", far + "network: {cidr: 10.244.0.0/16}", []string{
			"1: nodes[0].ip: 10.31.0.11 is outside network.cidr 10.244.0.0/16; use an address from 10.244.0.2 to 10.244.255.254",
			cidr + "10.244.0.0/16 overlaps network.pod_subnet 10.244.0.0/16 (the default)" + share,
		}},
	})
}

func TestPodRoom(t *testing.T) {
	file := func(prefix string) string {
		return "network: {pod_subnet: 10.244.0.0/" + prefix + "}\nnodes:\n" +
			"- {name: cp1, role: control-plane, ip: 10.30.0.11}\n" +
			"- {name: w1, role: worker, ip: 10.30.0.21}\n" +
			"- {name: w2, role: worker, ip: 10.30.0.22, onboard: true}\n"
	}
	runProblemTests(t, []problemTest{
		{"enough", file("22"), nil},
		{"not enough", file("23"), []string{"1: network.pod_subnet: 10.244.0.0/23 has room for 2 nodes of a /24 each, and there are 3 nodes; use a /22 or larger"}},
	})
}

func TestVirtualIPProblems(t *testing.T) {
	const vip = "2: network.virtual_ip: "
	const cidr = " network.cidr 10.30.0.0/24 (the default)" + hosts
	runProblemTests(t, []problemTest{
		{"outside", plane + "network: {virtual_ip: 10.31.0.10}", []string{vip + "10.31.0.10 is outside" + cidr}},
		{"network", plane + "network: {virtual_ip: 10.30.0.0}", []string{vip + "10.30.0.0 is the network address of" + cidr}},
		{"broadcast", plane + "network: {virtual_ip: 10.30.0.255}", []string{vip + "10.30.0.255 is the broadcast address of" + cidr}},
		{"gateway", plane + "network: {virtual_ip: 10.30.0.1}", []string{vip + "10.30.0.1 is the gateway of" + cidr}},
		{"a node's", plane + "network: {virtual_ip: 10.30.0.11}", []string{"1: nodes[0].ip: 10.30.0.11 is network.virtual_ip, which no node may have; use another address"}},
		{"default is a node's", strings.Replace(plane, "0.11", "0.10", 1), []string{"1: nodes[0].ip: 10.30.0.10 is network.virtual_ip (the default), which no node may have; use another address"}},
	})
}

func TestNodeProblems(t *testing.T) {
	nodes := func(second string) string {
		return "nodes:\n- {name: cp1, role: control-plane, ip: 10.30.0.11}\n- {" + second + "}\n"
	}
	const cidr = " network.cidr 10.30.0.0/24 (the default)" + hosts
	runProblemTests(t, []problemTest{
		{"everything missing", nodes(""), []string{
			"3: nodes[1].name: missing; give the node a name such as cp1",
			"3: nodes[1].role: missing; use control-plane or worker",
		}},
		{"missing with a bad network", "network: {cidr: x}\n" + nodes("name: w1, role: worker"), []string{
			`1: network.cidr: found the text "x"; use an IPv4 range such as 10.30.0.0/24`,
		}},
		{"unknown role", nodes("name: w1, role: master, ip: 10.30.0.21"), []string{`3: nodes[1].role: "master" is not a role; use control-plane or worker`}},
		{"outside", nodes("name: w1, role: worker, ip: 10.31.0.5"), []string{"3: nodes[1].ip: 10.31.0.5 is outside" + cidr}},
		{"gateway", nodes("name: w1, role: worker, ip: 10.30.0.1"), []string{"3: nodes[1].ip: 10.30.0.1 is the gateway of" + cidr}},
		{"broadcast", nodes("name: w1, role: worker, ip: 10.30.0.255"), []string{"3: nodes[1].ip: 10.30.0.255 is the broadcast address of" + cidr}},
		{"same name", nodes("name: cp1, role: worker, ip: 10.30.0.21"), []string{`3: nodes[1].name: "cp1" is already nodes[0].name on line 2; give each node its own name`}},
		{"same address", nodes("name: w1, role: worker, ip: 10.30.0.11"), []string{"3: nodes[1].ip: 10.30.0.11 is already nodes[0].ip on line 2; give each node its own address"}},
		{"no control plane", "nodes: [{name: w1, role: worker, ip: 10.30.0.21}]", []string{"1: nodes: no control plane; give at least one node with role: control-plane"}},
		{"control plane with a bad role", "nodes: [{name: cp1, role: cp, ip: 10.30.0.11}]", []string{`1: nodes[0].role: "cp" is not a role; use control-plane or worker`}},
		{"only control plane onboard", "nodes: [{name: cp1, role: control-plane, ip: 10.30.0.11, onboard: true}]", []string{
			"1: nodes[0].onboard: true on the only control plane leaves none to start the cluster with; use false, or add a control plane without it",
		}},
	})
}

func TestDefaultVirtualIP(t *testing.T) {
	tests := []struct{ name, want string }{
		{"10.30.0.0/28", "10.30.0.10"},
		{"172.16.0.0/12", "172.16.0.10"},
		{"192.168.7.16/28", "192.168.7.26"},
	}
	for _, tt := range tests {
		base := tt.name[:strings.LastIndex(tt.name, ".")+1]
		last, _, _ := strings.Cut(tt.name[len(base):], "/")
		number, _ := strconv.Atoi(last)
		node := base + strconv.Itoa(number+2)
		c, _, err := Parse("f", []byte("network: {cidr: "+tt.name+"}\nnodes: [{name: a, role: control-plane, ip: "+node+"}]"))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		} else if got := c.Network.VirtualIP.String(); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}
