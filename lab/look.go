package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"k8slab/lab/etcd"
	"k8slab/lab/join"
	"k8slab/lab/machine"
)

// Traces lists what the cluster still has of a node: its Node, its etcd member, a join that is at work on its machine. It looks once.
func (l *Lab) Traces(ctx context.Context, name string) (found []string, err error) {
	err = l.looking(ctx, func(ctx context.Context, l *Lab, v *view) error {
		k, err := v.kube.Node(ctx, name)
		if err != nil {
			return err
		}
		if k != nil {
			found = append(found, "the Node "+name)
		}
		members, err := v.etcd.Members(ctx)
		if err != nil {
			return err
		}
		n, _ := l.cluster.Node(name)
		if slices.ContainsFunc(members, func(m etcd.Member) bool { return ownsPeer(n, m) }) {
			found = append(found, "its etcd member")
		}
		state, err := l.machines.State(ctx, name)
		if err == nil && state == machine.Running && l.factsOf(ctx, name).Running() {
			found = append(found, "a running kubeadm on its machine")
		}
		return err
	})
	return found, err
}

// factsOf are a node's facts; none of one that does not answer.
func (l *Lab) factsOf(ctx context.Context, name string) (f join.Facts) {
	if n := l.nodes[name]; n != nil {
		f, _ = l.readFacts(ctx, n)
	}
	return f
}

// looking looks at the cluster with an administrator's rights, once. The connections are its own: it may be called again and again.
func (l *Lab) looking(ctx context.Context, look func(context.Context, *Lab, *view) error) error {
	one, err := New(l.described, l.opts)
	if err != nil {
		return err
	}
	defer one.Close()
	ctx, cancel := one.within(ctx, statusBudget)
	defer cancel()
	if err := one.open(); err != nil {
		return err
	}
	v, err := one.anyView(ctx)
	if err != nil {
		return err
	}
	defer v.close()
	return look(ctx, one, v)
}

// Healthy returns what of the proof that `up` gives does not hold now. It looks once.
func (l *Lab) Healthy(ctx context.Context) error {
	return l.looking(ctx, func(ctx context.Context, l *Lab, v *view) error { return errors.Join(l.healthy(ctx, v)...) })
}

// Dial connects to an address in the lab's network, such as a kubelet's. The connection holds until the lab is closed.
func (l *Lab) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if err := l.opened(); err != nil {
		return nil, err
	}
	return l.dialCluster(ctx, network, address)
}

// opened is open for connections that outlive a call: those of before stay as they are.
func (l *Lab) opened() error {
	l.opening.Lock()
	defer l.opening.Unlock()
	if l.host != nil {
		return nil
	}
	return l.open()
}

// Preflight has the node check what a join needs of its machine, and repair what is safe to repair if fix. It is for a machine that is
// in no cluster yet.
func (l *Lab) Preflight(ctx context.Context, name string, fix bool) ([]join.Check, error) {
	if err := l.open(); err != nil {
		return nil, err
	}
	n := l.nodes[name]
	if n == nil {
		return nil, fmt.Errorf("%s has no machine in the lab yet", name)
	}
	if f, err := l.readFacts(ctx, n); err != nil || f.Joined {
		return nil, err
	}
	args := []string{"preflight"}
	if fix {
		args = append(args, "--fix")
	}
	return l.checked(ctx, name, mendBudget, args...)
}
