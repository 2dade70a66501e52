// Package scenarios has the faults that people meet in kubeadm clusters, each as product code that can be run by hand: what it imitates, how
// it is made on a real node, how the cluster shows that it took effect, what a diagnosis must say of it, which of labctl's commands end it,
// and how what it left is taken away. It reaches the lab only through Hands, and knows nothing of how a lab is made or repaired.
package scenarios

import (
	"context"
	"net"
	"slices"

	"k8slab/config"
	"k8slab/lab/symptom"
)

// Hands are what a fault reaches the lab with.
type Hands interface {
	// Run runs a command on a node of the lab as root, to its end, and returns what it printed. A command that fails is an error.
	Run(ctx context.Context, node string, argv ...string) (string, error)
	// Labctl runs labctl for the lab to its end and returns its standard output, beside an error too. An exit status other than 0 is an error.
	Labctl(ctx context.Context, args ...string) (string, error)
}

// Site is where a fault is made.
type Site struct {
	Hands
	Node         string // where, or whose join it is in the way of
	Address      string // Node's
	ControlPlane string // a healthy control plane: another node, where there is one
	Members      []Member
	patience     int // how many times longer everything may take
}

// Member is a node of the lab, as `labctl status` shows it.
type Member struct {
	Name    string      `json:"name"`
	Role    config.Role `json:"role"`
	Address string      `json:"ip"`
}

// Fault is one thing that goes wrong.
type Fault struct {
	Name  string // kebab-case, unique
	Story string // whom it happens to, with its source
	Roles []config.Role
	// Applies says why the fault cannot be made in this lab, "" when it can. nil: it can in every lab that has a node of its roles.
	Applies func(Site) string
	// Outside says that it is made on a machine that was reset: it is in the way of a join. The others are made on a member.
	Outside bool
	Inject  func(context.Context, Site) error
	// Bites is nil once the cluster shows the effect – a call of the CRI, a condition, a join's error, never what Inject did –, else what it
	// shows yet: an absence where it shows that there is none. It is asked until then, for at most biteBudget.
	Bites func(context.Context, Site) error
	// Symptom is what a diagnosis says first; "" when the cluster gets over it alone and there is nothing to say.
	Symptom symptom.ID
	// Of are the nodes that it may be said of, "" for the cluster; nil is Site.Node.
	Of func(Site) []string
	// Recover are the calls of labctl that end the fault, in order: the narrowest repair. Node in one stands for Site.Node.
	Recover [][]string
	// Stops says that Recover must be refused, with the symptom and its remedy, until Restore has done what a person would do.
	Stops bool
	// Once says that Bites tells nothing after the recovery: it asks for what was logged or counted, joins the node, or sees what only Restore
	// ends. Otherwise it is asked again, until the cluster shows an absence: a member can look healthy for seconds in a fault. So it is with
	// Outside, whose end is a proven join.
	Once bool
	// May is what else than the fault itself its recovery may change. Outside implies Identity.
	May []Change
	// Restore takes away what a repair may leave of the fault. It is safe at any time, also when Inject failed half-way; nil is nothing to do.
	Restore func(context.Context, Site) error
	// Alone is what becomes of it without labctl, as measured (docs/faults.md, Times); "" where a member is broken until somebody mends it.
	Alone string
	// Join is how a join meets the fault, for counting joins; nil when none does.
	Join *Join
}

// Join is how a join meets a fault.
type Join struct {
	Member bool       // it is made on a node that has joined, in place of a reset machine
	Cause  symptom.ID // what the join names; "" when it only has to succeed
}

// Change is something that a recovery leaves as it was, unless the fault is about it.
type Change string

// What a recovery may change.
const (
	Identity Change = "identity" // the Node's UID, kubelet's certificate and the etcd member
	Boot     Change = "boot"     // when the machine started
	Disk     Change = "disk"     // what workloads had written on the node
	Quorum   Change = "quorum"   // etcd takes no writes for a while
	Others   Change = "others"   // what it may change on Site.Node, on other nodes of its role too
)

// What stands for something else in Recover.
const (
	Node = "NODE" // the name of the node
	File = "FILE" // a file of this computer, in a directory that is removed when the circle ends
)

// theCluster is what a diagnosis speaks of when it names no node.
func theCluster(Site) []string { return []string{""} }

// nodeVerb is the call of labctl that does something to the node.
func nodeVerb(verb string) [][]string { return [][]string{{verb, Node}} }

var (
	repair = [][]string{{"repair"}}
	up     = [][]string{{"up"}}
)

// For tells whether the fault can be made on a node of the role.
func (f Fault) For(role config.Role) bool { return slices.Contains(f.Roles, role) }

// Calls are the calls of labctl that end the fault on the node. A File in them is their caller's to choose.
func (f Fault) Calls(node string) [][]string {
	calls := make([][]string, len(f.Recover))
	for i, args := range f.Recover {
		calls[i] = slices.Clone(args)
		for k, a := range args {
			if a == Node {
				calls[i][k] = node
			}
		}
	}
	return calls
}

var (
	everyRole    = []config.Role{config.ControlPlane, config.Worker}
	workers      = []config.Role{config.Worker}
	controlPlane = []config.Role{config.ControlPlane}
)

// on runs one command on the node.
func on(argv ...string) func(context.Context, Site) error {
	return func(ctx context.Context, s Site) error { return s.run(ctx, argv...) }
}

// shell runs a script on the node. args are its $1, $2, …: nothing is ever pasted into a script.
func (s Site) shell(ctx context.Context, node, script string, args ...string) error {
	_, err := s.Run(ctx, node, append([]string{"sh", "-ec", script, "sh"}, args...)...)
	return err
}

func script(text string) func(context.Context, Site) error {
	return func(ctx context.Context, s Site) error { return s.shell(ctx, s.Node, text) }
}

func (s Site) run(ctx context.Context, argv ...string) error {
	_, err := s.Run(ctx, s.Node, argv...)
	return err
}

// etcd runs etcdctl on the control plane and returns what it printed.
func (s Site) etcd(ctx context.Context, args ...string) (string, error) {
	return s.etcdOf(ctx, "127.0.0.1", args...)
}

// etcdOf asks, from the control plane, the member at the address.
func (s Site) etcdOf(ctx context.Context, address string, args ...string) (string, error) {
	return s.Run(ctx, s.ControlPlane, slices.Concat([]string{"etcdctl"}, etcdFlags(address), args)...)
}

// etcdFlags are how etcdctl on a control plane reaches the member at the address.
func etcdFlags(address string) []string {
	const pki = "/etc/kubernetes/pki/etcd/"
	return []string{"--endpoints", "https://" + net.JoinHostPort(address, "2379"), "--cacert", pki + "ca.crt", "--cert", pki + "peer.crt", "--key", pki + "peer.key"}
}

func (s Site) etcdctl(ctx context.Context, args ...string) error {
	_, err := s.etcd(ctx, args...)
	return err
}

// kubectl runs kubectl as the cluster's administrator.
func (s Site) kubectl(ctx context.Context, args ...string) (string, error) {
	return s.Labctl(ctx, append([]string{"kubectl", "--"}, args...)...)
}
