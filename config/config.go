// Package config turns cluster.yaml into a Cluster: it applies the defaults,
// accepts only known keys, and reports every problem at once with its line.
// It looks at nothing but the file: whether the host can run it is not its job.
package config

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// Cluster is one cluster.yaml, complete with defaults and valid throughout.
// With MachinesSSH, Image, Libvirt, Resources and Addons are empty.
type Cluster struct {
	// Name is an RFC 1123 label of at most 20 characters; default "lab".
	// It prefixes the names of domains and bridges.
	Name string `yaml:"name"`
	// Machines says where the machines come from; default MachinesLibvirt.
	Machines Source `yaml:"machines,omitempty"`
	// SSH is how to log in to machines that exist; a node's own settings come
	// before. Only with MachinesSSH.
	SSH        SSH        `yaml:"ssh,omitempty"`
	Kubernetes Kubernetes `yaml:"kubernetes"`
	// Etcd, CoreDNS and Containerd are empty by default: etcd and CoreDNS have the
	// versions that kubeadm asks for, containerd the one that labctl comes with.
	// Only with MachinesLibvirt.
	Etcd       Component `yaml:"etcd,omitempty"`
	CoreDNS    Component `yaml:"coredns,omitempty"`
	Containerd Component `yaml:"containerd,omitempty"`
	Image      Image     `yaml:"image"`
	Libvirt    Libvirt   `yaml:"libvirt"`
	Network    Network   `yaml:"network"`
	// Registries are those that nodes pull images from in another way than the
	// usual one; default none.
	Registries []Registry `yaml:"registries,omitempty"`
	Resources  Resources  `yaml:"resources"`
	// Nodes are in file order, those with Onboard included.
	Nodes []Node `yaml:"nodes"`
	// Addons are what `up` puts into the cluster beside the pod network, by
	// name (AddonNames), each once; default none. What a listed one needs need
	// not be listed. docs/addons.md says what each is.
	Addons     []string   `yaml:"addons"`
	Tuning     Tuning     `yaml:"tuning"`
	Onboarding Onboarding `yaml:"onboard"`
}

// AddonNames are the accepted names of add-ons, in alphabetical order.
var AddonNames = []string{"flux", "git", "load-balancer", "local-path", "metrics-server", "node-exporter", "prometheus", "proxy", "registry", "sops"}

// Components are those that have a section of their own, by its name.
func (c *Cluster) Components() map[string]Component {
	return map[string]Component{"etcd": c.Etcd, "coredns": c.CoreDNS, "containerd": c.Containerd}
}

// Image says what virtual machines boot from.
type Image struct {
	// Base is the absolute path of a stock cloud image, which the lab makes
	// nodes of; default empty: the lab's own image. docs/vms.md says which
	// images can be used.
	Base string `yaml:"base"`
	// From is the reference of a node image in a registry, REPOSITORY@sha256:HEX,
	// which is fetched instead of built; default empty. Not with Base.
	From string `yaml:"from,omitempty"`
	// Distribution is the release of Debian that the node image is made of,
	// Bookworm or Trixie, and with Base that of the stock image. Default empty:
	// DefaultDistribution for a new lab, and one that exists keeps its own. Not
	// with From.
	Distribution string `yaml:"distribution,omitempty"`
}

// The releases of Debian for node images.
const (
	Bookworm = "bookworm" // Debian 12
	Trixie   = "trixie"   // Debian 13
)

// DefaultDistribution is the one of new labs.
const DefaultDistribution = Bookworm

// ChooseDistribution sets the distribution of the node image, if the file leaves
// it open and the image is made here.
func (c *Cluster) ChooseDistribution(distribution string) {
	if c.Image.Distribution == "" && c.Image.From == "" && !c.OverSSH() {
		c.Image.Distribution = distribution
	}
}

// Libvirt says which libvirt runs the machines.
type Libvirt struct {
	// URI is auto, qemu:///system or lxc:///system; default auto.
	URI string `yaml:"uri"`
	// Pool is the storage pool for the files of virtual machines, of 1 to 64
	// letters, digits, and . _ - inside; default k8slab. One that is absent is
	// made.
	Pool string `yaml:"pool"`
}

// Network holds the address ranges; all are IPv4. None overlaps another, where
// labctl makes the machines.
type Network struct {
	// CIDR is the machines' network, /8 to /28. Default auto: the first of
	// Networks that is free, unless something in the file has an address; then
	// 10.30.0.0/24. Not valid with MachinesSSH.
	CIDR netip.Prefix `yaml:"cidr"`
	// VirtualIP is the API server's shared address, inside CIDR and no
	// node's; default the 10th address of CIDR. With MachinesSSH it is not
	// valid unless the file has one.
	VirtualIP netip.Addr `yaml:"virtual_ip"`
	// LoadBalancer is a range inside CIDR for Services of type LoadBalancer, which
	// the add-on load-balancer announces; default PoolOf(CIDR), without addresses
	// that machines have. Not valid with MachinesSSH.
	LoadBalancer netip.Prefix `yaml:"load_balancer"`
	// PodSubnet is /8 to /24 with a /24 for every node; default 10.244.0.0/16.
	PodSubnet netip.Prefix `yaml:"pod_subnet"`
	// ServiceSubnet is /12 to /28; default 10.96.0.0/16.
	ServiceSubnet netip.Prefix `yaml:"service_subnet"`
	// CNI is flannel, the default and only choice. With MachinesSSH it is the
	// name of any pod network, or "", which is not known.
	CNI string `yaml:"cni"`
	// Uplink says whether nodes reach what this computer reaches; default
	// UplinkAuto. Not valid with MachinesSSH.
	Uplink Uplink `yaml:"uplink,omitempty"`
	// Outside is not valid with MachinesSSH.
	Outside `yaml:",inline"`
	// Endpoint is the HOST:PORT of the API servers of machines that exist:
	// kubeadm's controlPlaneEndpoint. Default: VirtualIP:6443, or without a
	// VirtualIP the first control plane's address. Only with MachinesSSH.
	Endpoint string `yaml:"endpoint,omitempty"`
	// Auto is that CIDR, VirtualIP and LoadBalancer were chosen.
	Auto bool `yaml:"-"`
}

// Uplink is the nodes' way out of the lab's network.
type Uplink string

// The accepted uplinks.
const (
	UplinkAuto Uplink = "auto" // UplinkNAT with the computer's libvirt, UplinkNone with a daemon of the lab's own
	UplinkNAT  Uplink = "nat"  // through this computer, with its address
	UplinkNone Uplink = "none" // to nothing but the lab
)

// Gateway is the first host address of CIDR: the libvirt network's own.
func (n Network) Gateway() netip.Addr { return n.CIDR.Masked().Addr().Next() }

// Resources sizes the machines of each role.
type Resources struct {
	ControlPlane Resource `yaml:"control_plane"`
	Worker       Resource `yaml:"worker"`
}

// Resource sizes the machine of a node, and has the options of all nodes of the
// role.
type Resource struct {
	// CPUs is a number of virtual CPUs, at least 1; default 2.
	CPUs int `yaml:"cpus"`
	// Memory is in MiB. Control plane: at least 1700, default 4096.
	// Worker: at least 1024, default 2048.
	Memory int `yaml:"memory"`
	// Disk is in GiB, at least 5; default 20.
	Disk        int `yaml:"disk"`
	NodeOptions `yaml:",inline"`
}

// Role is what a node does in the cluster.
type Role string

// The accepted roles.
const (
	ControlPlane Role = "control-plane"
	Worker       Role = "worker"
)

// ResourcesKey is where cluster.yaml has the size of machines of the role.
func (r Role) ResourcesKey() string { return "resources." + strings.ReplaceAll(string(r), "-", "_") }

// Node is one machine; Name and Role are required.
type Node struct {
	// Name is an RFC 1123 label of at most 63 characters, unique in the file.
	Name string `yaml:"name"`
	Role Role   `yaml:"role"`
	// IP is an IPv4 address in Network.CIDR, unique in the file. Default: the
	// first free one from the 11th on for control planes, the 21st for workers.
	// With MachinesSSH it is the address that the cluster knows the node by;
	// default: SSH.Host, if that is an address.
	IP netip.Addr `yaml:"ip"`
	// Onboard keeps the node out of `up`; it joins later. Default false.
	Onboard bool `yaml:"onboard"`
	// SSH is how to log in to this machine, where it differs from Cluster.SSH.
	SSH         SSH `yaml:"ssh,omitempty"`
	NodeOptions `yaml:",inline"`
	// Auto is that IP was chosen.
	Auto bool `yaml:"-"`
}

// Stagger is what waits for the control plane before.
type Stagger string

// What may wait.
const (
	StaggerJoin    Stagger = "join"    // machines start together, control planes join one after another
	StaggerMachine Stagger = "machine" // a control plane's machine is made when the one before is stable
)

// Tuning bounds the waiting. Times are in seconds, from 1 to 86400 (a day);
// attempts are counts, from 1 to 100.
type Tuning struct {
	// JoinMaxWaitSeconds is the longest wait for the cluster to be ready to
	// take a joining node; default 1200.
	JoinMaxWaitSeconds int `yaml:"join_max_wait_seconds"`
	// CPJoinRetryAttempts is how often one control plane tries to join;
	// default 8.
	CPJoinRetryAttempts int `yaml:"cp_join_retry_attempts"`
	// CPJoinRetrySleepSeconds is the pause after the first failed try;
	// default 10.
	CPJoinRetrySleepSeconds int `yaml:"cp_join_retry_sleep_seconds"`
	// CPJoinRetryMaxSleepSeconds is the longest pause between two tries, not
	// below CPJoinRetrySleepSeconds; default 120.
	CPJoinRetryMaxSleepSeconds int `yaml:"cp_join_retry_max_sleep_seconds"`
	// CPJoinRetryMaxTotalSeconds is the time for all tries and pauses of one
	// control plane, not below JoinMaxWaitSeconds; default 2400.
	CPJoinRetryMaxTotalSeconds int `yaml:"cp_join_retry_max_total_seconds"`
	// CPStabilizeTimeoutSeconds is the longest wait for a joined control
	// plane to become healthy; default 900.
	CPStabilizeTimeoutSeconds int `yaml:"cp_stabilize_timeout_seconds"`
	// WorkerJoinTimeoutSeconds is the longest one try of a worker may take;
	// default 300.
	WorkerJoinTimeoutSeconds int `yaml:"worker_join_timeout_seconds"`
	// WorkerJoinRetryAttempts is how often one worker tries to join;
	// default 3.
	WorkerJoinRetryAttempts int `yaml:"worker_join_retry_attempts"`
	// Stagger says what of the next control plane waits until the one before
	// is stable: its join, or its machine already; default join.
	Stagger Stagger `yaml:"stagger"`
}

// ControlPlanes lists the control planes in file order, without the onboard ones.
func (c *Cluster) ControlPlanes() []Node { return c.withRole(ControlPlane) }

// Workers lists the workers in file order, without the onboard ones.
func (c *Cluster) Workers() []Node { return c.withRole(Worker) }

// Members lists the control planes, then the workers, without the onboard ones.
func (c *Cluster) Members() []Node { return append(c.ControlPlanes(), c.Workers()...) }

func (c *Cluster) withRole(r Role) []Node {
	return slices.DeleteFunc(slices.Clone(c.Nodes), func(n Node) bool { return n.Role != r || n.Onboard })
}

// Names are those of the nodes.
func Names(nodes []Node) (names []string) {
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return names
}

// HasNode tells whether one of the nodes has the name.
func HasNode(nodes []Node, name string) bool {
	return slices.ContainsFunc(nodes, func(n Node) bool { return n.Name == name })
}

// Staggered lists those of the absent machines that Tuning.Stagger makes wait
// for their turn: control planes, but for one that has to begin the cluster.
func (c *Cluster) Staggered(absent []Node) []Node {
	if c.Tuning.Stagger != StaggerMachine {
		return nil
	}
	var waiting []Node
	for i, n := range c.ControlPlanes() {
		if i > 0 && HasNode(absent, n.Name) {
			waiting = append(waiting, n)
		}
	}
	return waiting
}

// Node finds a node by name, the onboard ones included.
func (c *Cluster) Node(name string) (Node, bool) {
	for _, n := range c.Nodes {
		if n.Name == name {
			return n, true
		}
	}
	return Node{}, false
}

// Resource is the size of a machine with role r.
func (c *Cluster) Resource(r Role) Resource { return *c.ResourceOf(r) }

// ResourceOf is where the size of machines with role r is kept.
func (c *Cluster) ResourceOf(r Role) *Resource {
	if r == ControlPlane {
		return &c.Resources.ControlPlane
	}
	return &c.Resources.Worker
}

// OptionsOf are the node's options: its own over those of its role. Settings of
// kubelet and labels are merged, and its lists replace those of the role.
func (c *Cluster) OptionsOf(n Node) NodeOptions {
	o := c.Resource(n.Role).NodeOptions
	o.Kubelet = Merge(o.Kubelet, n.Kubelet)
	o.Labels = maps.Clone(o.Labels)
	if o.Labels == nil {
		o.Labels = map[string]string{}
	}
	maps.Copy(o.Labels, n.Labels)
	if n.Taints != nil {
		o.Taints = n.Taints
	}
	if n.Disks != nil {
		o.Disks = n.Disks
	}
	return o
}

// GateNames are the names of the feature gates, sorted.
func (k Kubernetes) GateNames() []string { return slices.Sorted(maps.Keys(k.FeatureGates)) }

// ProxyExceptions are what nodes and pods reach without Network.Proxy, as NO_PROXY has it: themselves, the lab's networks and names, and
// Network.NoProxy.
func (c *Cluster) ProxyExceptions() []string {
	n := c.Network
	all := []string{"localhost", "127.0.0.0/8", n.CIDR.String(), n.PodSubnet.String(), n.ServiceSubnet.String(), ".svc", ".cluster.local"}
	for _, node := range c.Nodes {
		all = append(all, node.Name)
	}
	return append(all, n.NoProxy...)
}
