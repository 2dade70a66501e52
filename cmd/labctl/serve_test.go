package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"k8slab/config"
	"k8slab/lab/golden"
	"k8slab/lab/health"
	"k8slab/lab/machine"
	"k8slab/lab/onboard"
)

var healthy = health.Status{Name: "small", Healthy: true, Nodes: []health.NodeStatus{
	{Name: "cp1", Role: config.ControlPlane, Machine: machine.Running, Ready: true, Etcd: "voter", Started: true},
	{Name: "cp2", Role: config.ControlPlane, Machine: machine.Running, Etcd: "learner"},
	{Name: "w1", Role: config.Worker, Machine: machine.Absent, Etcd: "none", Note: "to be onboarded later"},
}}

func sick() health.Status {
	s := healthy
	s.Healthy, s.Problems = false, []string{"every node Ready: cp2: not Ready", "token: abcdef.0123456789abcdef"}
	return s
}

func get(s *healthServer, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func serving(look func() (health.Status, error)) *healthServer {
	s := &healthServer{onboardings: func() []onboarding { return nil }}
	s.lookout.look = look
	return s
}

func TestHealthz(t *testing.T) {
	for name, tt := range map[string]struct {
		status health.Status
		err    error
		code   int
		says   []string
	}{
		"healthy":   {healthy, nil, http.StatusOK, []string{`"healthy":true`, `"reasons":[]`, `"lab":"small"`, `"checked":"2000-01-01T00:00:00Z"`, `"seconds":1`}},
		"sick":      {sick(), nil, http.StatusServiceUnavailable, []string{`"healthy":false`, "cp2: not Ready", "token: abcdef.***"}},
		"no answer": {healthy, errors.New("libvirt is silent"), http.StatusServiceUnavailable, []string{`"healthy":false`, "libvirt is silent"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := get(serving(func() (health.Status, error) { time.Sleep(time.Second); return tt.status, tt.err }), "/healthz")
				if w.Code != tt.code || w.Header().Get("Content-Type") != "application/json" || !json.Valid(w.Body.Bytes()) {
					t.Errorf("%d %v", w.Code, w.Header())
				}
				for _, want := range tt.says {
					if !strings.Contains(w.Body.String(), want) {
						t.Errorf("%q is not in %s", want, w.Body)
					}
				}
			})
		})
	}
}

// However many ask, there is one look at a time; its answer is given while it is fresh, and not a moment longer, also when the next look fails.
func TestOneLookAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks, at, most := 0, 0, 0
		var mu sync.Mutex
		count := func(d int) {
			mu.Lock()
			defer mu.Unlock()
			at, looks, most = at+d, looks+max(d, 0), max(most, at+d)
		}
		s := serving(func() (health.Status, error) {
			count(1)
			defer count(-1)
			time.Sleep(3 * time.Second)
			if looks == 1 {
				return healthy, nil
			}
			return health.Status{}, errors.New("gone")
		})
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if w := get(s, "/healthz"); w.Code != http.StatusOK {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			})
		}
		all.Wait()
		time.Sleep(fresh - time.Millisecond)
		if w := get(s, "/metrics"); looks != 1 || most != 1 || !strings.Contains(w.Body.String(), "\nk8slab_healthy 1\n") {
			t.Errorf("%d looks, %d at once:\n%s", looks, most, w.Body)
		}
		time.Sleep(time.Millisecond)
		if w := get(s, "/healthz"); w.Code != http.StatusServiceUnavailable || looks != 2 {
			t.Errorf("an answer that was too old: %d %s, %d looks", w.Code, w.Body, looks)
		}
	})
}

// A look that hangs is no health, and nobody waits for it for ever.
func TestALookThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		s := serving(func() (health.Status, error) { <-end; return healthy, nil })
		if w := get(s, "/healthz"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "no answer within 1m30s") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if w := get(s, "/metrics"); !strings.Contains(w.Body.String(), "\nk8slab_healthy 0\n") {
			t.Errorf("%s", w.Body)
		}
		close(end)
	})
}

func TestServedMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serving(func() (health.Status, error) { return healthy, nil })
		st := &onboard.State{Timestamp: time.Unix(9, 0), PhaseStatus: map[onboard.PhaseID]onboard.Status{onboard.PreValidation: onboard.Failed}}
		s.onboardings = func() []onboarding {
			return []onboarding{{node: "w1", state: st}, {node: "w2", err: errors.New("refused")}}
		}
		w := get(s, "/metrics")
		text := w.Body.String()
		parser := expfmt.NewTextParser(model.LegacyValidation)
		if _, err := parser.TextToMetricFamilies(strings.NewReader(text)); err != nil || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain; version=0.0.4") {
			t.Errorf("%v, %v", err, w.Header())
		}
		golden.Check(t, "serve.prom", text)
	})
}

func TestOnlyWhatIsServed(t *testing.T) {
	s := serving(func() (health.Status, error) { return healthy, nil })
	w := httptest.NewRecorder()
	s.handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/healthz", strings.NewReader("x")))
	if w.Code != http.StatusMethodNotAllowed || get(s, "/").Code != http.StatusNotFound {
		t.Errorf("POST: %d", w.Code)
	}
}

func TestListen(t *testing.T) {
	for address, ok := range map[string]bool{
		"127.0.0.1:9099": true, "[::1]:0": true, "127.8.8.8:1": true, "0.0.0.0:9099": false, ":9099": false, "localhost:9099": false, "192.0.2.1:9099": false,
		"[::ffff:192.0.2.1]:1": false, "127.0.0.1": false,
	} {
		if err := checkListen(address); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// The server says where it is, answers, refuses what is too large, and ends with its context.
func TestServe(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	said, says := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- serveHealth(ctx, "127.0.0.1:0", says, serving(func() (health.Status, error) { return healthy, nil }))
	}()
	line, err := bufio.NewReader(said).ReadString('\n')
	words := strings.Fields(line)
	if err != nil || len(words) != 4 {
		t.Fatalf("%q, %v", line, err)
	}
	for size, want := range map[int]int{1: http.StatusOK, 100 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, words[1], nil)
		req.Header.Set("X-Large", strings.Repeat("x", size))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("a header of %d bytes: %s", size, resp.Status)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the end: %v", err)
	}
	if err := serveHealth(t.Context(), "127.0.0.1:-1", io.Discard, nil); err == nil {
		t.Error("no error for an address that cannot be")
	}
}
