package config

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// there is a sufficient file of a cluster that exists, on one line: what a test adds starts on line 2.
const there = "{machines: ssh, kubernetes: {version: v1.35.4}, nodes: [{name: cp1, role: control-plane, ip: 192.168.4.61}]}\n"

// thereWith is such a file, with more in the cluster, its network, its Kubernetes or its only node.
func thereWith(cluster, network, kubernetes, node string) string {
	return "machines: ssh\n" + cluster + "\nnetwork: {" + network + "}\nkubernetes: {" + kubernetes + "}\n" +
		"nodes: [{name: cp1, role: control-plane, " + node + "}]\n"
}

func existing(t *testing.T, file string) *Cluster {
	t.Helper()
	c, _, err := Parse("f", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestExistingCluster(t *testing.T) {
	c := load(t, "testdata/existing.yaml")
	if !c.OverSSH() || c.Network.Auto || c.Network.CIDR.IsValid() || c.Network.VirtualIP.IsValid() || c.Network.CNI != "" || c.Libvirt != (Libvirt{}) {
		t.Errorf("something was assumed: %+v", c)
	}
	if got, want := c.APIEndpoint(), "k8s.home.lan:6443"; got != want {
		t.Errorf("endpoint %s, want %s", got, want)
	}
	for name, want := range map[string]SSH{
		"cp1":  {Host: "192.168.4.61", Port: 2222, User: "ops", IdentityFile: "~/.ssh/id_ed25519", Jump: "ops@gate.home:22", Sudo: true},
		"gate": {Host: "192.168.4.1", Port: 2222, User: "ops", IdentityFile: "/root/key", Sudo: true, KeepLabnode: true},
		"nas":  {Host: "nas.home.lan", Port: 22, User: "root", IdentityFile: "~/.ssh/id_ed25519", Jump: "ops@gate.home:22"},
		"far":  {Host: "127.0.0.1", Port: 10022, User: "ops", IdentityFile: "~/.ssh/id_ed25519", Jump: "a@b,c:2", Sudo: true},
	} {
		if n, _ := c.Node(name); c.Login(n) != want {
			t.Errorf("%s: got %+v, want %+v", name, c.Login(n), want)
		}
	}
	if n, _ := c.Node("gate"); n.IP.String() != "192.168.4.1" || n.Auto {
		t.Errorf("the address of the SSH server was not taken: %+v", n)
	}
	if got := existing(t, there).APIEndpoint(); got != "192.168.4.61:6443" {
		t.Errorf("endpoint %s, want the control plane's", got)
	}
	if got := existing(t, thereWith("", "virtual_ip: 192.168.4.60", "version: v1.31.0", "ip: 192.168.4.61")).APIEndpoint(); got != "192.168.4.60:6443" {
		t.Errorf("endpoint %s, want the virtual IP's", got)
	}
	c = load(t, "testdata/small.yaml")
	if n, _ := c.Node("w1"); c.OverSSH() || c.Login(n).Address() != "10.31.0.21:22" || c.APIEndpoint() != "10.31.0.10:6443" {
		t.Errorf("with libvirt: %+v, %s", c.Login(n), c.APIEndpoint())
	}
}

func TestMachinesProblems(t *testing.T) {
	const not = "not with machines: ssh: "
	const only = "only with machines: ssh; labctl makes these machines and knows how to reach them, so remove it or add machines: ssh"
	runProblemTests(t, []problemTest{
		{"libvirt", plane + "machines: libvirt", nil},
		{"unknown, and no consequences", "machines: shh\nssh: {user: x}\nnetwork: {virtual_ip: 10.9.0.1}\nnodes: [{name: cp1, role: control-plane, ip: 10.1.0.1}]",
			[]string{`1: machines: "shh" is not known; use libvirt (labctl makes the machines) or ssh (they exist)`}},
		{"mistyped, and no consequences", "machine: ssh\nnodes: [{name: cp1, role: control-plane, ip: 10.1.0.1, ssh: {user: x}}]", []string{
			"1: machine: unknown key; did you mean machines? accepted keys: " +
				"name, machines, ssh, kubernetes, etcd, coredns, containerd, image, libvirt, network, registries, resources, nodes, addons, tuning, onboard"}},
		{"keys of ssh", "ssh: {user: ops}\nnetwork:\n  endpoint: a:1\nnodes:\n- {name: cp1, role: control-plane}\n- {name: w1, role: worker, ssh: {port: 1}}\n",
			[]string{"1: ssh: " + only, "3: network.endpoint: " + only, "6: nodes[1].ssh: " + only}},
		{"keys of libvirt", there[:len(there)-2] + ",\nimage: {}, libvirt: {uri: x},\nresources: {worker: {cpus: 0}},\naddons: [git], network: {cidr: auto}}\n", []string{
			"2: image: " + not + "labctl does not make these machines, and they have a system already; remove it",
			"2: libvirt: " + not + "labctl does not make these machines, and asks no libvirt for them; remove it",
			"3: resources: " + not + "labctl does not make these machines, and they have their size already; remove it",
			"4: network.cidr: " + not + "labctl does not make these machines, and they have a network already; remove it",
			"4: addons: " + not + "what runs in a cluster that labctl did not make is its owner's choice; remove it",
		}},
		{"source", thereWith("", "", "version: v1.37.0, source: modules", "ip: 10.1.0.1"), []string{
			"4: kubernetes.source: " + not + "labctl puts no Kubernetes of its own on machines that it did not make; remove it"}},
		{"no version", "machines: ssh\nnodes: [{name: cp1, role: control-plane, ip: 10.1.0.1}]", []string{
			"1: kubernetes.version: missing; write the version of the API servers, such as v1.37.2: with machines: ssh there is no default"}},
		{"empty version", thereWith("", "", "version: ~", "ip: 10.1.0.1"), []string{
			`4: kubernetes.version: "" is not a version; use vMAJOR.MINOR.PATCH, such as v1.37.2`}},
	})
}

func TestExistingNetworkProblems(t *testing.T) {
	network := func(text string) string { return thereWith("", text, "version: v1.37.2", "ip: 192.168.4.61") }
	const form = " is not HOST:PORT; use an IPv4 address or a DNS name, and a port, such as k8s.home.lan:6443"
	const known = "; use the address that the cluster's machines know"
	runProblemTests(t, []problemTest{
		{"as it is", network("pod_subnet: 10.96.0.0/25, service_subnet: 10.96.0.0/12, virtual_ip: 10.0.0.7, cni: cilium, endpoint: 10.0.0.7:8443"), nil},
		{"every problem", network("pod_subnet: 10.0.0.1/8, service_subnet: 10.0.0.0/8, virtual_ip: 224.0.0.1, cni: Calico!, endpoint: k8s"), []string{
			"3: network.pod_subnet: 10.0.0.1/8 is an address inside a network; use the network itself, 10.0.0.0/8",
			"3: network.service_subnet: /8 is out of range; use a prefix length from /12 to /28",
			`3: network.cni: "Calico!" is not a valid name: use lowercase letters, digits and inner dashes, at most 63 characters`,
			"3: network.virtual_ip: 224.0.0.1 is in 224.0.0.0/3, which is reserved" + known,
			`3: network.endpoint: "k8s"` + form,
		}},
		{"user in the endpoint", network("endpoint: 'a@b:1'"), []string{`3: network.endpoint: "a@b:1"` + form}},
		{"mistyped address in the endpoint", network("endpoint: '10.0.0.300:1'"), []string{`3: network.endpoint: "10.0.0.300:1"` + form}},
		{"a node's virtual IP", network("virtual_ip: 192.168.4.61"), []string{
			"5: nodes[0].ip: 192.168.4.61 is network.virtual_ip, which no node may have; use another address"}},
	})
}

func TestExistingNodeProblems(t *testing.T) {
	const missing = "5: nodes[0].ip: missing; write the IPv4 address"
	const says = " that the cluster knows the node by: ssh.host %q only says where its SSH server is"
	const login = ` is not the name of a login: use letters, digits and . _ @ + - inside`
	const nodeName = " is not the name of a Node: use lowercase letters, digits, inner dashes and inner dots"
	const jump = "; use [USER@]HOST[:PORT], several with commas between them, or none"
	node := func(text string) string { return thereWith("", "", "version: v1.37.2", text) }
	runProblemTests(t, []problemTest{
		{"nothing", node(""), []string{missing + " of the node"}},
		{"Nodes' names with a domain", node("ip: 10.1.0.1}, {name: nas.home.lan, role: worker, ip: 10.1.0.7"), nil},
		{"no Nodes' names", node("ip: 10.1.0.1}, {name: nas..lan, role: worker, ip: 10.1.0.7}, {name: a/b, role: worker, ip: 10.1.0.8"), []string{
			`5: nodes[1].name: "nas..lan"` + nodeName, `5: nodes[2].name: "a/b"` + nodeName}},
		{"to be onboarded", node("ip: 10.1.0.1}, {name: w1, role: worker, ip: 10.1.0.7, onboard: true"), []string{
			"5: nodes[1].onboard: not with machines: ssh: any of these nodes can be onboarded; remove it"}},
		{"a name", node("ssh: {host: nas.home}"), []string{missing + fmt.Sprintf(says, "nas.home")}},
		{"loopback", node("ssh: {host: 127.0.0.1}"), []string{missing + fmt.Sprintf(says, "127.0.0.1")}},
		{"loopback leads to it", node("ip: 10.1.0.1, ssh: {host: 127.0.0.1, port: 65535, jump: none}"), nil},
		{"no address of its own", node("ip: 127.0.0.1"), []string{
			"5: nodes[0].ip: 127.0.0.1 is in 127.0.0.0/8, which is reserved; use the address that the cluster's machines know"}},
		{"multicast by its host", node("ssh: {host: 230.1.1.1}"), []string{
			"5: nodes[0].ip: 230.1.1.1 is in 224.0.0.0/3, which is reserved; use the address that the cluster's machines know"}},
		{"same address", node("ip: 10.1.0.1}, {name: w1, role: worker, ssh: {host: 10.1.0.1}"), []string{
			"5: nodes[1].ip: 10.1.0.1 is already nodes[0].ip on line 5; give each node its own address"}},
		{"every problem", node(`ssh: {host: -oProxyCommand=x, port: 65536, user: "a b", identity_file: key, jump: "a,-b"}`), []string{
			`5: nodes[0].ssh.host: "-oProxyCommand=x" is not an IPv4 address or a DNS name`,
			`5: nodes[0].ssh.user: "a b"` + login,
			`5: nodes[0].ssh.identity_file: "key" is not the file of a private key; use an absolute path, or one that begins with ~/`,
			"5: nodes[0].ssh.port: 65536 is out of range; use 1 to 65535 for a port",
			`5: nodes[0].ssh.jump: the host "-b" is not an IPv4 address or a DNS name` + jump,
		}},
		{"of all nodes", thereWith(`ssh: {host: a, port: 0, user: -l, identity_file: "~/a\nb", jump: "me:secret@far"}`, "", "version: v1.37.2", "ip: 10.1.0.1"), []string{
			"2: ssh.host: every machine has its own; write it into the ssh section of the node",
			`2: ssh.user: "-l"` + login,
			`2: ssh.identity_file: "~/a\nb" is not the file of a private key; use an absolute path, or one that begins with ~/`,
			"2: ssh.port: 0 is out of range; use 1 to 65535 for a port",
			"2: ssh.jump: what is in front of the @ is not the name of a login" + jump,
		}},
	})
	_, warnings, err := Parse("f", []byte(node("ip: 10.1.0.1}, {name: cp2, role: control-plane, ip: 10.1.0.2")))
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0].Message, "no safer than 1") {
		t.Errorf("two control planes: %v, %v", warnings, err)
	}
}

func TestParseLogin(t *testing.T) {
	for text, want := range map[string]string{
		"nas":                    "|nas|0|",
		"192.168.4.1":            "|192.168.4.1|0|",
		"ops@nas.home.lan":       "ops|nas.home.lan|0|",
		"ops@home.lan@10.0.0.1":  "ops@home.lan|10.0.0.1|0|",
		"ops@nas:2222":           "ops|nas|2222|",
		"":                       `||0|the host "" is not an IPv4 address or a DNS name`,
		"@nas":                   "||0|what is in front of the @ is not the name of a login",
		"-o@nas":                 "||0|what is in front of the @ is not the name of a login",
		"a b@nas":                "||0|what is in front of the @ is not the name of a login",
		"me:secret@nas":          "||0|what is in front of the @ is not the name of a login",
		"me@-nas":                `||0|the host "-nas" is not an IPv4 address or a DNS name`,
		"nas ":                   `||0|the host "nas " is not an IPv4 address or a DNS name`,
		"nas\n":                  `||0|the host "nas\n" is not an IPv4 address or a DNS name`,
		"$(id)":                  `||0|the host "$(id)" is not an IPv4 address or a DNS name`,
		"a..b":                   `||0|the host "a..b" is not an IPv4 address or a DNS name`,
		"10.0.0.300":             `||0|the host "10.0.0.300" is not an IPv4 address or a DNS name`,
		"[::1]:22":               `||0|the host "[" is not an IPv4 address or a DNS name`,
		strings.Repeat("a", 254): `||0|the host "` + strings.Repeat("a", 60) + `..." is not an IPv4 address or a DNS name`,
		"nas:":                   `||0|the port "" is not a number from 1 to 65535`,
		"nas:0":                  `||0|the port "0" is not a number from 1 to 65535`,
		"nas:022":                `||0|the port "022" is not a number from 1 to 65535`,
		"nas:65536":              `||0|the port "65536" is not a number from 1 to 65535`,
	} {
		user, host, port, err := ParseLogin(text)
		got := fmt.Sprintf("%s|%s|%d|", user, host, port)
		if err != nil {
			got += err.Error()
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

// What is written for a person is read as the same cluster.
func TestReadableYAML(t *testing.T) {
	for _, path := range []string{"testdata/existing.yaml", "testdata/existing-least.yaml"} {
		c := load(t, path)
		text, err := c.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if want, err := os.ReadFile(strings.Replace(path, ".yaml", ".golden", 1)); err != nil || string(text) != string(want) {
			t.Errorf("%v: got\n%swant\n%s", err, text, want)
		}
		if again, _, err := Parse("again", text); err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%v\ngot  %+v\nwant %+v\n%s", err, again, c, text)
		}
	}
}

// What labctl writes of machines that it makes has no word of those that exist: an older labctl reads it too.
func TestYAMLOfLibvirt(t *testing.T) {
	c := load(t, "testdata/onboard.yaml")
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"machines:", "ssh:", "endpoint:"} {
		if strings.Contains(string(text), key) {
			t.Errorf("%s is in\n%s", key, text)
		}
	}
	if c.Machines != MachinesLibvirt {
		t.Errorf("YAML has changed the cluster: machines %q", c.Machines)
	}
}

// A fleet fits, with all that a node can say about its login, and a line for each setting.
func TestManyNodes(t *testing.T) {
	c := existing(t, there)
	ip := c.Nodes[0].IP
	for i := range 499 {
		ip = ip.Next()
		name := fmt.Sprintf("worker-%03d-rack-17", i)
		c.Nodes = append(c.Nodes, Node{Name: name, Role: Worker, IP: ip, SSH: SSH{
			Host: name + ".machines.example.internal", Port: 22222, User: "administrator", IdentityFile: "/home/administrator/.ssh/id_ed25519",
			Jump: "administrator@gate-1.example.internal:22222,administrator@gate-2.example.internal:22222", Sudo: true, KeepLabnode: true,
		}})
	}
	nodes, err := yaml.Marshal(map[string][]Node{"nodes": c.Nodes})
	if err != nil {
		t.Fatal(err)
	}
	text := "machines: ssh\nkubernetes: {version: v1.35.4}\n" + string(nodes)
	if again, _, err := Parse("f", []byte(text)); err != nil || !reflect.DeepEqual(again, c) {
		t.Errorf("%d bytes of at most %d: %v", len(text), maxSize, err)
	}
	t.Logf("%d bytes of at most %d", len(text), maxSize)
}
