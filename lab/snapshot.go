package lab

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
)

// Snapshot is a saved copy of etcd's database. It has every secret of the cluster.
type Snapshot struct {
	File     string `json:"file"`
	Size     int64  `json:"size"`     // bytes
	Checksum string `json:"checksum"` // sha256:… of the database
	Endpoint string `json:"endpoint"` // the member that it is from
}

// SnapshotSave saves etcd's database to a file that only its owner can read, whole or not at all. It needs one voter that runs, not a
// quorum.
func (l *Lab) SnapshotSave(ctx context.Context, file string) (Snapshot, error) {
	v, err := l.openAny(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	defer v.close()
	return saveSnapshot(ctx, v.etcd, file)
}

// snapshooter sends a verified snapshot.
type snapshooter interface {
	Snapshot(ctx context.Context, w io.Writer) (etcd.Snapshot, error)
}

func saveSnapshot(ctx context.Context, from snapshooter, file string) (Snapshot, error) {
	var saved etcd.Snapshot
	err := atomicfile.Export(file, func(w io.Writer) (err error) {
		saved, err = from.Snapshot(ctx, w)
		return err
	})
	return Snapshot{File: file, Size: saved.Size, Checksum: "sha256:" + saved.SHA256, Endpoint: saved.Endpoint}, err
}

// keptSnapshots is how many snapshots the lab keeps of its own accord.
const keptSnapshots = 5

// keepSnapshot saves a snapshot into the lab's state, where the oldest make room for new ones.
func (l *Lab) keepSnapshot(ctx context.Context, from snapshooter, why string) error {
	step := l.events.Start("", "etcd snapshot", 0)
	dir := l.state.path("snapshots")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return step.End(err)
	}
	s, err := saveSnapshot(ctx, from, filepath.Join(dir, fmt.Sprintf("%s-%s.db", time.Now().UTC().Format(stampFormat), why)))
	if err != nil {
		return step.End(err)
	}
	step.EndWith(fmt.Sprintf("%s, %d KiB", s.File, s.Size>>10))
	all, err := filepath.Glob(filepath.Join(dir, "*.db")) // in order of time, by their names
	for ; err == nil && len(all) > keptSnapshots; all = all[1:] {
		err = os.Remove(all[0])
	}
	return err
}

// stampFormat names what was made at a moment; its order is that of time.
const stampFormat = "20060102T150405"

// checkedSnapshot opens a snapshot after verifying its checksum.
func checkedSnapshot(file string) (*os.File, error) {
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
