package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"k8slab/lab/event"
	"k8slab/lab/wait"
)

// apiBudget bounds the wait for an API server that was ready when it was saved.
const apiBudget = 2 * time.Minute

// leaseBudget bounds the wait for kubelets, which renew their Leases every 10 s and back off after a failure.
const leaseBudget = 2 * time.Minute

// LabSnapshotRestore makes the lab what it was when the snapshot was saved, and proves it healthy. What happened since is lost. Where the
// computer was restarted meanwhile, libvirt and the network come first.
func (l *Lab) LabSnapshotRestore(ctx context.Context, name string) error {
	return l.withSnapshots(ctx, "labctl snapshot restore", func(ctx context.Context, all []WholeSnapshot) error {
		if err := restorable(name, all); err != nil {
			return err
		}
		if err := l.network(ctx); err != nil {
			return err
		}
		step := l.events.Start("", "snapshot "+name, labSnapshotBudget)
		since, err := l.restoreAll(ctx, name, step)
		if err := step.End(err); err != nil {
			return err
		}
		return l.proveSince(ctx, since)
	})
}

// restoreAll returns when the machines went on. Until they all do, the lab is of two moments, which its state says: up would make a cluster
// of it whose etcd members have forgotten what they agreed to.
func (l *Lab) restoreAll(ctx context.Context, name string, step *event.Step) (since time.Time, err error) {
	if err := l.state.write(restoringFile, []byte(name)); err != nil {
		return since, err
	}
	whole, cancel := finishing(ctx)
	defer cancel()
	step.Progress("restoring memory and disks")
	if err := l.everyMachine(func(n string) error { return l.machines.RevertSnapshot(whole, n, name) }); err != nil {
		return since, fmt.Errorf("%w\nnext: %s", err, restoreAgain(name))
	}
	step.Progress("going on")
	since = time.Now()
	if err := l.goOn(whole); err != nil {
		return since, err
	}
	return since, os.Remove(l.state.path(restoringFile))
}

// restoringFile has the name of the snapshot that is being restored.
const restoringFile = "restoring"

func restoreAgain(name string) string {
	return fmt.Sprintf("labctl snapshot restore %s, or labctl down", name)
}

// wholeLab refuses a lab whose restore was interrupted.
func (l *Lab) wholeLab() error {
	name, err := os.ReadFile(l.state.path(restoringFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("restoring snapshot %s was interrupted, so the machines are of two moments; next: %s", name, restoreAgain(string(name)))
}

// proveSince waits for the API server to answer, for every kubelet to have renewed its Lease since the moment, and for the cluster to be
// healthy: until then what the API server says of nodes is of the past.
func (l *Lab) proveSince(ctx context.Context, since time.Time) error {
	var v *view
	defer func() {
		if v != nil {
			v.close()
		}
	}()
	step := l.events.Start("", "API server", apiBudget)
	err := wait.For(ctx, "the API server at "+l.endpoint(), apiBudget, l.pace(), telling(step, func(ctx context.Context) (err error) {
		if v == nil {
			if v, err = l.anyView(ctx); err != nil {
				return err
			}
		}
		return v.kube.Ready(ctx)
	}))
	if err := step.End(err); err != nil {
		return err
	}
	step = l.events.Start("", "leases", leaseBudget)
	err = wait.For(ctx, "every kubelet to renew its Lease", leaseBudget, l.pace(), telling(step, func(ctx context.Context) error {
		renewed, err := v.kube.LeaseRenewals(ctx)
		if err != nil {
			return err
		}
		for _, n := range l.cluster.Members() {
			if !renewed[n.Name].After(since) {
				err = errors.Join(err, fmt.Errorf("%s renewed it at %s", n.Name, renewed[n.Name].Format(time.RFC3339)))
			}
		}
		return err
	}))
	if err := step.End(err); err != nil {
		return err
	}
	return l.prove(ctx, v)
}
