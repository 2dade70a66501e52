package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const testToken = "of the test"

// closedPort is an address at which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	return address
}

func TestProbe(t *testing.T) {
	probe := httptest.NewServer(probeHandler(testToken))
	defer probe.Close()
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	defer broken.Close()
	good, bad, closed := probe.Listener.Addr().String(), broken.Listener.Addr().String(), closedPort(t)
	tests := []struct {
		name    string
		targets []string
		want    []string // part of each failure
	}{
		{"itself", []string{good, good}, nil},
		{"nothing to reach", nil, nil},
		{"nobody listens", []string{good, closed}, []string{closed}},
		{"another answers", []string{bad}, []string{bad + " answered 502"}},
		{"all that fail", []string{bad, good, closed}, []string{bad, closed}},
		{"no address", []string{"a b"}, []string{"a b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp, err := http.Get(probe.URL + "/check?" + url.Values{"token": {testToken}, "target": tt.targets}.Encode())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			var got []string
			if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || resp.Header.Get("Content-Type") != "application/json" {
				t.Fatal(err, resp.Header)
			}
			if got == nil {
				t.Error("the answer is null, no list") // a reader must tell all reached from no answer
			}
			if len(got) != len(tt.want) {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			for _, want := range tt.want {
				if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, want) }) {
					t.Errorf("%q lacks %q", got, want)
				}
			}
		})
	}
}

func TestProbeSaysItsName(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/": http.StatusOK, "/other": http.StatusNotFound} {
		w := httptest.NewRecorder()
		probeHandler(testToken).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want || (want == http.StatusOK && w.Body.String() != name+"\n") {
			t.Errorf("%s: %d %q", path, w.Code, w.Body.String())
		}
	}
}

// Whoever reaches the pod, by way of a NodePort for instance, must not have it reach others.
func TestProbeReachesNobodyForStrangers(t *testing.T) {
	var asked atomic.Int64
	peer := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer peer.Close()
	target := peer.Listener.Addr().String()
	tests := []struct {
		name, token string
		query       url.Values
		want        int
	}{
		{"no token", testToken, url.Values{"target": {target}}, http.StatusForbidden},
		{"another token", testToken, url.Values{"target": {target}, "token": {"of another"}}, http.StatusForbidden},
		{"a service", testToken, url.Values{"service": {target}, "pod": {"a"}}, http.StatusForbidden},
		{"a pod without a token", "", url.Values{"target": {target}, "token": {""}}, http.StatusForbidden},
		{"many targets", testToken, url.Values{"token": {testToken}, "target": slices.Repeat([]string{target}, mostPeers+1)}, http.StatusBadRequest},
		{"many pods", testToken, url.Values{"token": {testToken}, "service": {target}, "pod": slices.Repeat([]string{"a"}, mostPeers+1)}, http.StatusBadRequest},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			probeHandler(tt.token).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/check?"+tt.query.Encode(), nil))
			if w.Code != tt.want || asked.Load() > 0 {
				t.Errorf("%d %q, and %d questions were asked", w.Code, w.Body.String(), asked.Load())
			}
		})
	}
}

// serviceOf is a service whose connections go to one backend after the other, each of which says its name.
func serviceOf(t *testing.T, names ...string) string {
	t.Helper()
	var turn atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := names[int(turn.Add(1))%len(names)]
		if name == "" { // nobody has this address any more
			<-r.Context().Done()
			return
		}
		_, _ = fmt.Fprintln(w, name)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func TestServedByEachPod(t *testing.T) {
	tests := []struct {
		name     string
		backends []string
		missing  string // in the failure, "" for none
	}{
		{"all answer", []string{"a", "b", "c"}, ""},
		{"a pod is gone, and another not known yet", []string{"a", "b", ""}, ": c"},
		{"a pod is not known yet", []string{"a"}, ": b, c"},
		{"connections that are lost beside those that are not", []string{"a", "", "b", "c", "c", "b", "a"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			probe := httptest.NewServer(probeHandler(testToken))
			defer probe.Close()
			resp, err := http.Get(probe.URL + "/check?" + url.Values{"token": {testToken}, "service": {serviceOf(t, tt.backends...)}, "pod": {"a", "b", "c"}}.Encode())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			var failures []string
			if err := json.NewDecoder(resp.Body).Decode(&failures); err != nil {
				t.Fatal(err)
			}
			got := strings.Join(failures, "; ")
			if (got == "") != (tt.missing == "") || !strings.HasSuffix(got, tt.missing) {
				t.Errorf("%q, want %q at its end", got, tt.missing)
			}
		})
	}
}

// Targets that swallow packets are waited for together and not one after another, and no longer than the asker waits.
func TestReachAllAtOnce(t *testing.T) {
	silent, err := net.Listen("tcp4", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begin := time.Now()
	got := reachAll(ctx, slices.Repeat([]string{silent.Addr().String()}, 10))
	if took := time.Since(begin); len(got) != 10 || took > 1500*time.Millisecond {
		t.Errorf("%d failures after %s", len(got), took)
	}
}

func TestProbeCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cmd := probeCommand()
	address := closedPort(t)
	cmd.SetArgs([]string{"--listen", address})
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	deadline := time.Now().Add(5 * time.Second)
	for len(reachAll(t.Context(), []string{address})) > 0 {
		if time.Now().After(deadline) {
			t.Fatal("it does not answer")
		}
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("it does not end")
	}
}
