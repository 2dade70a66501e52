package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/singleflight"

	"k8slab/config"
	"k8slab/lab"
	"k8slab/lab/event"
	"k8slab/lab/health"
	"k8slab/lab/machine"
	"k8slab/lab/metrics"
	"k8slab/lab/onboard"
	"k8slab/lab/onboard/report"
	"k8slab/lab/state"
)

// fresh is how long an answer is reused, so that frequent scraping does not load the lab.
const fresh = 5 * time.Second

// verdict is the result of one health check: the JSON of /healthz.
type verdict struct {
	Lab     string    `json:"lab,omitempty"`
	Healthy bool      `json:"healthy"`
	Reasons []string  `json:"reasons"` // why it is not healthy; redacted
	Checked time.Time `json:"checked"` // when the look began
	Seconds float64   `json:"seconds"` // that it took

	ended time.Time
	nodes []health.NodeStatus
}

// lookout makes one health check at a time and caches its result for the duration fresh.
type lookout struct {
	look func() (health.Status, error) // it ends by itself
	one  singleflight.Group
	last verdict // only a look under way may touch it
}

// ask returns a result, or a verdict that says why there was none before ctx ended.
func (o *lookout) ask(ctx context.Context) verdict {
	begun := time.Now()
	answer := o.one.DoChan("", func() (any, error) {
		if o.last.ended.IsZero() || time.Since(o.last.ended) >= fresh {
			o.last = o.judge()
		}
		return o.last, nil
	})
	select {
	case a := <-answer:
		return a.Val.(verdict)
	case <-ctx.Done():
		why := fmt.Sprintf("the check of the lab has not ended: %v", context.Cause(ctx))
		return verdict{Reasons: []string{why}, Checked: begun.UTC(), Seconds: time.Since(begun).Seconds()}
	}
}

func (o *lookout) judge() verdict {
	v := verdict{Reasons: []string{}, Checked: time.Now().UTC()}
	s, err := o.look()
	v.Lab, v.Healthy, v.nodes = s.Name, s.Healthy && err == nil, s.Nodes
	for _, p := range s.Problems {
		v.Reasons = append(v.Reasons, event.Redact(p))
	}
	if err != nil {
		v.Reasons = append(v.Reasons, event.Redact(err.Error()))
	}
	v.ended = time.Now()
	v.Seconds = v.ended.Sub(v.Checked).Seconds()
	return v
}

// healthServer serves /healthz and /metrics.
type healthServer struct {
	lookout     lookout
	onboardings func() []onboarding // the last one of each node
}

// onboarding is the last onboarding of a node. Its state is nil if the node was never onboarded.
type onboarding struct {
	node  string
	state *onboard.State
	err   error // why the state cannot be read
}

func (s *healthServer) handler() http.Handler {
	mux := http.NewServeMux()
	serve := func(path string, answer func(http.ResponseWriter, verdict)) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeoutCause(r.Context(), answerLimit, fmt.Errorf("no answer within %s", answerLimit))
			defer cancel()
			w.Header().Set("Cache-Control", "no-store")
			answer(w, s.lookout.ask(ctx))
		})
	}
	serve("/healthz", writeHealth)
	serve("/metrics", s.writeMetrics)
	return mux
}

func writeHealth(w http.ResponseWriter, v verdict) {
	w.Header().Set("Content-Type", "application/json")
	if !v.Healthy {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(v) // an asker that has left
}

func (s *healthServer) writeMetrics(w http.ResponseWriter, v verdict) {
	m := &metrics.Set{}
	m.Gauge("k8slab_healthy", "Whether the lab is healthy as labctl up proves it: 1 or 0.", metrics.Bool(v.Healthy))
	m.Gauge("k8slab_check_timestamp_seconds", "Start of the check of the lab, as a Unix time.", float64(v.Checked.Unix()))
	m.Gauge("k8slab_check_duration_seconds", "Duration of the check of the lab.", v.Seconds)
	voters, learners := 0, 0
	for _, n := range v.nodes {
		m.Gauge("k8slab_machine_running", "Whether the node's machine runs: 1 or 0.", metrics.Bool(n.Machine == machine.Running), "node", n.Name)
		if n.Note == "" {
			m.Gauge("k8slab_node_ready", "Whether the node of cluster.yaml is Ready: 1 or 0.", metrics.Bool(n.Ready), "node", n.Name, "role", string(n.Role))
		}
		switch {
		case n.Etcd == "voter" && n.Started:
			voters++
		case n.Etcd == "learner":
			learners++
		}
	}
	if len(v.nodes) > 0 {
		m.Gauge("k8slab_etcd_members", "Started etcd voters, and learners, on nodes of cluster.yaml.", float64(voters), "kind", "voter")
		m.Gauge("k8slab_etcd_members", "", float64(learners), "kind", "learner")
	}
	for _, o := range s.onboardings() {
		m.Gauge("k8slab_onboarding_state_readable", "Whether the state of the node's onboarding can be read: 1 or 0.", metrics.Bool(o.err == nil), "node", o.node)
		if o.state != nil {
			report.AddMetrics(m, o.state, "node", o.node)
		}
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_ = m.Write(w) // an asker that has left
}

// onboardings are the last onboardings of the nodes that have onboard: true in cluster.yaml.
func onboardings(c *config.Cluster) (all []onboarding) {
	for _, n := range c.Nodes {
		if !n.Onboard {
			continue
		}
		st, err := lastOnboarding(c, n)
		all = append(all, onboarding{node: n.Name, state: st, err: err})
	}
	return all
}

func lastOnboarding(c *config.Cluster, n config.Node) (*onboard.State, error) {
	l, err := lab.New(c, lab.Options{})
	if err != nil {
		return nil, err
	}
	target, err := labTarget(l, c, n)
	if errors.Is(err, state.ErrNotUp) { // nothing was onboarded
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	store, err := onboard.OpenStore(l.Closed().OnboardingDir(), target)
	if err != nil {
		return nil, err
	}
	v, err := store.Status()
	return v.State, err
}
