package etcdadmin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8slab/lab/atomicfile"
	"k8slab/lab/etcd"
	"k8slab/lab/session"
)

// Snapshot is a saved copy of etcd's database, with all secrets of the cluster.
type Snapshot struct {
	File     string `json:"file"`
	Size     int64  `json:"size"`     // bytes
	Checksum string `json:"checksum"` // sha256:… of the database
	Endpoint string `json:"endpoint"` // the member that sent it
	Revision int64  `json:"revision"` // of that member, when it began to send
}

// snapshooter sends a verified snapshot.
type snapshooter interface {
	Snapshot(ctx context.Context, w io.Writer) (etcd.Snapshot, error)
}

// SaveSnapshot saves etcd's database atomically to a file that only its owner can read. It needs a running voter, but no quorum.
func SaveSnapshot(ctx context.Context, from snapshooter, file string) (Snapshot, error) {
	var saved etcd.Snapshot
	err := atomicfile.Export(file, func(w io.Writer) (err error) {
		saved, err = from.Snapshot(ctx, w)
		return err
	})
	return Snapshot{File: file, Size: saved.Size, Checksum: "sha256:" + saved.SHA256, Endpoint: saved.Endpoint, Revision: saved.Revision}, err
}

// keptSnapshots is how many of its own snapshots the lab keeps.
const keptSnapshots = 5

// KeepSnapshot saves a snapshot into the lab's state, and removes the oldest ones there.
func KeepSnapshot(ctx context.Context, s *session.Session, from snapshooter, why string) error {
	step := s.Events.Start("", "etcd snapshot", 0)
	dir := s.Path("snapshots")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return step.End(err)
	}
	saved, err := SaveSnapshot(ctx, from, filepath.Join(dir, fmt.Sprintf("%s-%s.db", time.Now().UTC().Format(StampFormat), why)))
	if err != nil {
		return step.End(err)
	}
	step.EndWith(fmt.Sprintf("%s, %d KiB", saved.File, saved.Size>>10))
	all, err := filepath.Glob(filepath.Join(dir, "*.db")) // in order of time, by their names
	for ; err == nil && len(all) > keptSnapshots; all = all[1:] {
		err = os.Remove(all[0])
	}
	return err
}

// StampFormat is for names that sort by time.
const StampFormat = "20060102T150405"

// CheckedSnapshot opens a snapshot after verifying its checksum.
func CheckedSnapshot(file string) (*os.File, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	if _, err = etcd.CheckSnapshot(f); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", file, err), f.Close())
	}
	return f, nil
}
