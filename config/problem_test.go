package config

import (
	"strings"
	"testing"
)

// plane is a sufficient file on one line: what a test adds starts on line 2.
const plane = "nodes: [{name: cp1, role: control-plane, ip: 10.30.0.11}]\n"

// problemTest gives a file and its problems, without the file's name.
type problemTest struct {
	name, file string
	want       []string
}

func runProblemTests(t *testing.T, tests []problemTest) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Parse("f", []byte(tt.file))
			got := ""
			if err != nil {
				got = err.Error()
			}
			var want []string
			for _, line := range tt.want {
				want = append(want, "f:"+line)
			}
			if want := strings.Join(want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestDocumentProblems(t *testing.T) {
	const empty = " the file is empty; it needs at least nodes with one control plane"
	const keys = "name, machines, ssh, kubernetes, etcd, coredns, containerd, image, libvirt, network, registries, resources, nodes, addons, tuning, onboard"
	const noPlane = "1: nodes: no control plane; give at least one node with role: control-plane"
	runProblemTests(t, []problemTest{
		{"empty", "", []string{empty}},
		{"only comments", "# x\n", []string{empty}},
		{"null", "---\n", []string{empty}},
		{"syntax", plane + "a: b: c\n", []string{"2: not valid YAML at or near this line: mapping values are not allowed in this context"}},
		{"syntax without line", "\tx", []string{" not valid YAML: found character that cannot start any token"}},
		{"two documents", plane + "---\n" + plane, []string{"2: a second document starts here; keep one cluster per file"}},
		{"end marker", plane + "...\n", nil},
		{"list", "[a]", []string{"1: found a list; use a mapping with the keys " + keys}},
		{"text", "a", []string{`1: found the text "a"; use a mapping with the keys ` + keys}},
		{"tagged mapping", "!x {a: b}", []string{"1: found a mapping; use a mapping with the keys " + keys}},
		{"no nodes", "name: a", []string{noPlane}},
		{"null nodes", "nodes: ~", []string{noPlane}},
		{"null values are absent", plane + "name:\nnetwork: {cidr: ~, virtual_ip: null}\nresources:\n", nil},
		{"alias", plane + "name: &a x\nkubernetes: {version: *a}\n", []string{"3: kubernetes.version: aliases are not accepted; write the value out"}},
		{"alias of itself", "nodes: &a [*a]", []string{"1: nodes[0]: aliases are not accepted; write the value out"}},
		{"merge key", plane + "network: &a {}\nresources:\n  <<: *a\n", []string{"4: resources: merge keys (<<) are not accepted; write the keys out"}},
	})
}

func TestKeyProblems(t *testing.T) {
	const network = "accepted keys: cidr, virtual_ip, load_balancer, pod_subnet, service_subnet, cni, uplink, proxy, no_proxy, ca_file, endpoint"
	const node = "accepted keys: name, role, ip, onboard, ssh, kubelet, labels, taints, disks"
	runProblemTests(t, []problemTest{
		// The node is outside the default network: the mistake is the key alone.
		{"near key", "network: {cird: 10.31.0.0/24}\nnodes: [{name: cp1, role: control-plane, ip: 10.31.0.11}]", []string{"1: network.cird: unknown key; did you mean cidr? " + network}},
		{"far key", plane + "network: {mtu: 1450}", []string{"2: network.mtu: unknown key; " + network}},
		{"near required key", "nodes: [{Name: cp1, role: control-plane, ip: 10.30.0.11}]", []string{"1: nodes[0].Name: unknown key; did you mean name? " + node}},
		{"key with a line break", plane + "network: {\"a\\nb\": 1}", []string{`2: network."a\nb": unknown key; ` + network}},
		{"list as key", plane + "network: {[a]: 1}", []string{"2: network: a key must be a plain word; " + network}},
		{"duplicated key", plane + "name: a\n\nname: b\n", []string{"4: name: the key is already on line 2; keep one of them"}},
		{"duplicated section", plane + "network: {}\nnetwork: {cni: x}\n", []string{"3: network: the key is already on line 2; keep one of them"}},
	})
}

func TestTypeProblems(t *testing.T) {
	const text = "use text (in quotes when it looks like a number, date or true/false)"
	const number = "resources: {worker: {cpus: "
	const digits = "; use a whole number in plain digits"
	runProblemTests(t, []problemTest{
		{"number as text", plane + "name: 5", []string{`2: name: found the number "5"; ` + text}},
		{"boolean as text", plane + "name: true", []string{`2: name: found the boolean "true"; ` + text}},
		{"date as text", plane + "name: 2001-02-03", []string{`2: name: found the date "2001-02-03"; ` + text}},
		{"tagged text", plane + "name: !x a", []string{`2: name: found the tagged value "!x a"; ` + text}},
		{"mapping as text", plane + "name: {a: b}", []string{"2: name: found a mapping; " + text}},
		{"quoted number", plane + number + `"2"}}`, []string{`2: resources.worker.cpus: found the text "2"` + digits}},
		{"hexadecimal", plane + number + "0x2}}", []string{`2: resources.worker.cpus: found the number "0x2"` + digits}},
		{"octal", plane + number + "02}}", []string{`2: resources.worker.cpus: found the number "02"` + digits}},
		{"fraction", plane + number + "2.5}}", []string{`2: resources.worker.cpus: found the number "2.5"` + digits}},
		{"huge", plane + number + "99999999999999999999}}", []string{`2: resources.worker.cpus: found the number "99999999999999999999"` + digits}},
		{"yes", "nodes: [{name: cp1, role: control-plane, ip: 10.30.0.11, onboard: yes}]", []string{`1: nodes[0].onboard: found the text "yes"; use true or false`}},
		{"nodes as mapping", "nodes: {name: cp1}", []string{"1: nodes: found a mapping; use a list"}},
		{"node as text", "nodes: [cp1]", []string{`1: nodes[0]: found the text "cp1"; use a mapping with the keys name, role, ip, onboard, ssh, kubelet, labels, taints, disks`}},
		{"network as number", plane + "network: 5", []string{`2: network: found the number "5"; use a mapping with the keys cidr, virtual_ip, load_balancer, pod_subnet, service_subnet, cni, uplink, proxy, no_proxy, ca_file, endpoint`}},
		{"ipv6 address", plane + "network: {virtual_ip: 'fd00::1%a'}", []string{`2: network.virtual_ip: found the text "fd00::1%a"; use an IPv4 address such as 10.30.0.11`}},
		{"ipv6 range", plane + "network: {cidr: 'fd00::/64'}", []string{`2: network.cidr: found the text "fd00::/64"; use an IPv4 range such as 10.30.0.0/24`}},
		{"no prefix length", plane + "network: {cidr: 10.30.0.0}", []string{`2: network.cidr: found the text "10.30.0.0"; use an IPv4 range such as 10.30.0.0/24`}},
		{"address as list", plane + "network: {virtual_ip: []}", []string{"2: network.virtual_ip: found a list; use an IPv4 address such as 10.30.0.11"}},
		{"long text", plane + "network: {virtual_ip: " + strings.Repeat("x", 100) + "}", []string{`2: network.virtual_ip: found the text "` + strings.Repeat("x", 60) + `..."; use an IPv4 address such as 10.30.0.11`}},
	})
}

func TestProblemsInFileOrder(t *testing.T) {
	file := "tuning: {join_max_wait_seconds: 0}\nname: A\nlibvirt: 1\n" + plane
	_, _, err := Parse("f", []byte(file))
	var fields []string
	for _, p := range err.(Problems) {
		fields = append(fields, p.Field)
	}
	if got, want := strings.Join(fields, " "), "tuning.join_max_wait_seconds name libvirt"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
