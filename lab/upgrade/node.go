package upgrade

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8slab/config"
	"k8slab/lab/event"
	"k8slab/lab/session"
	"k8slab/lab/wait"
)

// controlPlane upgrades a control plane: what kubeadm made there, then kubelet.
func (u *upgrade) controlPlane(ctx context.Context, n config.Node, first bool) error {
	err := u.step(stepKubeadm+n.Name, func() error {
		step := u.Events.Start(n.Name, "kubeadm upgrade", 0)
		err := u.handOver(ctx, n, step)
		if err == nil {
			err = u.after.KubeadmUpgrade(ctx, n, first, step)
		}
		return step.End(err)
	})
	if err != nil {
		return err
	}
	return u.kubelet(ctx, n)
}

// worker upgrades a worker.
func (u *upgrade) worker(ctx context.Context, n config.Node) error {
	err := u.step(stepKubeadm+n.Name, func() error {
		step := u.Events.Start(n.Name, "kubeadm upgrade", 0)
		return step.End(u.after.KubeadmUpgrade(ctx, n, false, step))
	})
	if err != nil {
		return err
	}
	return u.kubelet(ctx, n)
}

// whole waits until every member of etcd but the node's is a healthy voter, and the API is ready: only then may the node's be taken away. What
// an interrupted upgrade has left of the node itself is for kubeadm to mend.
func (u *upgrade) whole(ctx context.Context, n config.Node, step *event.Step) error {
	step.Progress("the API ready, and every other etcd member a healthy voter")
	return wait.For(ctx, "the control plane before "+n.Name+" is taken away", u.StabilizeBudget(), u.Pace(), session.ShowWaiting(step, func(ctx context.Context) error {
		statuses, err := u.Admin.Etcd.Status(ctx)
		if err := errors.Join(u.Admin.Kube.Ready(ctx), err); err != nil {
			return err
		}
		var errs []error
		for _, s := range statuses {
			switch {
			case session.OwnsPeer(n, s.Member):
			case s.Err != nil:
				errs = append(errs, fmt.Errorf("member %s: %w", s.Member, s.Err))
			case s.Member.Learner:
				errs = append(errs, fmt.Errorf("member %s is a learner", s.Member))
			}
		}
		return errors.Join(errs...)
	}))
}

// handOver is whole, and then has another member lead etcd.
func (u *upgrade) handOver(ctx context.Context, n config.Node, step *event.Step) error {
	if err := u.whole(ctx, n, step); err != nil {
		return err
	}
	statuses, err := u.Admin.Etcd.Status(ctx)
	for _, s := range statuses {
		if err == nil && session.OwnsPeer(n, s.Member) {
			err = u.Admin.Etcd.Resign(ctx, s.Member.ID)
		}
	}
	return err
}

// kubelet replaces the node's kubelet while no pod that can go elsewhere runs there.
func (u *upgrade) kubelet(ctx context.Context, n config.Node) error {
	return u.step(stepKubelet+n.Name, func() error {
		step := u.Events.Start(n.Name, "kubelet", 0)
		return step.End(u.replaceKubelet(ctx, n, step))
	})
}

func (u *upgrade) replaceKubelet(ctx context.Context, n config.Node, step *event.Step) error {
	if err := u.whole(ctx, n, step); err != nil {
		return err
	}
	step.Progress("drain")
	if err := u.drain(ctx, n, step); err != nil {
		return err
	}
	step.Progress("new kubelet")
	if err := u.programs(ctx, n, true); err != nil {
		return err
	}
	began := time.Now()
	on := u.Nodes[n.Name]
	if err := errors.Join(session.Do(ctx, on, "systemctl", "daemon-reload"), session.Do(ctx, on, "systemctl", "restart", "kubelet")); err != nil {
		return err
	}
	if err := u.awaitVersion(ctx, n, step); err != nil {
		return err
	}
	return u.ReadyAgain(ctx, n, began, step)
}

// drain drains the node. An API server that starts anew, as the only one does with its kubelet, cuts the connection: then it is drained again.
func (u *upgrade) drain(ctx context.Context, n config.Node, step *event.Step) error {
	err := u.Admin.Kube.Drain(ctx, n.Name, step.Progress) // which cordons it
	if _, late := errors.AsType[*wait.TimeoutError](err); err == nil || late {
		return err
	}
	step.Waiting(err)
	if err := u.AwaitAPI(ctx); err != nil {
		return err
	}
	return u.Admin.Kube.Drain(ctx, n.Name, step.Progress)
}

// awaitVersion waits until the node's kubelet has told its new version, which it does some seconds after it has started.
func (u *upgrade) awaitVersion(ctx context.Context, n config.Node, step *event.Step) error {
	return wait.For(ctx, "the new kubelet of "+n.Name, u.StabilizeBudget(), u.Pace(), session.ShowWaiting(step, func(ctx context.Context) error {
		k, err := u.Admin.Kube.Node(ctx, n.Name)
		if err == nil && (k == nil || k.KubeletVersion != u.options.Version) {
			err = fmt.Errorf("%s: its Node does not show kubelet %s yet", n.Name, u.options.Version)
		}
		return err
	}))
}
