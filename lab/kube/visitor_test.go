package kube

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// gate is an API server for strangers and for who has the token "abcdef.0123456789abcdef"; it notes who asked what.
type gate struct {
	*httptest.Server
	mux *http.ServeMux

	mu   sync.Mutex
	seen map[string]string // Authorization by path
}

const visitorToken = "abcdef.0123456789abcdef"

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{mux: http.NewServeMux(), seen: map[string]string{}}
	g.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.seen[r.URL.Path] = r.Header.Get("Authorization")
		g.mu.Unlock()
		g.mux.ServeHTTP(w, r)
	}))
	t.Cleanup(g.Close)
	return g
}

func (g *gate) answers(path string, status int, body string) {
	g.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
}

func (g *gate) authorization(path string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen[path]
}

// dial leads every address to the gate.
func (g *gate) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, g.Listener.Addr().String())
}

func (g *gate) caPEM() []byte { return (&fakeAPI{server: g.Server}).caPEM() }

func TestLive(t *testing.T) {
	tests := []struct {
		name   string
		paths  map[string]int
		status int
	}{
		{"alive", map[string]int{"/livez": 200}, 200},
		{"unhealthy", map[string]int{"/livez": 500, "/healthz": 200}, 500},
		{"without livez", map[string]int{"/healthz": 200}, 200},
		{"stranger refused", map[string]int{"/livez": 401}, 401},
		{"no API server", nil, 404},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := newGate(t)
			for path, status := range tt.paths {
				g.answers(path, status, "first\nsecond")
			}
			v := Anonymous("example.com:6443", g.dial)
			defer v.Close()
			live, err := v.Live(t.Context())
			if err != nil || live.Status != tt.status {
				t.Fatalf("%+v, %v", live, err)
			}
			if len(live.Certificates) == 0 || time.Since(live.Date).Abs() > time.Minute {
				t.Errorf("certificates %d, date %s", len(live.Certificates), live.Date)
			}
			if tt.status != http.StatusNotFound && live.Reason != "first" {
				t.Errorf("reason %q", live.Reason)
			}
		})
	}
}

func TestVisitPhases(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	g := newGate(t)
	other := newGate(t) // has the same certificate: httptest's
	refused := errors.New("refused")
	stranger, err := WithToken("elsewhere.invalid:6443", g.caPEM(), visitorToken, other.dial)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		visitor *Visitor
		phase   Phase
	}{
		{"no connection", Anonymous("example.com:6443", func(context.Context, string, string) (net.Conn, error) { return nil, refused }), PhaseDial},
		{"no TLS", Anonymous("example.com:6443", func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, plain.Listener.Addr().String())
		}), PhaseHandshake},
		{"certificate for another name", stranger, PhaseHandshake},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.visitor.Live(t.Context())
			visit, ok := errors.AsType[*VisitError](err)
			if !ok || visit.Phase != tt.phase {
				t.Errorf("%v", err)
			}
			if tt.phase == PhaseDial && !errors.Is(err, refused) {
				t.Errorf("the cause is lost: %v", err)
			}
		})
	}
	if got := other.authorization("/livez"); got != "" {
		t.Errorf("an unproven server got %q", got)
	}
}

func TestWithTokenNeedsACA(t *testing.T) {
	if _, err := WithToken("example.com:6443", []byte("none"), visitorToken, nil); err == nil {
		t.Error("no error")
	}
}

// Neither a redirect nor a proxy of the environment takes the token elsewhere.
func TestVisitorGoesNowhereElse(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://192.0.2.1:1")
	g := newGate(t)
	g.mux.Handle("GET /api/v1/nodes/w1", http.RedirectHandler("/elsewhere", http.StatusFound))
	v, err := WithToken("example.com:6443", g.caPEM(), visitorToken, g.dial)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if _, err := v.Node(t.Context(), "w1"); !Refused(err, http.StatusFound) {
		t.Errorf("%v", err)
	}
	if got := g.authorization("/api/v1/nodes/w1"); got != "Bearer "+visitorToken {
		t.Errorf("authorization %q", got)
	}
	if got := g.authorization("/elsewhere"); got != "" {
		t.Error("it followed")
	}
}
