package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// answerLimit bounds what is read of one answer: a ConfigMap or Secret is at most 1 MiB, and base64 makes it a third longer.
const answerLimit = 2 << 20

// Visitor asks an API server what a machine may ask before it is a member: anonymously, or with a bootstrap token. It changes nothing,
// follows no proxy and no redirect, and sends its token only to a server that has proven its identity with the cluster's CA.
type Visitor struct {
	base  string
	token string
	http  *http.Client
}

// Phase says how far a request came, to tell a server that cannot be reached from one that answers wrongly.
type Phase string

// The phases of a request.
const (
	PhaseDial      Phase = "dial"
	PhaseHandshake Phase = "tls"
	PhaseAnswer    Phase = "answer"
)

// VisitError is a request that got no answer or an answer other than 200.
type VisitError struct {
	What   string
	Phase  Phase
	Status int    // HTTP status, in PhaseAnswer
	Reason string // what the server said, its first line
	Err    error
}

func (e *VisitError) Error() string {
	if e.Phase == PhaseAnswer && e.Err == nil {
		return fmt.Sprintf("%s: the API server answered %d: %s", e.What, e.Status, e.Reason)
	}
	return fmt.Sprintf("%s: %v", e.What, e.Err)
}

func (e *VisitError) Unwrap() error { return e.Err }

// Refused says whether err is the API server's answer with this HTTP status.
func Refused(err error, status int) bool {
	visit, ok := errors.AsType[*VisitError](err)
	return ok && visit.Phase == PhaseAnswer && visit.Status == status
}

// Anonymous visits the API server at HOST:PORT without credentials, and without checking its identity: what it says must be verified with
// ClusterInfo's signature and pins.
func Anonymous(endpoint string, dial DialFunc) *Visitor {
	return newVisitor(endpoint, dial, "", &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12})
}

// WithToken visits the API server at HOST:PORT with a bootstrap token, once it has proven itself with the CA (PEM).
func WithToken(endpoint string, ca []byte, token string, dial DialFunc) (*Visitor, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("read the cluster's ca: no certificate found")
	}
	return newVisitor(endpoint, dial, token, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}), nil
}

func newVisitor(endpoint string, dial DialFunc, token string, config *tls.Config) *Visitor {
	config.NextProtos = []string{"http/1.1"}
	return &Visitor{
		base: "https://" + endpoint, token: token,
		http: &http.Client{
			Transport: &http.Transport{
				DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
					conn, err := dial(ctx, network, address)
					if err != nil {
						return nil, &dialError{err}
					}
					return conn, nil
				},
				TLSClientConfig: config,
				IdleConnTimeout: 30 * time.Second,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// dialError marks a connection that could not be made.
type dialError struct{ error }

func (e *dialError) Unwrap() error { return e.error }

// Close drops the idle connections.
func (v *Visitor) Close() { v.http.CloseIdleConnections() }

// Live is what the API server showed of itself while it was asked whether it lives.
type Live struct {
	Status       int                 // HTTP status of /livez, or of /healthz where there is no /livez
	Reason       string              // the first line of the answer
	Date         time.Time           // the server's clock, to the second; zero when it did not say
	Certificates []*x509.Certificate // the chain that it presented, unverified for an anonymous visitor
}

// Live asks the API server whether it lives. An answer of any status is a result and not an error: 401 and 403 come from one that lives
// but does not answer strangers.
func (v *Visitor) Live(ctx context.Context) (Live, error) {
	live, err := v.live(ctx, "/livez")
	if err == nil && live.Status == http.StatusNotFound {
		return v.live(ctx, "/healthz")
	}
	return live, err
}

func (v *Visitor) live(ctx context.Context, path string) (Live, error) {
	a, err := v.get(ctx, path)
	if err != nil {
		return Live{}, err
	}
	live := Live{Status: a.status, Reason: firstLine(a.body)}
	live.Date, _ = http.ParseTime(a.date)
	if a.tls != nil {
		live.Certificates = a.tls.PeerCertificates
	}
	return live, nil
}

// object reads one object of the API.
func (v *Visitor) object(ctx context.Context, what, path string, into any) error {
	a, err := v.get(ctx, path)
	if err != nil {
		if visit, ok := errors.AsType[*VisitError](err); ok {
			visit.What = what
		}
		return err
	}
	if a.status != http.StatusOK {
		return &VisitError{What: what, Phase: PhaseAnswer, Status: a.status, Reason: reason(a.body)}
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		return &VisitError{What: what, Phase: PhaseAnswer, Status: a.status, Err: fmt.Errorf("the answer is not the object's JSON: %w", err)}
	}
	return nil
}

// answer is what the API server said.
type answer struct {
	status int
	date   string
	tls    *tls.ConnectionState
	body   []byte
}

func (v *Visitor) get(ctx context.Context, path string) (answer, error) {
	what := "get " + v.base + path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.base+path, nil)
	if err != nil {
		return answer{}, fmt.Errorf("%s: %w", what, err)
	}
	req.Header.Set("User-Agent", "labnode")
	req.Header.Set("Accept", "application/json, */*")
	if v.token != "" {
		req.Header.Set("Authorization", "Bearer "+v.token)
	}
	resp, err := v.http.Do(req)
	if err != nil {
		phase := PhaseHandshake
		if _, ok := errors.AsType[*dialError](err); ok {
			phase = PhaseDial
		}
		return answer{}, &VisitError{What: what, Phase: phase, Err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	if err != nil {
		return answer{}, &VisitError{What: what, Phase: PhaseAnswer, Status: resp.StatusCode, Err: err}
	}
	return answer{status: resp.StatusCode, date: resp.Header.Get("Date"), tls: resp.TLS, body: body}, nil
}

// reason is the message of the API's Status object, or the first line of what is none.
func reason(body []byte) string {
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Message != "" {
		return status.Message
	}
	return firstLine(body)
}

func firstLine(body []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	return line[:min(len(line), 200)]
}
