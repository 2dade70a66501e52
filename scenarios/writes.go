package scenarios

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// countKey is the key of etcd, outside of the API server's own, in which a writer counts.
const countKey = "/k8slab/writes"

// writesBudget is how long etcd may refuse writes during a fault that keeps the quorum. An election takes 2 s, more on a loaded computer.
const writesBudget = 10 * time.Second

// writesPause lies between an acknowledged write and the next. Each starts half a dozen processes on a node that has no etcdctl of its own.
const writesPause = time.Second

// writesRetry lies between two tries of a write that was not acknowledged.
const writesRetry = 200 * time.Millisecond

// writer counts in one key of etcd, one write after the other.
type writer struct {
	target       Target
	acknowledged int           // the last number that etcd acknowledged
	gap          time.Duration // the longest that a write took, with its tries
	refused      time.Duration // the longest with a try that failed
	why          error         // of that try
}

// startWriter has a writer count through the healthy control plane until stop is called.
func startWriter(ctx context.Context, target Target) (w *writer, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	w = &writer{target: target}
	var wg sync.WaitGroup
	wg.Go(func() { w.count(ctx) })
	return w, func() {
		cancel()
		wg.Wait()
	}
}

// count writes until it is cancelled. A write that is being tried then counts with its time so far if it was refused.
func (w *writer) count(ctx context.Context) {
	for begun := time.Now(); ; {
		_, err := w.target.etcd(ctx, "--command-timeout="+w.target.patiently(3*time.Second).String(), "put", countKey, strconv.Itoa(w.acknowledged+1))
		if ctx.Err() != nil {
			return // it may or may not be there
		}
		took := time.Since(begun)
		w.gap = max(w.gap, took)
		if err != nil && took > w.refused {
			w.refused, w.why = took, err
		}
		pause := writesRetry
		if err == nil {
			w.acknowledged++
			pause = writesPause
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(w.target.patiently(pause)):
		}
		if err == nil {
			begun = time.Now()
		}
	}
}

// lostBudget is how long is waited for etcd to say what it has.
const lostBudget = 10 * time.Second

// lost is how many of the acknowledged writes etcd does not have.
func (w *writer) lost(ctx context.Context) (lost int, err error) {
	if w.acknowledged == 0 {
		return 0, nil
	}
	return lost, w.target.await(ctx, "etcd to say what it has", lostBudget, time.Second, func(ctx context.Context) error {
		out, err := w.target.etcd(ctx, "get", "--print-value-only", countKey)
		if err != nil {
			return err
		}
		last := 0
		if out = strings.TrimSpace(out); out != "" {
			last, err = strconv.Atoi(out)
		}
		lost = max(0, w.acknowledged-last)
		return err
	})
}

// told puts into the data how the writes went, and says why they did not go as they have to where the fault keeps the quorum.
func (w *writer) told(ctx context.Context, d *Data) error {
	d.Writes, d.WriteGap = w.acknowledged, w.gap.Seconds()
	if lost, err := w.lost(ctx); err == nil {
		d.LostWrites = &lost
	}
	switch {
	case d.LostWrites != nil && *d.LostWrites > 0:
		return fmt.Errorf("etcd lost %d of %d writes that it had acknowledged", *d.LostWrites, w.acknowledged)
	case w.refused < w.target.patiently(writesBudget):
		return nil
	}
	return fmt.Errorf("etcd took no writes for %s, though the fault keeps the quorum: %w", w.refused.Round(time.Second), w.why)
}
