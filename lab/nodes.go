package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8slab/config"
	"k8slab/lab/host"
	"k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/node"
)

// onCluster does something to the cluster that is there, under the lab's lock. Nodes that do not answer are left out of the facts.
func (l *Lab) onCluster(ctx context.Context, verb string, do func(*forming) error) error {
	if !l.state.exists() {
		return ErrNotUp
	}
	release, err := lock(l.cluster.Name, verb)
	if err != nil {
		return err
	}
	defer release()
	if err := errors.Join(l.recount(), l.open()); err != nil {
		return err
	}
	facts, silent := l.facts(ctx, l.cluster.Members())
	c := &forming{lab: l, facts: facts}
	defer c.close()
	joined := c.joinedControlPlanes()
	if len(joined) == 0 {
		return errors.Join(errors.New("no control plane that has joined answers; next: labctl up"), silent)
	}
	if c.view, err = l.openView(ctx, joined[0], joined); err != nil {
		return err
	}
	return errors.Join(do(c), c.retire(ctx))
}

// Made is ErrNotUp for a lab of which nothing was made yet, or nothing is left.
func (l *Lab) Made() error {
	if !l.state.exists() {
		return ErrNotUp
	}
	return nil
}

// unknownNode says what to do about a name that is no member's.
func (l *Lab) unknownNode(name string) error {
	if n, ok := l.cluster.Node(name); ok && n.Onboard {
		return fmt.Errorf("%s is to be onboarded: run `labctl onboard %[1]s`", name)
	}
	var names []string
	for _, n := range l.cluster.Members() {
		names = append(names, n.Name)
	}
	return config.Unknown("node", name, "the lab has", names)
}

// onNode is onCluster for one node, which must answer.
func (l *Lab) onNode(ctx context.Context, verb, name string, do func(*forming, config.Node) error) error {
	n, err := l.member(name)
	if err != nil {
		return err
	}
	return l.onCluster(ctx, verb+" "+name, func(c *forming) error {
		if _, known := c.facts[name]; !known {
			state, err := l.machines.State(ctx, name)
			return errors.Join(fmt.Errorf("%s: it does not answer over SSH; its machine is %s; next: labctl up", name, state), err)
		}
		if err := c.finish(ctx, n); err != nil {
			return err
		}
		return do(c, n)
	})
}

// Join gets one node into the cluster. A healthy member is left as it is; one that is not healthy is an error that says why.
func (l *Lab) Join(ctx context.Context, name string) error {
	return l.onNode(ctx, "labctl join", name, func(c *forming, n config.Node) error {
		nodes, err := c.view.kube.Nodes(ctx)
		if err != nil {
			return err
		}
		if !c.isMember(n, nodes) {
			return c.joinOne(ctx, n)
		}
		step := l.events.Start(n.Name, "validate", 0)
		if bad := firstBad(l.validate(ctx, n.Name)); bad != nil {
			return step.End(fmt.Errorf("%s: it is a member that is not healthy: %s: %s\nnext: labctl repair, or labctl rejoin %s", name, bad.ID, bad.Evidence, name))
		}
		step.EndWith("already a healthy member")
		return nil
	})
}

// Rejoin resets the node, whatever it is, and joins it again.
func (l *Lab) Rejoin(ctx context.Context, name string) error {
	return l.onNode(ctx, "labctl rejoin", name, func(c *forming, n config.Node) error { return c.joinOne(ctx, n) })
}

// Reset takes the node out of the cluster: its etcd member, what kubeadm did on the machine, its Node, and the pods that ran there, in
// this order.
func (l *Lab) Reset(ctx context.Context, name string) error {
	return l.onNode(ctx, "labctl reset", name, func(c *forming, n config.Node) error { return c.takeOut(ctx, n, (*joining).clear) })
}

// Remove takes the node out of the cluster as Reset does, deletes its machine and its disk, and forgets that it was there. Of a machine that
// does not answer nothing is undone.
func (l *Lab) Remove(ctx context.Context, name string) error {
	n, err := l.member(name)
	if err != nil {
		return err
	}
	return l.onCluster(ctx, "labctl reset "+name, func(c *forming) error {
		if err := l.removable(ctx, name); err != nil {
			return err
		}
		if _, answers := c.facts[name]; answers {
			if err := c.finish(ctx, n); err != nil {
				return err
			}
			if err := c.takeOut(ctx, n, (*joining).clear); err != nil {
				return err
			}
			if err := c.retire(ctx); err != nil { // the way to the cluster may lead through this machine
				return err
			}
			c.retired = true
			if err := l.deleteMachine(ctx, name); err != nil {
				return err
			}
		} else if err := c.takeOut(ctx, n, (*joining).clearSilent); err != nil {
			return err
		}
		return l.forget(name)
	})
}

// removable refuses to remove a node before anything is done to it.
func (l *Lab) removable(ctx context.Context, name string) error {
	if err := l.madeByLabctl(ctx, name); err != nil {
		return err
	}
	if l.uri != host.VirtualMachines {
		return nil
	}
	snapshots, err := l.labSnapshots(ctx)
	if err == nil && len(snapshots) > 0 {
		err = fmt.Errorf("snapshot %s of the lab contains %s, and restoring it later would bring back a node without a machine; next: labctl snapshot delete %[1]s",
			snapshots[0].Name, name)
	}
	return err
}

// takeOut takes a node out of the cluster; clear is how.
func (c *forming) takeOut(ctx context.Context, n config.Node, clear func(*joining, context.Context) (join.Outcome, error)) error {
	j := &joining{forming: c, node: n, step: c.lab.events.Start(n.Name, "reset", resetBudget)}
	o, err := clear(j, ctx)
	if err == nil && o.Symptom != "" {
		err = fmt.Errorf("%s: %s: %s\nnext: %s", n.Name, o.Symptom, o.Evidence, o.Hint)
	}
	if err == nil {
		err = c.view.kube.ForgetPods(ctx, n.Name)
	}
	return j.step.End(err)
}

// member finds a node of the lab by name.
func (l *Lab) member(name string) (config.Node, error) {
	members := l.cluster.Members()
	i := slices.IndexFunc(members, hasName(name))
	if i < 0 {
		return config.Node{}, l.unknownNode(name)
	}
	return members[i], nil
}

func (c *forming) joinOne(ctx context.Context, n config.Node) error {
	pin, err := kube.CACertHash(c.view.config)
	if err != nil {
		return err
	}
	return c.joinNode(ctx, n, pin)
}

// validate asks the node whether it is a healthy member.
func (l *Lab) validate(ctx context.Context, name string) ([]join.Check, error) {
	return l.checked(ctx, name, askBudget, "validate")
}

// mend has the node look for what is safe to repair, and repair it unless dryRun.
func (l *Lab) mend(ctx context.Context, name string, dryRun bool) ([]join.Check, error) {
	if dryRun {
		return l.checked(ctx, name, askBudget, "mend", "--dry-run")
	}
	return l.checked(ctx, name, mendBudget, "mend")
}

// checked has the node's labnode check it within the budget.
func (l *Lab) checked(ctx context.Context, name string, budget time.Duration, args ...string) ([]join.Check, error) {
	ctx, cancel := l.within(ctx, budget)
	defer cancel()
	end := l.slow(name, args[0])
	checks, err := ask(ctx, l.nodes[name], args...)
	return checks, end(err)
}

// ask has labnode check the node. Its exit status says what its checks say. An answer that did not come, or not whole, is an error.
func ask(ctx context.Context, on runner, args ...string) ([]join.Check, error) {
	var out node.Answer
	argv := slices.Concat([]string{labnode}, args, []string{"-o", "json"})
	readOnly := slices.Contains(args, "--dry-run") || args[0] != "mend" && !slices.Contains(args, "--fix")
	err := on.Run(ctx, node.Command{Argv: argv, Stdout: &out, ReadOnly: readOnly})
	if exit, ended := errors.AsType[*node.ExitError](err); err != nil && (!ended || exit.Signal != "") {
		return nil, err
	}
	var answer struct{ Checks []join.Check }
	unread := json.Unmarshal([]byte(out.String()), &answer)
	switch {
	case unread == nil && len(answer.Checks) > 0:
		return answer.Checks, nil
	case err != nil: // it says why there is no answer
		return nil, err
	case unread != nil:
		return nil, fmt.Errorf("the answer of labnode %s is not JSON: %w", args[0], unread)
	}
	return nil, fmt.Errorf("the answer of labnode %s has no checks", args[0])
}

// firstBad is the nearest cause among the checks. An answer that did not come is one.
func firstBad(checks []join.Check, err error) *join.Check {
	if err != nil {
		return &join.Check{ID: join.CheckLabnode, Result: join.Blocked, Evidence: "it does not answer: " + err.Error()}
	}
	for i, c := range checks {
		if c.Result == join.Blocked || c.Result == join.Fixable {
			return &checks[i]
		}
	}
	return nil
}
