package bringup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8slab/config"
	"k8slab/lab/addon"
	"k8slab/lab/cluster"
	"k8slab/lab/machine"
	"k8slab/lab/provision"
	"k8slab/lab/repair"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// stageRemove is the part of the plan that Prune does. It is none of up's stages, because it needs the lab as it was made.
const stageRemove Stage = "remove"

func describeRemovals(l state.Lab) (steps []Step) {
	for _, n := range l.Leaving() {
		action := "drain it, and remove it from the cluster, with its machine and disk"
		if n.Role == config.ControlPlane {
			action = "drain it, and remove its etcd member if the others keep a quorum, and it from the cluster, with its machine and disk"
		}
		steps = append(steps, Step{Stage: stageRemove, Node: n.Name, Action: action})
	}
	return steps
}

// Prune removes the first of the nodes that have to leave, and returns how many are left. First it gets the machines that exist to answer, as
// up does, and checks the options of machines that up makes after it. Those come later: the lab's description has to be read again.
func Prune(ctx context.Context, s *session.Session) (left int, err error) {
	leaving := s.Leaving()
	if len(leaving) == 0 {
		return 0, nil
	}
	for _, n := range leaving {
		err = errors.Join(err, cluster.Removable(ctx, s, n.Name))
	}
	if err != nil {
		return 0, err
	}
	if slices.ContainsFunc(s.Differences, func(d state.Difference) bool { return config.HasNode(s.After.Members(), d.Node) }) { // up makes its machine
		after := *s
		after.Cluster = s.After
		if err := checkOptions(ctx, &after); err != nil {
			return 0, err
		}
	}
	c, err := openAsMade(ctx, s, leaving)
	if c != nil {
		defer c.Close()
	}
	if err != nil {
		return 0, err
	}
	if c.Admin == nil { // up was interrupted before there was a cluster
		if err := provision.Delete(ctx, s, leaving[0].Name); err != nil {
			return 0, err
		}
		return len(leaving) - 1, s.Forget(leaving[0].Name)
	}
	return len(leaving) - 1, c.Evict(ctx, leaving[0])
}

// openAsMade starts the machines that exist and opens the cluster that they are. A machine that is to leave need not answer, unless nobody
// else can tell whether there is a cluster. Without one the run has no Admin.
func openAsMade(ctx context.Context, s *session.Session, leaving []config.Node) (*cluster.Run, error) {
	absent, err := provision.Absent(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := provision.Network(ctx, s); err != nil {
		return nil, err
	}
	exist := slices.DeleteFunc(s.Cluster.Members(), func(n config.Node) bool { return config.HasNode(absent, n.Name) })
	stay := slices.DeleteFunc(slices.Clone(exist), func(n config.Node) bool { return config.HasNode(leaving, n.Name) })
	leave := slices.DeleteFunc(exist, func(n config.Node) bool { return config.HasNode(stay, n.Name) })
	for _, n := range leave { // etcd may need it for a quorum until then; whether it starts is not important
		_ = s.Machines.Ensure(ctx, machine.Spec{Node: n.Name})
	}
	if err := provision.For(s).Boot(ctx, stay, machine.Boot{}); err != nil {
		return nil, err
	}
	facts, err := s.Facts(ctx, stay)
	if err != nil {
		return nil, err
	}
	theirs, silent := s.Facts(ctx, leave)
	maps.Copy(facts, theirs)
	c := cluster.New(s, facts, addon.Importer(s))
	if len(c.JoinedControlPlanes()) > 0 {
		return c, c.Initialise(ctx)
	}
	if silent != nil && slices.ContainsFunc(leave, func(n config.Node) bool { return n.Role == config.ControlPlane && !c.Answers(n.Name) }) {
		return nil, fmt.Errorf("whether there is a cluster is not known: %w\nnext: labctl repair; or labctl down, then labctl up", silent)
	}
	return c, nil
}

func describeReconfigure(l state.Lab) []Step {
	if !l.Reconfigures() {
		return nil
	}
	c := l.Reconfigured()
	steps := []Step{{Action: with("have kubeadm record the options, and kube-proxy read them", clusterOptions(c.Kubernetes)...), After: "all joins"}}
	for _, n := range append(c.ControlPlanes(), c.Workers()...) {
		steps = append(steps, Step{Node: n.Name, After: "the node before is healthy",
			Action: with("have kubeadm make its files again, restart what reads one that changes, and set labels and taints", nodeOptions(c, n, "")...)})
	}
	return steps
}

// reconfigure gives the nodes the options that cluster.yaml has now.
func (u *upRun) reconfigure(ctx context.Context) error {
	if !u.Reconfigures() {
		return nil
	}
	after := u.reconfigured()
	return u.Reconfigure(func(was []*config.Cluster) error {
		err := session.ForEachNode(after.Cluster.Members(), func(n config.Node) error { return provision.WritePatches(ctx, after, n) })
		if err != nil {
			return err
		}
		return repair.Reconfigure(ctx, u.run.Of(after), was)
	})
}

// reconfigured is the session with the options that cluster.yaml has now.
func (u *upRun) reconfigured() *session.Session {
	after := *u.Session
	after.Cluster = u.Reconfigured()
	return &after
}

func describeResizes(l state.Lab) (steps []Step) {
	how := "drain it, and restart its machine with"
	if machine.ResizesLive(l.URI) {
		how = "while the machine runs:"
	}
	for _, n := range l.Resizing() {
		r := l.Cluster.Resource(n.Role)
		steps = append(steps, Step{Node: n.Name, Action: fmt.Sprintf("%s %d CPUs, %d MiB", how, r.CPUs, r.Memory), After: "the machine before is healthy"})
	}
	return steps
}

// resize gives machines another size, one after another. What the lab was made with is the old one until all have the new one.
func (u *upRun) resize(ctx context.Context) error {
	nodes := u.Resizing()
	for _, n := range nodes {
		if err := u.run.Resize(ctx, n); err != nil {
			return err
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	return u.Resized()
}
