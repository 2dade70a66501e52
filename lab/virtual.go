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

// LabSnapshots lists the lab's snapshots, the oldest first. One that an interrupted save left has nodes missing.
func (l *Lab) LabSnapshots(ctx context.Context) ([]provision.Snapshot, error) {
	return ask(ctx, l, access{check: provision.HaveVMs}, provision.Snapshots)
}

// LabSnapshotSave saves the whole lab at one moment. What an interrupted save of the name left is replaced, a whole snapshot is not.
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

// LabSnapshotRestore makes the lab what it was when the snapshot was saved, and proves it healthy. What happened since is lost. Where the
// computer was restarted meanwhile, libvirt and the network come first.
func (l *Lab) LabSnapshotRestore(ctx context.Context, name string) error {
	return l.withSnapshots(ctx, "labctl snapshot restore", func(ctx context.Context, s *session.Session) error {
		since, err := provision.RestoreSnapshot(ctx, s, name)
		if err != nil {
			return err
		}
		return health.ProveSince(ctx, s, since)
	})
}

// withSnapshots does something with the lab of virtual machines, whose libvirt is started, as it must be after a restart of the computer.
func (l *Lab) withSnapshots(ctx context.Context, verb string, do func(context.Context, *session.Session) error) error {
	return l.with(ctx, access{verb: verb, makes: true, check: provision.HaveVMs}, func(s *session.Session) error {
		ctx, cancel := context.WithTimeoutCause(ctx, provision.SnapshotBudget+health.SinceBudget, errors.New("its budget ran out"))
		defer cancel()
		return do(ctx, s)
	})
}

// VagrantBox makes the node image's box, and what vagrant needs beside it: the lab's identity and keys.
func (l *Lab) VagrantBox(ctx context.Context) (image.Box, error) {
	return ask(ctx, l, access{verb: "labctl vagrant box", makes: true, check: provision.NeedVMs}, provision.MakeVagrantBox)
}

// VagrantPrepare makes what the node's machine needs before vagrant can make or start it: the lab's network, and the node's own files.
func (l *Lab) VagrantPrepare(ctx context.Context, name string) error {
	check := func(closed state.Lab) error {
		if _, ok := closed.Cluster.Node(name); !ok {
			_, err := closed.Member(name)
			return err
		}
		return errors.Join(provision.NeedVMs(closed), closed.CheckDescribed())
	}
	return l.with(ctx, access{verb: "labctl vagrant prepare " + name, makes: true, check: check}, func(s *session.Session) error {
		n, _ := s.Cluster.Node(name)
		return provision.PrepareVagrant(ctx, s, n)
	})
}
