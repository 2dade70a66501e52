package kube

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestChanges(t *testing.T) {
	tests := []struct {
		method, path string
		want         bool
	}{
		{"GET", "/api/v1/nodes", false},
		{"HEAD", "/readyz", false},
		{"OPTIONS", "/", false},
		{"DELETE", "/api/v1/nodes/cp1", true},
		{"PATCH", "/api/v1/nodes/cp1", true},
		{"POST", "/api/v1/namespaces/kube-system/secrets", true},
		{"POST", "/apis/authentication.k8s.io/v1/tokenreviews", false},
		{"POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", false},
		{"POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", false},
		{"POST", "/apis/authorization.k8s.io/v1/namespaces/x/localsubjectaccessreviews", false},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", false},
		{"PUT", "/apis/authorization.k8s.io/v1/subjectaccessreviews", true},
		{"POST", "/apis/example.org/v1/subjectaccessreviews", true},
	}
	for _, tt := range tests {
		if got := changes(tt.method, tt.path); got != tt.want {
			t.Errorf("changes(%s %s) = %v", tt.method, tt.path, got)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	dial := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("dialled") }
	plugin := strings.Replace(string(kubeconfigFor("https://h:6443", nil)), `"token":"admin"`,
		`"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"sh","interactiveMode":"Never"}`, 1)
	tests := []struct {
		name, kubeconfig string
		dial             DialFunc
		want             string
	}{
		{"garbage", "{", dial, "read kubeconfig"},
		{"a plugin", plugin, dial, "plugin"},
		{"no dial function", string(kubeconfigFor("https://h:6443", nil)), nil, "no dial function"},
	}
	for _, tt := range tests {
		_, err := New([]byte(tt.kubeconfig), tt.dial, nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestDialFailureIsReportedAtOnce(t *testing.T) {
	refused := errors.New("machine is off")
	dial := func(context.Context, string, string) (net.Conn, error) { return nil, refused }
	c, err := New(kubeconfigFor("https://h:6443", nil), dial, nil)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := c.Ready(t.Context()); !errors.Is(err, refused) {
		t.Errorf("error %v does not carry the dial's", err)
	}
	if spent := time.Since(start); spent > 3*time.Second {
		t.Errorf("took %s", spent)
	}
}

// TestBoundedTime covers a server that never answers, and one that asks for
// endless retries.
func TestBoundedTime(t *testing.T) {
	tests := map[string]http.HandlerFunc{
		"silence": func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			panic(http.ErrAbortHandler) // to return would be an answer, which the client may read while it closes
		},
		"retry after": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		},
	}
	for name, handler := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFakeAPI(t)
			f.handle("GET /readyz", handler)
			c, _ := f.client()
			c.timeout = 300 * time.Millisecond
			start := time.Now()
			if err := c.Ready(t.Context()); err == nil {
				t.Error("no error")
			}
			if spent := time.Since(start); spent > 3*time.Second {
				t.Errorf("took %s", spent)
			}
		})
	}
}

func TestCancelledContext(t *testing.T) {
	f := newFakeAPI(t)
	c, rec := f.client()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Nodes(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("nodes: error %v", err)
	}
	if err := c.Apply(ctx, []byte(twoObjects)); !errors.Is(err, context.Canceled) {
		t.Errorf("apply: error %v", err)
	}
	rec.want(t)
}
