package config

import (
	"strings"
	"testing"
)

func TestLoadBalancerPool(t *testing.T) {
	const two = "- {name: cp1, role: control-plane}\n- {name: w1, role: worker, ip: IP}\n"
	for _, tt := range []struct{ name, network, ip, want string }{
		{"the default", "", "10.30.0.21", "10.30.0.240-10.30.0.254"},
		{"in a small network", "cidr: 10.9.0.0/28", "10.9.0.2", "10.9.0.12-10.9.0.14"},
		{"in a large network", "cidr: 10.9.0.0/16", "10.9.0.2", "10.9.255.240-10.9.255.254"},
		{"around a machine", "", "10.30.0.250", "10.30.0.240-10.30.0.249 10.30.0.251-10.30.0.254"},
		{"around the virtual IP", "virtual_ip: 10.30.0.241", "10.30.0.254", "10.30.0.240-10.30.0.240 10.30.0.242-10.30.0.253"},
		{"from the beginning", "load_balancer: 10.30.0.0/29", "10.30.0.21", "10.30.0.2-10.30.0.7"},
		{"one", "load_balancer: 10.30.0.200/32", "10.30.0.21", "10.30.0.200-10.30.0.200"},
		{"none", "load_balancer: 10.30.0.21/32", "10.30.0.21", ""},
	} {
		c := addressed(t, tt.network, strings.ReplaceAll(two, "IP", tt.ip))
		if got := strings.Join(c.LoadBalancerPool(), " "); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestLoadBalancerProblems(t *testing.T) {
	const field = "2: network.load_balancer: "
	runProblemTests(t, []problemTest{
		{"inside", plane + "network: {load_balancer: 10.30.0.128/25}", nil},
		{"an address", plane + "network: {load_balancer: 10.30.0.241/28}", []string{field + "10.30.0.241/28 is an address inside a range; use the range itself, 10.30.0.240/28"}},
		{"outside", plane + "network: {load_balancer: 10.31.0.240/28}",
			[]string{field + "10.31.0.240/28 is not inside network.cidr 10.30.0.0/24 (the default); use a part of it, such as 10.30.0.240/28"}},
		{"larger", plane + "network: {load_balancer: 10.30.0.0/16}",
			[]string{field + "10.30.0.0/16 is not inside network.cidr 10.30.0.0/24 (the default); use a part of it, such as 10.30.0.240/28"}},
		{"too large", plane + "network: {cidr: 10.30.0.0/16, load_balancer: 10.30.128.0/17}", []string{field + "/17 is more than a lab needs; use a prefix length from /20 to /32"}},
		{"no range", plane + "network: {load_balancer: 10.30.0.240-10.30.0.250}",
			[]string{field + `found the text "10.30.0.240-10.30.0.250"; use an IPv4 range such as 10.30.0.0/24`}},
	})
}
