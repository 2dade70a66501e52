// Package scenarios has the faults that people meet when machines join a cluster, each as product code that can be run by hand: what it
// imitates, how it is made on a real node, which cause a join must name, and how what it left is taken away. It reaches nodes only through
// Hands, and knows nothing of how a lab is made or repaired.
package scenarios

import (
	"context"
	"slices"

	"k8slab/config"
	"k8slab/lab/symptom"
)

// Hands runs a command on a node of the lab as root, to its end, and returns what it printed. A command that fails is an error.
type Hands interface {
	Run(ctx context.Context, node string, argv ...string) (string, error)
}

// Site is where a fault is made.
type Site struct {
	Hands
	Node         string // whose join it is in the way of
	Address      string // Node's
	ControlPlane string // another node, a healthy control plane
}

// Fault is one thing that goes wrong.
type Fault struct {
	Name  string // kebab-case, unique
	Story string // whom it happens to, with its source
	Roles []config.Role
	// Member says that it is made on a node that has joined. The others are made on a machine that was reset.
	Member bool
	// Symptom is the cause that the join names; "" when the join only has to succeed.
	Symptom symptom.ID
	// Stops says that the join must end with the cause and its remedy, because no repair would be safe.
	Stops  bool
	Inject func(context.Context, Site) error
	// Restore takes away what a repaired join may leave of the fault. It is safe at any time, also when Inject failed half-way; nil is nothing to do.
	Restore func(context.Context, Site) error
}

// faults are sorted by name, which is unique.
var faults = []Fault{
	abandonedLearner, cniDirectoryRemoved, cniPluginMissing, containerdMasked, containerdSocketRemoved, criPluginDisabled, deadContainerd,
	duplicateNode, ipForwardOff, joinKilled, kubeadmMissing, kubeletMasked, kubeletStarted, learnerNeverStarted, leftoverState, missingCNI,
	staleCNI, staleLearner, standaloneKubelet, wipedVoter,
}

// All are the faults, sorted by name.
func All() []Fault { return slices.Clone(faults) }

// For tells whether the fault can be made on a node of the role.
func (f Fault) For(role config.Role) bool { return slices.Contains(f.Roles, role) }

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

// etcdctl runs etcdctl on the control plane.
func (s Site) etcdctl(ctx context.Context, args ...string) error {
	const pki = "/etc/kubernetes/pki/etcd/"
	_, err := s.Run(ctx, s.ControlPlane, append([]string{"etcdctl", "--endpoints", "https://127.0.0.1:2379",
		"--cacert", pki + "ca.crt", "--cert", pki + "peer.crt", "--key", pki + "peer.key"}, args...)...)
	return err
}
