package phase

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8slab/lab/event"
	"k8slab/lab/machine"
	"k8slab/lab/onboard"
	"k8slab/lab/validate"
	"k8slab/lab/wait"
)

// The kinds of changes that a node's arrival is.
const (
	machineKind = "machine"
	joinKind    = "join"
)

// readyPace is how often the Node is looked at while it is awaited; arrivalBudget bounds a wait whose context has no end.
const (
	readyPace     = time.Second
	arrivalBudget = time.Hour
)

const strangeNext = "set onboard: false in cluster.yaml if it is to be a member like any other"

// strangeMachine is a machine that was there before anybody onboarded the node: it is not an onboarding's to remove.
func strangeMachine(node string, state machine.State) error {
	return fmt.Errorf("a machine of %s exists, is %s, and no onboarding made it", node, state)
}

// arrival is the phase in which the node comes into the cluster.
type arrival struct {
	node, role string
	machineID  string
	nodes      nodes
	lab        Lab // nil: the node joins by its own means
	seen       *Evidence
	snapshot   func(context.Context) (validate.Snapshot, error)
}

func newArrival(c Config, members nodes) *arrival {
	return &arrival{
		node: c.Target.Node, role: c.Target.Role, machineID: c.MachineID, nodes: members, lab: c.Lab, seen: c.Seen, snapshot: c.Cluster.TakeSnapshot,
	}
}

func (a *arrival) machineChange() onboard.Change {
	return onboard.Change{
		Kind: machineKind, Params: map[string]string{"node": a.node},
		What: "make the machine of " + a.node, Undo: "remove the machine of " + a.node + " and its disk",
	}
}

func (a *arrival) joinChange() onboard.Change {
	c := onboard.Change{
		Kind: joinKind, Params: map[string]string{"node": a.node},
		What: fmt.Sprintf("join %s as %s", a.node, a.role), Undo: "drain " + a.node + ", take it out of the cluster and delete its Node",
	}
	if a.lab == nil {
		c.What = "let " + a.node + " join"
		c.Undo = "drain " + a.node + " and delete its Node; kubeadm reset on its machine is the user's"
	}
	return c
}

func (a *arrival) Plan(ctx context.Context) ([]string, error) {
	ready := fmt.Sprintf("wait until the Node %s is Ready, as %s", a.node, a.role)
	if a.lab == nil {
		return []string{"wait for " + a.node + " to join by its own means: " + howToJoin, ready}, nil
	}
	state, admitted, err := a.lab.Machine(ctx, a.node)
	if err != nil {
		return nil, err
	}
	if state != machine.Absent && !admitted {
		return nil, fmt.Errorf("%w; next: %s", strangeMachine(a.node, state), strangeNext)
	}
	if state == machine.Running { // MakeMachine would only find it
		return []string{a.joinChange().What, ready}, nil
	}
	return []string{fmt.Sprintf("%s, which is %s", a.machineChange().What, state), a.joinChange().What, ready}, nil
}

func (a *arrival) Run(ctx context.Context, j *onboard.Journal) error {
	if r, err := a.seen.Read(); err != nil || r.Before == nil { // there was no pre-validation
		err := trying(ctx, j, a.node, func(ctx context.Context) error { return a.seen.keepBefore(ctx, a.snapshot) })
		if err != nil {
			j.Warn("%v: there will be nothing to compare with", err)
		}
	}
	var err error
	if a.lab == nil {
		err = j.Do(ctx, a.joinChange(), a.wasMember, a.awaitReady)
	} else {
		err = a.join(ctx, j)
	}
	if err != nil {
		return err
	}
	if err := a.awaitReady(ctx); err != nil {
		return err
	}
	n, err := a.nodes.Node(ctx, a.node)
	if err == nil && n != nil {
		j.Info("%s is Ready: %s, kubelet %s, %s", a.node, n.Role, n.KubeletVersion, n.IP)
	}
	return err
}

// join makes the machine and joins it. What is there already stays as it is: a machine that was begun is admitted, and a healthy member is
// left alone.
func (a *arrival) join(ctx context.Context, j *onboard.Journal) error {
	running := func(ctx context.Context) (bool, error) {
		state, admitted, err := a.lab.Machine(ctx, a.node)
		if err == nil && state != machine.Absent && !admitted {
			err = fmt.Errorf("%w; next: %s", strangeMachine(a.node, state), strangeNext)
		}
		return state == machine.Running, err
	}
	if err := j.Do(ctx, a.machineChange(), running, func(ctx context.Context) error { return a.lab.MakeMachine(ctx, a.node) }); err != nil {
		return err
	}
	// Whoever joined this machine, it is this onboarding that has to take it out before the machine is removed.
	never := func(context.Context) (bool, error) { return false, nil }
	return j.Do(ctx, a.joinChange(), never, func(ctx context.Context) error { return a.lab.Join(ctx, a.node) })
}

// wasMember tells whether the node had joined before the onboarding began: then it stays in a rollback.
func (a *arrival) wasMember(ctx context.Context) (bool, error) {
	began, err := a.seen.began()
	if err != nil {
		return false, err
	}
	n, err := a.nodes.Node(ctx, a.node)
	return n != nil && n.Created.Before(began) && a.ready(ctx) == nil, err
}

// howToJoin is for a node that is not the lab's.
const howToJoin = "run on its machine, as root, what `kubeadm token create --print-join-command` prints on a control plane"

func (a *arrival) awaitReady(ctx context.Context) error {
	var last error
	err := wait.For(ctx, "the Node "+a.node+" to be Ready", arrivalBudget, readyPace, func(ctx context.Context) error {
		last = a.ready(ctx)
		return last
	})
	if err != nil && a.lab == nil && errors.Is(last, errNoNode) {
		err = fmt.Errorf("%w; next: %s", err, howToJoin)
	}
	return err
}

var errNoNode = errors.New("there is no such Node")

// ready returns nil if the Node is Ready, and is this machine in this role.
func (a *arrival) ready(ctx context.Context) error {
	n, err := a.nodes.Node(ctx, a.node)
	switch {
	case err != nil:
		return err
	case n == nil:
		return fmt.Errorf("%s: %w", a.node, errNoNode)
	case a.machineID != "" && n.MachineID != a.machineID:
		return fmt.Errorf("%s: the Node of this name is another machine's, with the machine-id %s", a.node, n.MachineID)
	case !n.Ready:
		return fmt.Errorf("%s: not Ready: %s", a.node, n.Reason)
	case n.Role != a.role:
		return fmt.Errorf("%s: it is a %s and not a %s", a.node, n.Role, a.role) // kubeadm labels a control plane last
	}
	return nil
}

// Verify looks once.
func (a *arrival) Verify(ctx context.Context) error { return a.ready(ctx) }

// machineGone removes a machine that an onboarding made.
type machineGone struct{ lab machines }

func (m machineGone) Undo(ctx context.Context, c onboard.Change) error {
	return m.lab.RemoveMachine(ctx, c.Params["node"])
}

func (m machineGone) Verify(ctx context.Context, c onboard.Change) error {
	state, admitted, err := m.lab.Machine(ctx, c.Params["node"])
	switch {
	case err != nil:
		return err
	case state != machine.Absent:
		return fmt.Errorf("the machine is %s", state)
	case admitted:
		return errors.New("the node still counts as a member of the lab")
	}
	return nil
}

// leaving takes a node out of the cluster.
type leaving struct {
	nodes  nodes
	lab    Lab // nil: its machine is the user's
	events *event.Stream
}

func newLeaving(c Config, members nodes) *leaving {
	return &leaving{nodes: members, lab: c.Lab, events: c.Events}
}

func (l *leaving) Undo(ctx context.Context, c onboard.Change) error {
	node := c.Params["node"]
	step := l.events.Start(node, "drain", 0)
	if err := step.End(l.nodes.Drain(ctx, node, step.Progress)); err != nil {
		return err
	}
	if l.lab == nil {
		return l.nodes.DeleteNode(ctx, node)
	}
	// Only a machine that answers can be reset. One that is off is started for that.
	state, admitted, err := l.lab.Machine(ctx, node)
	if err == nil && (state != machine.Running || !admitted) {
		err = l.lab.MakeMachine(ctx, node)
	}
	if err != nil {
		return err
	}
	return l.lab.Reset(ctx, node)
}

func (l *leaving) Verify(ctx context.Context, c onboard.Change) error {
	node := c.Params["node"]
	if l.lab != nil {
		left, err := l.lab.Traces(ctx, node)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("the cluster has %s", strings.Join(left, ", "))
		}
		return err
	}
	n, err := l.nodes.Node(ctx, node)
	if err == nil && n != nil {
		err = fmt.Errorf("the Node %s is there", node)
	}
	return err
}
