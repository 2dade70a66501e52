package etcd

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"sync"
	"time"
)

// stall is how long a member that sends a snapshot may be silent.
const stall = 15 * time.Second

// snapshotLimit is the largest database that etcd advises, in bytes. Whoever sends more means to fill the disk.
const snapshotLimit = 8 << 30

// Snapshot is a copy of a member's database, with its checksum at the end, as `etcdctl snapshot save` writes it and `etcdutl snapshot
// restore` reads it.
type Snapshot struct {
	Endpoint string // whom it is from, "" for one that was read from a file
	Size     int64  // bytes, the checksum included
	SHA256   string // of the database, in hexadecimal
	Revision int64  // of the member just before it sent the snapshot; 0 for one that was read from a file
}

// Snapshot writes the database of the member that is furthest ahead, and verifies its checksum. It needs no quorum: one voter that runs is
// enough. When it fails, what was written is of no use.
func (c *Client) Snapshot(ctx context.Context, w io.Writer) (Snapshot, error) {
	sources, revisions, err := c.sources(ctx)
	if err != nil {
		return Snapshot{}, fmt.Errorf("save etcd snapshot: %w", err)
	}
	var errs []error
	for i, endpoint := range sources {
		checked := newChecked(w)
		err := c.snapshotAt(ctx, endpoint, checked)
		if err == nil {
			err = checked.verify()
		}
		if err == nil {
			return Snapshot{Endpoint: endpoint, Size: checked.size, SHA256: checked.SHA256(), Revision: revisions[i]}, nil
		}
		errs = append(errs, fmt.Errorf("from %s: %w", endpoint, err))
		if checked.size > 0 { // another member's would begin behind this one's
			break
		}
	}
	return Snapshot{}, fmt.Errorf("save etcd snapshot: %w", errors.Join(errs...))
}

// sources are the endpoints of voters that run and their revisions, the best first: one that has a leader, then the one that has applied most.
func (c *Client) sources(ctx context.Context) (best []string, revisions []int64, err error) {
	endpoints := c.order()
	answers, errs := make([]answer, len(endpoints)), make([]error, len(endpoints))
	var wg sync.WaitGroup
	for i, endpoint := range endpoints {
		wg.Go(func() { answers[i], errs[i] = c.statusAt(ctx, endpoint) })
	}
	wg.Wait()
	var usable []int
	for i := range endpoints {
		if errs[i] == nil && !answers[i].learner {
			usable = append(usable, i)
		}
	}
	if len(usable) == 0 {
		return nil, nil, errors.Join(append(errs, errors.New("no voter runs"))...)
	}
	slices.SortStableFunc(usable, func(i, j int) int {
		a, b := answers[i], answers[j]
		return -cmp.Or(cmp.Compare(count(a.leader != 0), count(b.leader != 0)), cmp.Compare(a.term, b.term), cmp.Compare(a.applied, b.applied))
	})
	for _, i := range usable {
		best, revisions = append(best, endpoints[i]), append(revisions, answers[i].revision)
	}
	return best, revisions, nil
}

// snapshotAt copies one member's snapshot, and gives up when nothing has come for a while: how long the whole may take depends on its size.
func (c *Client) snapshotAt(ctx context.Context, endpoint string, w io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.closed, func() { cancel(errors.New("the client is closed")) })()
	silent := fmt.Errorf("nothing came for %s", stall)
	watch := time.AfterFunc(stall, func() { cancel(silent) })
	defer watch.Stop()
	err := c.remote.snapshot(ctx, endpoint, writerFunc(func(p []byte) (int, error) {
		watch.Reset(stall)
		return w.Write(p)
	}))
	if err != nil && errors.Is(context.Cause(ctx), silent) {
		return silent
	}
	return err
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// CheckSnapshot reads a snapshot to its end and verifies its checksum.
func CheckSnapshot(r io.Reader) (Snapshot, error) {
	checked := newChecked(io.Discard)
	if _, err := io.Copy(checked, r); err != nil {
		return Snapshot{}, err
	}
	return Snapshot{Size: checked.size, SHA256: checked.SHA256()}, checked.verify()
}

// checked passes a snapshot on and computes the checksum of all but its end, which is the checksum that its maker computed.
type checked struct {
	w    io.Writer
	sum  hash.Hash
	tail []byte // the last bytes, at most as many as a checksum has
	size int64
	most int64
}

func newChecked(w io.Writer) *checked {
	return &checked{w: w, sum: sha256.New(), most: snapshotLimit + sha256.Size}
}

func (c *checked) Write(p []byte) (int, error) {
	if c.size+int64(len(p)) > c.most {
		return 0, fmt.Errorf("it is larger than %d GiB, which etcd advises for no database", snapshotLimit>>30)
	}
	n, err := c.w.Write(p)
	c.size += int64(n)
	c.tail = append(c.tail, p[:n]...)
	if before := len(c.tail) - sha256.Size; before > 0 {
		c.sum.Write(c.tail[:before])
		c.tail = append(c.tail[:0], c.tail[before:]...)
	}
	return n, err
}

// SHA256 is the checksum of what came before the end, in hexadecimal.
func (c *checked) SHA256() string { return hex.EncodeToString(c.sum.Sum(nil)) }

// verify compares the checksums. A database is made of pages, multiples of 512 bytes, by which etcd tells whether there is a checksum at
// all.
func (c *checked) verify() error {
	switch {
	case c.size <= sha256.Size || c.size%512 != sha256.Size:
		return fmt.Errorf("%d bytes are not a snapshot with a checksum: it was cut off, or is a copy of a data directory's file", c.size)
	case !bytes.Equal(c.sum.Sum(nil), c.tail):
		return fmt.Errorf("the snapshot is damaged: its checksum is sha256:%x, its content has sha256:%s", c.tail, c.SHA256())
	}
	return nil
}
