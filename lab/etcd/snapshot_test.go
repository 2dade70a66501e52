package etcd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// database is pages of bytes, followed by their checksum.
func database(pages int) []byte {
	data := bytes.Repeat([]byte("0123456789abcdef"), pages*512/16)
	sum := sha256.Sum256(data)
	return append(data, sum[:]...)
}

// inParts sends the data in parts of n bytes.
func inParts(data []byte, n int) func(context.Context, io.Writer) error {
	return func(_ context.Context, w io.Writer) error {
		for part := range slices.Chunk(data, n) {
			if _, err := w.Write(part); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestSnapshotSource(t *testing.T) {
	good := database(3)
	tests := []struct {
		name    string
		arrange func(f *fakeRemote)
		from    string
		err     string
	}{
		{"one that has a leader", func(f *fakeRemote) {
			f.answer(1, answer{id: 1, term: 9, applied: 99})
			f.answer(2, answer{id: 2, leader: 2, term: 3, applied: 7, revision: 2000})
			f.stores[at(2)] = inParts(good, 100)
		}, at(2), ""},
		{"the one that has applied most", func(f *fakeRemote) {
			f.answer(1, answer{id: 1, term: 3, applied: 7})
			f.answer(2, answer{id: 2, term: 3, applied: 8, revision: 2000})
			f.stores[at(2)] = inParts(good, 512)
		}, at(2), ""},
		{"the only one that runs", func(f *fakeRemote) {
			f.down(1)
			f.answer(2, answer{id: 2})
			f.stores[at(2)] = inParts(good, 1)
		}, at(2), ""},
		{"not a learner", func(f *fakeRemote) {
			f.answer(1, answer{id: 1})
			f.answer(2, answer{id: 2, learner: true, applied: 9})
			f.stores[at(1)] = inParts(good, 1<<20)
		}, at(1), ""},
		{"another when the best sends nothing", func(f *fakeRemote) {
			f.answer(1, answer{id: 1})
			f.answer(2, answer{id: 2, leader: 2})
			f.stores[at(2)] = func(context.Context, io.Writer) error { return errors.New("refused") }
			f.stores[at(1)] = inParts(good, 1000)
		}, at(1), ""},
		{"no other once something was written", func(f *fakeRemote) {
			f.answer(1, answer{id: 1})
			f.answer(2, answer{id: 2, leader: 2})
			f.stores[at(2)] = inParts(good[:600], 100)
		}, "", "from https://m2:2379: 600 bytes are not a snapshot"},
		{"nobody runs", func(f *fakeRemote) { f.down(1); f.down(2) }, "", "no voter runs"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t)
			tt.arrange(f)
			var out bytes.Buffer
			got, err := f.client(nil, at(1), at(2)).Snapshot(t.Context(), &out)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil || got.Endpoint != tt.from || got.Size != int64(len(good)) || !bytes.Equal(out.Bytes(), good) {
				t.Errorf("got %+v and %d bytes, error %v", got, out.Len(), err)
			}
			if source, _ := f.statuses[tt.from](t.Context()); got.Revision != source.revision {
				t.Errorf("revision %d, want %d", got.Revision, source.revision)
			}
			if want := fmt.Sprintf("%x", good[len(good)-32:]); got.SHA256 != want {
				t.Errorf("checksum %s, want %s", got.SHA256, want)
			}
		})
	}
}

func TestSnapshotThatStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.answer(1, answer{id: 1})
		f.stores[at(1)] = func(ctx context.Context, w io.Writer) error {
			for range 10 { // slow is no reason to give up
				time.Sleep(stall - time.Second)
				if ctx.Err() != nil {
					return ctx.Err()
				}
				_, _ = w.Write(make([]byte, 512))
			}
			<-ctx.Done()
			return ctx.Err()
		}
		start := time.Now()
		_, err := f.client(nil, at(1)).Snapshot(t.Context(), io.Discard)
		if err == nil || !strings.Contains(err.Error(), "nothing came for 15s") {
			t.Errorf("error %v", err)
		}
		if took, want := time.Since(start), 10*(stall-time.Second)+stall; took != want {
			t.Errorf("took %s, want %s", took, want)
		}
	})
}

func TestSnapshotKeepsWriteErrors(t *testing.T) {
	f := newFake(t)
	f.answer(1, answer{id: 1})
	f.stores[at(1)] = inParts(database(1), 10)
	full := errors.New("no space left")
	_, err := f.client(nil, at(1)).Snapshot(t.Context(), writerFunc(func([]byte) (int, error) { return 0, full }))
	if !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
}

func TestSnapshotHasALimit(t *testing.T) {
	data := database(2)
	for most, refused := range map[int64]bool{int64(len(data)): false, int64(len(data)) - 1: true} {
		c := newChecked(io.Discard)
		c.most = most
		_, err := io.Copy(c, bytes.NewReader(data))
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "larger than 8 GiB") {
			t.Errorf("%d bytes with a limit of %d: %v", len(data), most, err)
		}
	}
}

func TestCheckSnapshot(t *testing.T) {
	good := database(2)
	flipped := slices.Clone(good)
	flipped[700] ^= 1
	tests := []struct {
		name string
		data []byte
		want string // "" for a good one
	}{
		{"good", good, ""},
		{"a flipped bit", flipped, "damaged"},
		{"cut off at a page", good[:512], "512 bytes are not a snapshot"},
		{"cut off where a checksum could be", good[:512+32], "damaged"},
		{"cut off anywhere", good[:777], "777 bytes are not a snapshot"},
		{"a checksum alone", good[len(good)-32:], "32 bytes are not a snapshot"},
		{"empty", nil, "0 bytes are not a snapshot"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := CheckSnapshot(bytes.NewReader(tt.data))
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if got.Size != int64(len(tt.data)) {
				t.Errorf("size %d, want %d", got.Size, len(tt.data))
			}
		})
	}
}
