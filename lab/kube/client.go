// Package kube reads and changes one Kubernetes cluster through its API server, over connections that the caller dials. Every method is one
// bounded request, except Drain and HoldLease; what the answers mean, and waiting, is up to the caller.
package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// requestTimeout bounds one request, retries of it included.
const requestTimeout = 10 * time.Second

// DialFunc opens a connection to an API server's address.
type DialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// Client talks to one cluster. It is safe for concurrent use.
type Client struct {
	http    *http.Client
	set     kubernetes.Interface
	dynamic dynamic.Interface
	timeout time.Duration
	ca      []byte // PEM, of the authority that the kubeconfig trusts

	mu        sync.Mutex
	resources map[schema.GroupVersion][]metav1.APIResource
}

// New makes a client from an admin kubeconfig without connecting. mutated, if not nil, is told of every request that may change the cluster
// before it is sent, and refuses it with an error.
func New(kubeconfig []byte, dial DialFunc, mutated func(what string) error) (*Client, error) {
	cfg, err := restConfig(kubeconfig, dial, mutated)
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("make http client for %s: %w", cfg.Host, err)
	}
	set, err := kubernetes.NewForConfigAndClient(cfg, client)
	if err != nil {
		return nil, fmt.Errorf("make client for %s: %w", cfg.Host, err)
	}
	dyn, err := dynamic.NewForConfigAndClient(cfg, client)
	if err != nil {
		return nil, fmt.Errorf("make dynamic client for %s: %w", cfg.Host, err)
	}
	return &Client{
		http: client, set: set, dynamic: dyn, timeout: requestTimeout, ca: cfg.CAData,
		resources: map[schema.GroupVersion][]metav1.APIResource{},
	}, nil
}

// Of wraps an existing clientset of another part of labctl. Close does not close it, and it applies no manifests.
func Of(set kubernetes.Interface) *Client {
	return &Client{set: set, timeout: requestTimeout}
}

func restConfig(kubeconfig []byte, dial DialFunc, mutated func(string) error) (*rest.Config, error) {
	cfg, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	// A kubeconfig comes from a machine; it must not choose programs to run here.
	if cfg.ExecProvider != nil || cfg.AuthProvider != nil {
		return nil, errors.New("read kubeconfig: credentials from a plugin are not supported")
	}
	if dial == nil {
		return nil, fmt.Errorf("make client for %s: no dial function", cfg.Host)
	}
	cfg.Dial = dial
	// The dialled connection is the way there: an environment's proxy is not.
	// A proxy function also keeps the transport out of client-go's global cache.
	cfg.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	Prepare(cfg, mutated)
	return cfg, nil
}

// Prepare gives the connections of another client the properties of New's: they survive the loss of a control plane, have no client-side
// rate limit, and mutated, if not nil, is told of every request that may change the cluster before it is sent, and refuses it
// with an error.
func Prepare(cfg *rest.Config, mutated func(what string) error) {
	// HTTP/1.1 drops a connection with the request that timed out on it. HTTP/2
	// would keep sending everything into a dead connection until a ping fails.
	cfg.NextProtos = []string{"http/1.1"}
	cfg.QPS = -1
	cfg.UserAgent = "labctl"
	cfg.WarningHandlerWithContext = rest.NoWarnings{}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &mover{next} })
	if mutated != nil {
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return &reporter{next: next, mutated: mutated}
		})
	}
}

// Close drops the idle connections; one in use ends with its request.
func (c *Client) Close() {
	if c.http == nil { // Of
		return
	}
	utilnet.CloseIdleConnectionsFor(c.http.Transport)
}

// bound gives one request its time. client-go retries some failures and honours
// Retry-After, so a timeout of the HTTP client alone would not bound the call.
func (c *Client) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.timeout)
}

// reporter tells of requests that may change the cluster, and sends none that is refused.
type reporter struct {
	next    http.RoundTripper
	mutated func(what string) error
}

func (r *reporter) RoundTrip(req *http.Request) (*http.Response, error) {
	if changes(req.Method, req.URL.Path) && req.URL.Query().Get("dryRun") != metav1.DryRunAll {
		if err := r.mutated("kube " + req.Method + " " + req.URL.Path); err != nil {
			if req.Body != nil {
				req.Body.Close() // as a RoundTripper must
			}
			return nil, err
		}
	}
	return r.next.RoundTrip(req)
}

// WrappedRoundTripper lets Close reach the transport below.
func (r *reporter) WrappedRoundTripper() http.RoundTripper { return r.next }

// changes says whether a request may change the cluster. Reviews are questions
// asked with POST; only the groups that define them are trusted to store nothing.
func changes(method, urlPath string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	case http.MethodPost:
		resource := path.Base(urlPath)
		switch {
		case strings.HasPrefix(urlPath, "/apis/authentication.k8s.io/"):
			return resource != "tokenreviews" && resource != "selfsubjectreviews"
		case strings.HasPrefix(urlPath, "/apis/authorization.k8s.io/"):
			return !strings.HasSuffix(resource, "accessreviews") && resource != "selfsubjectrulesreviews"
		}
	}
	return true
}

// A control plane that fails breaks its connections, and so does the virtual IP when it moves, which takes a moment. Requests are repeated
// then. All of this package can be sent twice: created objects have names, and a deleted object may be gone.
const (
	moveTime  = 3 * time.Second
	movePause = 200 * time.Millisecond
)

// mover repeats a request whose connection broke before the answer.
type mover struct{ next http.RoundTripper }

func (m *mover) WrappedRoundTripper() http.RoundTripper { return m.next }

func (m *mover) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := m.next.RoundTrip(req)
	if err == nil || !lost(err) {
		return resp, err
	}
	deadline := time.Now().Add(moveTime)
	for time.Now().Before(deadline) && (req.Body == nil || req.GetBody != nil) {
		select {
		case <-req.Context().Done():
			return nil, err
		case <-time.After(movePause):
		}
		again := req.Clone(req.Context())
		if req.GetBody != nil {
			if again.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
		if resp, err = m.next.RoundTrip(again); err == nil {
			return resp, nil
		}
	}
	return nil, err
}

func lost(err error) bool {
	return utilnet.IsProbableEOF(err) || utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err)
}
