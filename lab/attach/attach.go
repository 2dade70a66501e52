// Package attach finds out what a cluster that exists consists of, from one login, and describes it as a cluster.yaml with `machines: ssh`.
// It only reads.
package attach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/etcd"
	"k8slab/lab/event"
	"k8slab/lab/kube"
	"k8slab/lab/node"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// Options say how to get in.
type Options struct {
	Name   string                               // of the cluster; "" is kubeadm's clusterName, or the first label of the endpoint
	First  config.SSH                           // the login to one machine, best a control plane; without a host, Kubeconfig finds one
	Logins map[string]config.SSH                // those of other nodes that are known, by the node's name
	Lookup func(node string) (config.SSH, bool) // the user's own settings for a node, if there are any; may be nil
	Login  node.LoginOptions                    // what is asked of a person before the first login to a machine
	Events *event.Stream
	// Kubeconfig names the API server, which this computer reaches.
	Kubeconfig []byte

	session session.Options
}

// Found is what was found.
type Found struct {
	Cluster *config.Cluster `json:"-"`
	Name    string          `json:"name"`
	Version string          `json:"version"` // of Kubernetes, by kubeadm's record
	// Endpoint is the HOST:PORT of the API servers.
	Endpoint string   `json:"endpoint"`
	CNI      string   `json:"cni,omitempty"` // "" for one that is not known
	Etcd     []string `json:"etcd"`          // every member in a line
	Nodes    []Node   `json:"nodes"`
	Warnings []string `json:"warnings,omitempty"`
}

// Node is one node of it.
type Node struct {
	Name    string      `json:"name"`
	Role    config.Role `json:"role"`
	IP      string      `json:"ip"`
	Version string      `json:"version"` // of its kubelet
	Ready   bool        `json:"ready"`
	Etcd    string      `json:"etcd"`              // voter, learner or none
	Login   string      `json:"login"`             // USER@HOST:PORT
	Problem string      `json:"problem,omitempty"` // why the login does not work
}

// nodeTime is how long a machine may take to answer.
const nodeTime = 5 * time.Second

// Find looks at the cluster. A machine that does not answer is part of what is found.
func Find(ctx context.Context, o Options) (Found, error) {
	logins := node.NewLogins(o.Login)
	defer func() { _ = logins.Close() }()
	o.session = session.Options{Logins: logins, Mutated: session.ReadOnly}
	if o.First.Host == "" {
		if err := o.fromKubeconfig(ctx); err != nil {
			return Found{}, err
		}
	}
	way, err := find(ctx, &o)
	if err != nil {
		return Found{}, err
	}
	defer way.close()
	nodes, err := way.kube.Nodes(ctx)
	if err != nil {
		return Found{}, err
	}
	record, err := way.kube.ClusterConfiguration(ctx)
	if err != nil {
		return Found{}, fmt.Errorf("%w; next: attach a cluster that kubeadm made, which has this ConfigMap", err)
	}
	f := Found{Version: record.KubernetesVersion}
	if f.CNI, err = way.kube.NetworkPlugin(ctx); err != nil {
		f.Warnings = append(f.Warnings, err.Error())
	}
	f.Cluster = describe(o, record, f.CNI, nodes, way.machineID)
	f.Name, f.Endpoint = f.Cluster.Name, f.Cluster.APIEndpoint()
	if external := record.Etcd.External; external != nil {
		f.Etcd = append(f.Etcd, "external: "+strings.Join(external.Endpoints, ", "))
	}
	return f, f.look(ctx, o, nodes)
}

// Keep remembers the cluster among this user's labs.
func (f Found) Keep() error {
	closed, err := state.Read(f.Cluster)
	if err != nil {
		return err
	}
	if closed.Exists() && !closed.Cluster.OverSSH() {
		return fmt.Errorf("there is a lab named %s already; next: labctl attach with another --name", f.Name)
	}
	return closed.Remember()
}

// fromKubeconfig takes the first control plane that the API server knows.
func (o *Options) fromKubeconfig(ctx context.Context) error {
	k, err := kube.New(o.Kubeconfig, (&net.Dialer{}).DialContext, o.session.Mutated)
	if err != nil {
		return err
	}
	defer k.Close()
	nodes, err := k.Nodes(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(nodes, func(n kube.Node) bool { return n.Role == kube.RoleControlPlane })
	if i < 0 {
		return errors.New("the cluster of the kubeconfig has no control plane node; next: labctl attach with the login to a control plane")
	}
	o.First.Host = nodes[i].IP
	if own, known := o.Logins[nodes[i].Name]; known {
		o.First = own
	}
	return nil
}

// way is a way to the API server.
type way struct {
	session   *session.Session
	kube      *kube.Client
	machineID string // of the machine that was logged in to
}

func (w way) close() {
	w.kube.Close()
	w.session.Close()
}

// find logs in to the first machine. If that is a worker, it asks the API server, as its kubelet, for a control plane.
func find(ctx context.Context, o *Options) (way, error) {
	const name = "the first machine"
	w := way{}
	for hop := 0; ; hop++ {
		only := &config.Cluster{Name: "attach", Machines: config.MachinesSSH, SSH: o.First,
			Nodes: []config.Node{{Name: o.First.Host, Role: config.ControlPlane, SSH: o.First}}}
		s, err := session.OpenSSH(state.Lab{Cluster: only}, o.Events, o.session)
		if err != nil {
			return w, err
		}
		first := s.Nodes[o.First.Host]
		admin, notControl := first.Read(ctx, "cat", "/etc/kubernetes/admin.conf")
		if session.Status(notControl) < 0 && notControl != nil { // it does not answer
			s.Close()
			return w, notControl
		}
		id, err := first.Read(ctx, "cat", "/etc/machine-id")
		if err == nil && notControl == nil {
			w.session, w.machineID = s, strings.TrimSpace(id)
			w.kube, err = client(admin, s)
			return w, err
		}
		ip := ""
		if hop == 0 && err == nil {
			ip, err = controlPlane(ctx, first)
		}
		s.Close()
		if err != nil || ip == "" {
			return w, errors.Join(fmt.Errorf("%s, %s, has no /etc/kubernetes/admin.conf, and names no control plane; next: labctl attach with the login to a control plane",
				name, o.First.Host), err)
		}
		if o.First.Host == ip {
			return w, fmt.Errorf("control plane %s has no /etc/kubernetes/admin.conf; next: labctl attach with the login to another control plane", ip)
		}
		o.First.Host = ip
	}
}

func client(admin string, s *session.Session) (*kube.Client, error) {
	config, err := kube.FromNode([]byte(admin))
	if err != nil {
		return nil, err
	}
	return kube.New(config, s.DialCluster, s.Mutated)
}

// controlPlane is the address of a control plane, which a kubelet may ask for.
func controlPlane(ctx context.Context, on session.Reader) (string, error) {
	out, err := on.Read(ctx, "kubectl", "--kubeconfig", "/etc/kubernetes/kubelet.conf", "--request-timeout=4s", "get", "nodes",
		"--selector", "node-role.kubernetes.io/control-plane", "--output", `jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}`)
	ip, _, _ := strings.Cut(strings.TrimSpace(out), " ")
	return ip, err
}

// describe makes the description.
func describe(o Options, record kube.ClusterConfiguration, cni string, nodes []kube.Node, firstID string) *config.Cluster {
	c := config.Existing()
	c.SSH = o.First
	c.SSH.Host = ""
	c.Kubernetes.Version = record.KubernetesVersion
	c.Network.Endpoint, c.Network.CNI = record.ControlPlaneEndpoint, cni
	if _, _, err := net.SplitHostPort(record.ControlPlaneEndpoint); err != nil && record.ControlPlaneEndpoint != "" {
		c.Network.Endpoint = net.JoinHostPort(record.ControlPlaneEndpoint, "6443") // kubeadm's default
	}
	c.Network.PodSubnet, _ = netip.ParsePrefix(record.Networking.PodSubnet)
	c.Network.ServiceSubnet, _ = netip.ParsePrefix(record.Networking.ServiceSubnet)
	slices.SortStableFunc(nodes, func(a, b kube.Node) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Name, b.Name)) // control planes are first
	})
	for _, k := range nodes {
		n := config.Node{Name: k.Name, Role: config.Role(k.Role)}
		n.IP, _ = netip.ParseAddr(k.IP)
		login, known := o.Logins[k.Name]
		if !known && o.Lookup != nil {
			login, known = o.Lookup(k.Name)
		}
		switch {
		case known:
			n.SSH = differing(login, c.SSH)
		case k.MachineID == firstID && o.First.Host != k.IP:
			n.SSH.Host = o.First.Host
		}
		if n.SSH.Host == k.IP {
			n.SSH.Host = ""
		}
		c.Nodes = append(c.Nodes, n)
	}
	c.Name = name(o.Name, record.ClusterName, c.Network.Endpoint)
	return c
}

// differing is the login without what all have.
func differing(own, all config.SSH) config.SSH {
	drop := func(value *string, usual string) {
		if *value == usual {
			*value = ""
		}
	}
	drop(&own.User, all.User)
	drop(&own.IdentityFile, all.IdentityFile)
	drop(&own.Jump, all.Jump)
	if own.Port == all.Port {
		own.Port = 0
	}
	own.Sudo = own.Sudo && !all.Sudo
	return own
}

// name is the cluster's name. Every cluster is called kubernetes unless somebody says otherwise.
func name(asked, recorded, endpoint string) string {
	if asked != "" {
		return asked
	}
	if recorded != "" && recorded != "kubernetes" {
		return recorded
	}
	host, _, _ := net.SplitHostPort(endpoint)
	label, _, _ := strings.Cut(host, ".")
	if _, err := netip.ParseAddr(host); err == nil || label == "" {
		return "home"
	}
	return label
}

// look asks every machine whether the login works, and etcd for its members.
func (f *Found) look(ctx context.Context, o Options, nodes []kube.Node) error {
	s, err := session.OpenSSH(state.Lab{Cluster: f.Cluster}, o.Events, o.session)
	if err != nil {
		return err
	}
	defer s.Close()
	s.Greet(ctx)
	members, etcdErr := make(chan []etcd.Member, 1), make(chan error, 1)
	go func() {
		all, err := etcdMembers(ctx, s)
		members <- all
		etcdErr <- err
	}()
	f.Nodes, err = session.FromEachNode(f.Cluster.Nodes, func(n config.Node) (Node, error) {
		login := f.Cluster.Login(n)
		one := Node{Name: n.Name, Role: n.Role, IP: n.IP.String(), Etcd: "none", Login: login.User + "@" + login.Address()}
		within, cancel := s.Within(ctx, nodeTime)
		defer cancel()
		if _, err := s.Nodes[n.Name].Read(within, "true"); err != nil {
			one.Problem = err.Error()
		}
		if k := session.FindNode(nodes, n.Name); k != nil {
			one.Version, one.Ready = k.KubeletVersion, k.Ready
		}
		return one, nil
	})
	all := <-members
	if why := <-etcdErr; why != nil && len(f.Etcd) == 0 {
		f.Warnings = append(f.Warnings, "etcd: "+why.Error())
	}
	for _, m := range all {
		f.Etcd = append(f.Etcd, m.String())
		for i, n := range f.Cluster.Nodes {
			if session.OwnsPeer(n, m) {
				f.Nodes[i].Etcd = "voter"
				if m.Learner {
					f.Nodes[i].Etcd = "learner"
				}
			}
		}
	}
	return errors.Join(err, ctx.Err())
}

func etcdMembers(ctx context.Context, s *session.Session) ([]etcd.Member, error) {
	v, err := s.AnyAdmin(ctx)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	return v.Etcd.Members(ctx)
}
