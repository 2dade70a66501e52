package fact

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"k8slab/lab/wait"
)

// metricsURL is where kubeadm has etcd tell its metrics, without credentials, on the node itself.
const metricsURL = "http://127.0.0.1:2381/metrics"

// SlowWrite is half of etcd's election timeout in seconds, rounded to a step of etcd's histogram. When the usual write takes longer,
// leaders are lost.
const SlowWrite = 0.512

// bucket is a step of a histogram: how many were at most this long.
type bucket struct {
	upTo  float64
	count float64
}

// metrics are those of etcd's that matter here.
type metrics struct {
	fsync   []bucket
	changes float64
}

// etcdMetrics asks the local etcd how long its real writes took, so that no test writes are needed. It is nil when no etcd answers.
func (c *collector) etcdMetrics(ctx context.Context) *metrics {
	if !c.m.Exists("/etc/kubernetes/manifests/etcd.yaml") {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.patience*time.Second)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DialContext: c.m.Dial, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, metricsURL, nil)
	if err != nil {
		return nil
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil
	}
	return readMetrics(io.LimitReader(resp.Body, 4<<20))
}

// writeTime is how long an etcd that has known slow writes gets to end two more: one that takes seconds for each may end none while
// everything else is asked.
const writeTime = 4 * time.Second

// laterMetrics asks again when everything else has answered.
func (c *collector) laterMetrics(ctx context.Context, early *metrics) (late *metrics) {
	_ = wait.For(ctx, "etcd to write twice", writeTime, 100*time.Millisecond, func(ctx context.Context) error {
		m := c.etcdMetrics(ctx)
		if m == nil {
			return nil
		}
		late = m
		if early != nil && late.writes() > 0 && quantile(late.fsync, 1) > SlowWrite && late.writes() < early.writes()+2 {
			return errors.New("it has not")
		}
		return nil
	})
	return late
}

// writes is how many there were since etcd's start.
func (m *metrics) writes() float64 {
	if len(m.fsync) == 0 {
		return 0
	}
	return m.fsync[len(m.fsync)-1].count
}

// readMetrics takes what stands before a line that cannot be read.
func readMetrics(r io.Reader) *metrics {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, _ := parser.TextToMetricFamilies(r)
	m := &metrics{}
	for _, sync := range families["etcd_disk_wal_fsync_duration_seconds"].GetMetric() {
		for _, b := range sync.GetHistogram().GetBucket() {
			m.fsync = append(m.fsync, bucket{b.GetUpperBound(), float64(b.GetCumulativeCount())})
		}
	}
	for _, seen := range families["etcd_server_leader_changes_seen_total"].GetMetric() {
		m.changes = seen.GetCounter().GetValue()
	}
	slices.SortFunc(m.fsync, func(a, b bucket) int { return cmp.Compare(a.upTo, b.upTo) })
	return m
}

// etcdDisk compares two readings: the writes between them show how the disk is now.
func (c *collector) etcdDisk(early, late *metrics) {
	if late == nil || len(late.fsync) == 0 {
		return
	}
	d := &EtcdDisk{FsyncP99: quantile(late.fsync, 0.99), LeaderChanges: uint64(late.changes)}
	if early != nil && len(early.fsync) == len(late.fsync) {
		recent := make([]bucket, len(late.fsync))
		for i := range recent {
			recent[i] = bucket{late.fsync[i].upTo, late.fsync[i].count - early.fsync[i].count}
		}
		if n := late.writes() - early.writes(); n > 0 {
			d.RecentSyncs, d.RecentMedian = uint64(n), quantile(recent, 0.5)
		}
	}
	c.set(func(n *Node) { n.Etcd = d })
}

// quantile is the upper end of the histogram's step that has it; the last finite end where it is beyond all.
func quantile(steps []bucket, q float64) float64 {
	total := steps[len(steps)-1].count
	last := 0.0
	for _, s := range steps {
		if !math.IsInf(s.upTo, 1) {
			last = s.upTo
		}
		if total > 0 && s.count >= q*total {
			break
		}
	}
	return last
}
