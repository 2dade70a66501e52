package lab

import (
	"context"
	"errors"

	"k8slab/lab/health"
	"k8slab/lab/image"
	"k8slab/lab/provision"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// LabSnapshots lists the lab's snapshots: see provision.Snapshots.
func (l *Lab) LabSnapshots(ctx context.Context) ([]provision.Snapshot, error) {
	return ask(ctx, l, access{check: provision.HaveVMs}, provision.Snapshots)
}

// LabSnapshotSave saves the whole lab at one moment: see provision.SaveSnapshot.
func (l *Lab) LabSnapshotSave(ctx context.Context, name string) error {
	if err := provision.CheckSnapshotName(name); err != nil {
		return err
	}
	return l.withSnapshots(ctx, "labctl snapshot save", func(ctx context.Context, s *session.Session) error { return provision.SaveSnapshot(ctx, s, name) })
}

// LabSnapshotDelete deletes the snapshot from every machine that has it.
func (l *Lab) LabSnapshotDelete(ctx context.Context, name string) error {
	return l.withSnapshots(ctx, "labctl snapshot delete", func(ctx context.Context, s *session.Session) error { return provision.DeleteSnapshot(ctx, s, name) })
}

// LabSnapshotRestore restores the lab to the moment of the snapshot, and proves it healthy. What happened since is lost.
func (l *Lab) LabSnapshotRestore(ctx context.Context, name string) error {
	return l.withSnapshots(ctx, "labctl snapshot restore", func(ctx context.Context, s *session.Session) error {
		since, err := provision.RestoreSnapshot(ctx, s, name)
		if err != nil {
			return err
		}
		return health.ProveSince(ctx, s, since)
	})
}

// withSnapshots calls do with a lab of virtual machines. It first starts libvirt, which may not run after a restart of the computer.
func (l *Lab) withSnapshots(ctx context.Context, verb string, do func(context.Context, *session.Session) error) error {
	return l.with(ctx, access{verb: verb, makes: true, check: provision.HaveVMs}, func(s *session.Session) error {
		ctx, cancel := context.WithTimeoutCause(ctx, provision.SnapshotBudget+health.SinceBudget, errors.New("its budget ran out"))
		defer cancel()
		return do(ctx, s)
	})
}

// VagrantBox makes vagrant's box of the node image: see provision.MakeVagrantBox.
func (l *Lab) VagrantBox(ctx context.Context) (image.Box, error) {
	return ask(ctx, l, access{verb: "labctl vagrant box", makes: true, check: provision.NeedVMs}, provision.MakeVagrantBox)
}

// VagrantPrepare prepares what vagrant needs for the node's machine: see provision.PrepareVagrant.
func (l *Lab) VagrantPrepare(ctx context.Context, name string) error {
	check := func(closed state.Lab) error {
		if _, ok := closed.Cluster.Node(name); !ok {
			_, err := closed.Member(name)
			return err
		}
		return errors.Join(provision.NeedVMs(closed), closed.CheckDescribed(false))
	}
	return l.with(ctx, access{verb: "labctl vagrant prepare " + name, makes: true, check: check}, func(s *session.Session) error {
		n, _ := s.Cluster.Node(name)
		return provision.PrepareVagrant(ctx, s, n)
	})
}
