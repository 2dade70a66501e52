// Package scenarios has the faults that people meet in kubeadm clusters. Each says what it imitates, how to inject it on a real node, how the
// cluster shows its effect, what a diagnosis must say, which of labctl's commands recover from it, and how to restore the rest. The package
// reaches the lab only through a Driver, and does not know how a lab is made or repaired.
package scenarios

import (
	"context"
	"net"
	"slices"

	"k8slab/config"
	"k8slab/lab/symptom"
)

// Driver runs commands in the lab.
type Driver interface {
	// Run runs a command on a node of the lab as root, to its end, and returns what it printed. A command that fails is an error.
	Run(ctx context.Context, node string, argv ...string) (string, error)
	// Labctl runs labctl for the lab to its end and returns its standard output, beside an error too. An exit status other than 0 is an error.
	Labctl(ctx context.Context, args ...string) (string, error)
}

// Target is the node that a fault is injected on, and the lab around it.
type Target struct {
	Driver
	Node         string // on which it is injected, or whose join it blocks
	Address      string // Node's
	Next         string // to which version the lab can be upgraded, for faults of upgrades; "" for none
	ControlPlane string // a healthy control plane: another node, where there is one
	Members      []Member
	patience     int // how many times longer everything may take on slow machines
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
	Applies func(Target) string
	// Upgrade says when in an upgrade the fault is met; "" for a fault of no upgrade.
	Upgrade Moment
	// Outside says that the node is reset before the injection, because the fault blocks joins. The others are injected on a member.
	Outside bool
	Inject  func(context.Context, Target) error
	// Effect returns nil once the cluster shows the fault's effect: in an answer of the CRI, a condition, a join's error, never in what Inject
	// did. It returns an absence when the cluster shows that there is no effect, and another error when it cannot tell. It is asked again until
	// it returns nil, for at most effectBudget.
	Effect func(context.Context, Target) error
	// Symptom is what a diagnosis says first; "" when the cluster recovers alone and there is nothing to say.
	Symptom symptom.ID
	// Detail is which kind of Symptom it says; "" for any.
	Detail string
	// Of are the nodes that the diagnosis may name with Symptom, "" for the cluster; nil is Target.Node.
	Of func(Target) []string
	// Recover are the calls of labctl that end the fault, in order: the narrowest repair. Node in one stands for Target.Node. A fault that no
	// command ends has none, and ByHand.
	Recover [][]string
	// Remedy is what a person must have done before Recover, which labctl refuses until then, with the symptom. The experiment takes the
	// commands from the hint of the finding that names the fault.
	Remedy symptom.Remedy
	// ByHand is what a person does before Recover instead, where no command of a hint can. Restore acts as the person would.
	ByHand string
	// Once says that Effect is of no use after the recovery: it reads a log or a counter, joins the node, or sees what only Restore removes.
	// Without Once, Effect must show an absence after the recovery, because a member can look healthy for seconds while the fault lasts. A
	// fault with Outside needs no such proof: the node has joined.
	Once bool
	// May is what the recovery may change besides the fault itself. Outside implies Identity.
	May []Change
	// Restore removes what a recovery may leave of the fault. It is safe at any time, also when Inject failed half-way; nil is nothing to do.
	Restore func(context.Context, Target) error
	// Lab is what only a lab has of what the fault, its effect or its recovery needs; "" when any kubeadm cluster has it all.
	Lab string
	// Loses says that a node's data of etcd is lost, and not taken out of the cluster first, as a reset does.
	Loses bool
	// Alone is what happens without labctl, as measured (docs/faults.md, Times); "" where a member stays broken until somebody repairs it.
	Alone string
	// Join is how the fault affects a join, for the campaign that counts joins; nil when it does not.
	Join *Join
}

// Moment says when in an upgrade a fault is met.
type Moment string

// The moments of an upgrade.
const (
	// Before is a fault that `labctl upgrade` finds before it changes anything. It is not seen before that, so it needs no Effect.
	Before Moment = "before"
	// During is a fault whose injection begins an upgrade, which stops half-way. The recovery ends it: the lab has the next version then.
	During Moment = "during"
)

// Join is how a fault affects a join.
type Join struct {
	Member bool       // it is injected on a node that has joined, not on a reset machine
	Cause  symptom.ID // what the join names; "" when it only has to succeed
}

// Change is something that a recovery must not change, unless the fault allows it.
type Change string

// What a recovery may change.
const (
	Identity Change = "identity" // the Node's UID, kubelet's certificate and the etcd member
	Boot     Change = "boot"     // when the machine started
	Disk     Change = "disk"     // what workloads had written on the node
	Quorum   Change = "quorum"   // etcd takes no writes for a while
	Others   Change = "others"   // what it may change on Target.Node, it may change on other nodes of the same role too
)

// Placeholders in Recover.
const (
	Node = "NODE" // the name of the node
	File = "FILE" // a file of this computer, in a directory that is removed when the experiment ends
)

// theCluster is for faults that a diagnosis reports of the cluster and not of a node.
func theCluster(Target) []string { return []string{""} }

// hereOrCluster is for faults that a joining node meets and the cluster shows.
func hereOrCluster(t Target) []string { return []string{t.Node, ""} }

// anywhere is for faults of the whole cluster that the diagnosis may see first at any node.
func anywhere(t Target) []string {
	of := theCluster(t)
	for _, m := range t.Members {
		of = append(of, m.Name)
	}
	return of
}

// nodeVerb is a labctl command with the node as its argument.
func nodeVerb(verb string) [][]string { return [][]string{{verb, Node}} }

var (
	repair    = [][]string{{"repair"}}
	rejoining = [][]string{{"repair", "--up-to", "rejoin"}}
	up        = [][]string{{"up"}}
)

// Stops reports whether labctl does not recover from the fault until a person has acted.
func (f Fault) Stops() bool { return f.Remedy.Text != "" || f.ByHand != "" }

// WithoutLabctl is what becomes of the fault with kubeadm alone.
func (f Fault) WithoutLabctl() string {
	switch {
	case f.Alone != "":
		return f.Alone
	case f.Symptom == "":
		return "it passes by itself"
	}
	return "it lasts"
}

// What only labs have: see Fault.Lab.
const (
	theProbe   = "it shows in the probes that only a lab has"
	theFlannel = "it is made in the lab's own Flannel, whose manifest labctl knows"
	theImage   = "it is repaired from copies that the lab's node image has"
	usersPods  = "it shows in users' pods, at which labctl looks in labs alone"
	theStart   = "it is repaired by a start of the machine, at which only a lab's gets its own machine-id"
)

// LabsOnly is why the fault is not made in a cluster that labctl did not make, "" when it may be.
func (f Fault) LabsOnly() string {
	switch {
	case f.Upgrade != "":
		return "labctl upgrades labs only"
	case f.Loses:
		return "it loses data"
	case slices.ContainsFunc(f.Recover, func(call []string) bool { return call[0] == "power" || call[0] == "up" }):
		return "it needs power over the machine, which labctl has only of its own"
	}
	return f.Lab
}

// For tells whether the fault can be made on a node of the role.
func (f Fault) For(role config.Role) bool { return slices.Contains(f.Roles, role) }

// Calls are the labctl commands that recover the node from the fault. The caller replaces File in them.
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
func on(argv ...string) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error { return t.run(ctx, argv...) }
}

// shell runs a script on the node. args are its $1, $2, …: so no value is ever parsed as shell code.
func (t Target) shell(ctx context.Context, node, script string, args ...string) error {
	_, err := t.Run(ctx, node, append([]string{"sh", "-ec", script, "sh"}, args...)...)
	return err
}

func script(text string) func(context.Context, Target) error {
	return func(ctx context.Context, t Target) error { return t.shell(ctx, t.Node, text) }
}

func (t Target) run(ctx context.Context, argv ...string) error {
	_, err := t.Run(ctx, t.Node, argv...)
	return err
}

// writesKey is a key of etcd, outside of the API server's own, for injectors.
const writesKey = "/k8slab/fault"

// etcd runs etcdctl on the control plane and returns what it printed.
func (t Target) etcd(ctx context.Context, args ...string) (string, error) {
	return t.etcdOf(ctx, "127.0.0.1", args...)
}

// etcdOf asks, from the control plane, the member at the address.
func (t Target) etcdOf(ctx context.Context, address string, args ...string) (string, error) {
	return t.Run(ctx, t.ControlPlane, slices.Concat(etcdctl(address), args)...)
}

// ownEtcdctl begins scripts that call etcdctl. Nodes that labctl did not make have none but the one in etcd's image.
const ownEtcdctl = `
	command -v etcdctl >/dev/null || etcdctl() {
		crictl exec "$(crictl ps --quiet --state running --name '^etcd$' | head -n 1)" etcdctl "$@"
	}
`

// etcdctl is the command by which a control plane asks the member at the address; arguments follow.
func etcdctl(address string) []string {
	return append([]string{"sh", "-c", ownEtcdctl + `etcdctl "$@"`, "sh"}, etcdFlags(address)...)
}

// etcdFlags are how etcdctl on a control plane reaches the member at the address.
func etcdFlags(address string) []string {
	const pki = "/etc/kubernetes/pki/etcd/"
	return []string{"--endpoints", "https://" + net.JoinHostPort(address, "2379"), "--cacert", pki + "ca.crt", "--cert", pki + "peer.crt", "--key", pki + "peer.key"}
}

func (t Target) etcdctl(ctx context.Context, args ...string) error {
	_, err := t.etcd(ctx, args...)
	return err
}

// kubectl runs kubectl as the cluster's administrator.
func (t Target) kubectl(ctx context.Context, args ...string) (string, error) {
	return t.Labctl(ctx, append([]string{"kubectl", "--"}, args...)...)
}
