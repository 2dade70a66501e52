package config

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// notWithSSH are the keys that describe what labctl makes, and why a file with
// machines: ssh cannot have them.
var notWithSSH = []struct{ field, why string }{
	{"kubernetes.source", "labctl puts no Kubernetes of its own on machines that it did not make"},
	{"kubernetes.release", "labctl puts no Kubernetes of its own on machines that it did not make"},
	{"kubernetes.programs", "labctl puts no Kubernetes of its own on machines that it did not make"},
	{"etcd", "labctl puts no programs of its own on machines that it did not make"},
	{"coredns", "labctl puts no programs of its own on machines that it did not make"},
	{"containerd", "labctl puts no programs of its own on machines that it did not make"},
	{"kubernetes.feature_gates", "labctl does not set up these machines, and the cluster has its own settings"},
	{"kubernetes.kubeadm", "labctl does not set up these machines, and the cluster has its own settings"},
	{"image", "labctl does not make these machines, and they have a system already"},
	{"libvirt", "labctl does not make these machines, and asks no libvirt for them"},
	{"network.uplink", "labctl does not make these machines, and they have a network already"},
	{"network.cidr", "labctl does not make these machines, and they have a network already"},
	{"registries", "labctl does not configure the runtime of machines that it did not make"},
	{"network.load_balancer", "labctl installs no add-ons there"},
	{"network.proxy", "labctl does not configure the runtime of machines that it did not make"},
	{"network.no_proxy", "labctl does not configure the runtime of machines that it did not make"},
	{"network.ca_file", "labctl does not configure the runtime of machines that it did not make"},
	{"resources", "labctl does not make these machines, and they have their size already"},
	{"addons", "what runs in a cluster that labctl did not make is its owner's choice"},
}

// checkMachines refuses the keys of the other source of machines.
func (d *document) checkMachines(c *Cluster) {
	const field = "machines"
	switch {
	case !d.trusted(field):
	case c.OverSSH():
		for _, key := range notWithSSH {
			d.refuse(key.field, "not with machines: ssh: "+key.why+"; remove it")
		}
		d.refuse("ssh.host", "every machine has its own; write it into the ssh section of the node")
		d.checkSSH("ssh", c.SSH)
		for i, check := range c.Kubernetes.IgnorePreflightErrors {
			if field := fmt.Sprintf("kubernetes.ignore_preflight_errors[%d]", i); d.trusted(field) && !preflightCheck.MatchString(check) {
				d.report(field, "%s is not the name of a check of kubeadm, such as NumCPU", quote(check))
			}
		}
		for i, n := range c.Nodes {
			d.checkSSH(fmt.Sprintf("nodes[%d].ssh", i), n.SSH)
			for _, key := range keysOf(reflect.TypeFor[NodeOptions]()) {
				d.refuse(fmt.Sprintf("nodes[%d].%s", i, key), "not with machines: ssh: labctl does not set up these machines; remove it")
			}
			if n.Onboard {
				d.refuse(fmt.Sprintf("nodes[%d].onboard", i), "not with machines: ssh: any of these nodes can be onboarded; remove it")
			}
		}
	case c.Machines == MachinesLibvirt:
		const only = "only with machines: ssh; labctl makes these machines and knows how to reach them, so remove it or add machines: ssh"
		d.refuse("ssh", only)
		d.refuse("network.endpoint", only)
		if len(c.Kubernetes.IgnorePreflightErrors) > 0 {
			d.refuse("kubernetes.ignore_preflight_errors", only)
		}
		for i := range c.Nodes {
			d.refuse(fmt.Sprintf("nodes[%d].ssh", i), only)
		}
	default:
		d.report(field, "%s is not known; use libvirt (labctl makes the machines) or ssh (they exist)", quote(string(c.Machines)))
	}
}

// refuse reports a key that the file has and may not have.
func (d *document) refuse(field, why string) {
	if d.written(field) && d.trusted(field) {
		d.report(field, "%s", why)
	}
}

// checkSSH lets nothing pass that a program could take for an option or that
// could spoil a line.
func (d *document) checkSSH(at string, s SSH) {
	check := func(key, value, want string, accepted func(string) bool) {
		if field := at + "." + key; value != "" && d.trusted(field) && !accepted(value) {
			d.report(field, "%s is not %s", quote(value), want)
		}
	}
	check("host", s.Host, "an IPv4 address or a DNS name", isHost)
	check("user", s.User, "the name of a login: use letters, digits and . _ @ + - inside", loginName.MatchString)
	const key = "the file of a private key; use an absolute path, or one that begins with ~/"
	check("identity_file", s.IdentityFile, key, func(file string) bool {
		return (strings.HasPrefix(file, "/") || strings.HasPrefix(file, "~/")) && !hidden(file)
	})
	if port := at + ".port"; d.written(port) {
		d.checkNumbers([]number{{port, s.Port, 1, maxPort, "for a port"}})
	}
	if jump := at + ".jump"; s.Jump != "" && s.Jump != noJump && d.trusted(jump) {
		for hop := range strings.SplitSeq(s.Jump, ",") {
			if _, _, _, err := ParseLogin(hop); err != nil {
				d.report(jump, "%v; use [USER@]HOST[:PORT], several with commas between them, or %s", err, noJump)
				break
			}
		}
	}
}

const (
	noJump  = "none" // as a value of jump
	maxPort = 65535
)

var (
	// A check's name may have a file or a port: FileAvailable--etc-kubernetes-manifests-etcd.yaml, Port-6443.
	preflightCheck = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

	loginName = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.@+-]{0,63}$`)
	hostName  = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)
)

// isHost accepts an IPv4 address and a DNS name. A name that ends with a number
// is a mistyped address.
func isHost(text string) bool {
	if ip, err := netip.ParseAddr(text); err == nil {
		return ip.Is4()
	}
	last := text[strings.LastIndexByte(text, '.')+1:]
	return len(text) <= 253 && hostName.MatchString(text) && strings.Trim(last, "0123456789") != ""
}

// ParseLogin takes [USER@]HOST[:PORT] apart. The user is "" and the port 0 where
// the text has none. The error shows no user: it may have a password in it.
func ParseLogin(text string) (user, host string, port int, err error) {
	host = text
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		user, host = text[:at], text[at+1:]
		if !loginName.MatchString(user) {
			return "", "", 0, errors.New("what is in front of the @ is not the name of a login")
		}
	}
	host, number, hasPort := strings.Cut(host, ":")
	if !isHost(host) {
		return "", "", 0, fmt.Errorf("the host %s is not an IPv4 address or a DNS name", quote(host))
	}
	if hasPort {
		if port, err = strconv.Atoi(number); err != nil || port < 1 || port > maxPort || strconv.Itoa(port) != number {
			return "", "", 0, fmt.Errorf("the port %s is not a number from 1 to %d", quote(number), maxPort)
		}
	}
	return user, host, port, nil
}

// checkExistingName takes what Kubernetes takes for a Node's name: it may have a
// domain in it.
func (d *document) checkExistingName(field, name string) {
	for part := range strings.SplitSeq(name, ".") {
		if !label.MatchString(part) || len(part) > 63 || len(name) > 253 {
			d.report(field, "%s is not the name of a Node: use lowercase letters, digits, inner dashes and inner dots", quote(name))
			return
		}
	}
}

// takeHosts takes the addresses of SSH servers for those of nodes without one.
// A loopback address is not the machine's, but leads to it.
func (c *Cluster) takeHosts() {
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if ip, err := netip.ParseAddr(n.SSH.Host); err == nil && ip.Is4() && !ip.IsLoopback() && !n.IP.IsValid() {
			n.IP = ip
		}
	}
}

// checkExistingNetwork takes the ranges as they are: the cluster works with them.
func (d *document) checkExistingNetwork(n Network) {
	const vip, endpoint, cni = "network.virtual_ip", "network.endpoint", "network.cni"
	d.checkRange("network.pod_subnet", n.PodSubnet, 8, 28)
	d.checkRange("network.service_subnet", n.ServiceSubnet, 12, 28)
	if n.CNI != "" {
		d.checkLabel(cni, n.CNI, 63)
	}
	if n.VirtualIP.IsValid() && d.trusted(vip) {
		d.checkUnreserved(vip, n.VirtualIP)
	}
	if n.Endpoint != "" && d.trusted(endpoint) {
		user, _, port, err := ParseLogin(n.Endpoint)
		if err != nil || user != "" || port == 0 {
			d.report(endpoint, "%s is not HOST:PORT; use an IPv4 address or a DNS name, and a port, such as k8s.home.lan:6443", quote(n.Endpoint))
		}
	}
}

// checkAddress is for a node of either source of machines.
func (d *document) checkAddress(field string, n Node, c *Cluster) {
	switch {
	case !d.trusted("machines"): // which addresses may be there is not known
	case !c.OverSSH():
		d.checkNodeIP(field, n.IP, c.Network)
	case !d.trusted(field, parent(field)+".ssh.host"):
	case !n.IP.IsValid() && n.SSH.Host == "":
		d.report(field, "missing; write the IPv4 address of the node")
	case !n.IP.IsValid():
		const use = "missing; write the IPv4 address that the cluster knows the node by: ssh.host %s only says where its SSH server is"
		d.report(field, use, quote(n.SSH.Host))
	case n.IP == c.Network.VirtualIP && d.trusted("network.virtual_ip"):
		d.report(field, "%s is network.virtual_ip, which no node may have; use another address", n.IP)
	default:
		d.checkUnreserved(field, n.IP)
	}
}

func (d *document) checkUnreserved(field string, ip netip.Addr) {
	for _, s := range special {
		if s.Contains(ip) {
			d.report(field, "%s is in %s, which is reserved; use the address that the cluster's machines know", ip, s)
		}
	}
}
