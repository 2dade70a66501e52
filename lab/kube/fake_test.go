package kube

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// fakeAPI is an API server over real TLS that answers only what it was told to
// and fails the test at anything else.
type fakeAPI struct {
	t      *testing.T
	server *httptest.Server

	mu       sync.Mutex
	answers  map[string]http.HandlerFunc // by "METHOD /path"
	requests []string
	bodies   map[string][]byte // last body by request
}

func newFakeAPI(t *testing.T) *fakeAPI {
	t.Helper()
	f := &fakeAPI{t: t, answers: map[string]http.HandlerFunc{}, bodies: map[string][]byte{}}
	f.server = httptest.NewTLSServer(f)
	t.Cleanup(f.server.Close)
	return f
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.Method + " " + r.URL.Path
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	answer, ok := f.answers[key]
	f.requests = append(f.requests, key)
	f.bodies[key] = body
	f.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer admin" {
		f.t.Errorf("%s: authorization %q", key, r.Header.Get("Authorization"))
	}
	if !ok {
		f.t.Errorf("unexpected request %s", key)
		http.Error(w, "not told", http.StatusTeapot)
		return
	}
	answer(w, r)
}

// on answers a request with a status code and an object's JSON, or raw text.
func (f *fakeAPI) on(request string, code int, object any) {
	body, ok := object.(string)
	kind := "text/plain"
	if !ok {
		raw, err := json.Marshal(object)
		if err != nil {
			f.t.Fatal(err)
		}
		body, kind = string(raw), "application/json"
	}
	f.handle(request, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	})
}

func (f *fakeAPI) handle(request string, h http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[request] = h
}

func (f *fakeAPI) body(request string) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bodies[request]
}

func (f *fakeAPI) count(request string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(f.requests), func(r string) bool { return r != request }))
}

type fields = map[string]any

func notFound() fields {
	return fields{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
}

// recorder collects what a client reports as changes.
type recorder struct {
	refuse error
	mu     sync.Mutex
	what   []string
}

func (r *recorder) mutated(what string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.what = append(r.what, what)
	return r.refuse
}

func (r *recorder) want(t *testing.T, what ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.what, what) {
		t.Errorf("reported changes %q, want %q", r.what, what)
	}
}

// client makes a client whose kubeconfig names a server that only the dial
// function can reach.
func (f *fakeAPI) client() (*Client, *recorder) {
	f.t.Helper()
	rec := &recorder{}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if address != "example.com:6443" {
			return nil, fmt.Errorf("dialled %s", address)
		}
		var d net.Dialer
		return d.DialContext(ctx, network, f.server.Listener.Addr().String())
	}
	c, err := New(kubeconfigFor("https://example.com:6443", f.caPEM()), dial, rec.mutated)
	if err != nil {
		f.t.Fatal(err)
	}
	c.timeout = 5 * time.Second
	f.t.Cleanup(c.Close)
	return c, rec
}

func (f *fakeAPI) caPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.server.Certificate().Raw})
}

func kubeconfigFor(server string, ca []byte) []byte {
	cfg := fields{
		"apiVersion": "v1", "kind": "Config", "current-context": "admin@lab",
		"clusters": []fields{
			{"name": "lab", "cluster": fields{"server": server, "certificate-authority-data": ca}},
			{"name": "other", "cluster": fields{"server": "https://other:6443"}},
		},
		"contexts": []fields{{"name": "admin@lab", "context": fields{"cluster": "lab", "user": "admin"}}},
		"users":    []fields{{"name": "admin", "user": fields{"token": "admin"}}},
	}
	raw, err := json.Marshal(cfg)
	if err != nil {
		panic(err)
	}
	return raw
}
