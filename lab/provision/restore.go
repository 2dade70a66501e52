package provision

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"k8slab/lab/event"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// RestoreSnapshot makes the machines what they were when the snapshot was saved. It returns when they went on. Where the computer was restarted
// meanwhile, the network comes first.
func RestoreSnapshot(ctx context.Context, s *session.Session, name string) (since time.Time, err error) {
	all, err := Snapshots(ctx, s)
	if err != nil {
		return since, err
	}
	if err := restorable(name, all); err != nil {
		return since, err
	}
	if err := Network(ctx, s); err != nil {
		return since, err
	}
	machines, err := saverOf(s)
	if err != nil {
		return since, err
	}
	step := s.Events.Start("", "snapshot "+name, SnapshotBudget)
	since, err = restoreAll(ctx, s, machines, name, step)
	return since, step.End(err)
}

// restoreAll returns when the machines went on. Until they all do, the lab is of two moments, which its state says: up would make a cluster
// of it whose etcd members have forgotten what they agreed to.
func restoreAll(ctx context.Context, s *session.Session, machines snapshotter, name string, step *event.Step) (since time.Time, err error) {
	if err := s.Write(restoringFile, []byte(name)); err != nil {
		return since, err
	}
	whole, cancel := finishing(ctx)
	defer cancel()
	step.Progress("restoring memory and disks")
	if err := everyMachine(s, func(n string) error { return machines.RevertSnapshot(whole, n, name) }); err != nil {
		return since, fmt.Errorf("%w\nnext: %s", err, restoreAgain(name))
	}
	step.Progress("going on")
	since = time.Now()
	if err := goOn(whole, s); err != nil {
		return since, err
	}
	return since, os.Remove(s.Path(restoringFile))
}

// restoringFile has the name of the snapshot that is being restored.
const restoringFile = "restoring"

func restoreAgain(name string) string {
	return fmt.Sprintf("labctl snapshot restore %s, or labctl down", name)
}

// CheckWhole refuses a lab whose restore was interrupted.
func CheckWhole(l state.Lab) error {
	name, err := os.ReadFile(l.Path(restoringFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("restoring snapshot %s was interrupted, so the machines are of two moments; next: %s", name, restoreAgain(string(name)))
}
