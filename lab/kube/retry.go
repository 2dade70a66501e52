package kube

import (
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// A control plane that goes takes its connections with it, and so does the virtual IP when it moves to another one, which takes a moment.
// Every request of this package may be made twice: what is made has a name, and what is deleted may be gone.
const (
	moveTime  = 3 * time.Second
	movePause = 200 * time.Millisecond
)

// mover repeats a request whose connection was lost before it was answered.
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
