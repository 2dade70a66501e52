package kube

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
)

// answers are what the attempts of one request meet.
type answers struct {
	errs   []error
	bodies []string
}

func (a *answers) RoundTrip(req *http.Request) (*http.Response, error) {
	body := ""
	if req.Body != nil {
		data, _ := io.ReadAll(req.Body)
		body = string(data)
	}
	a.bodies = append(a.bodies, body)
	if i := len(a.bodies) - 1; i < len(a.errs) && a.errs[i] != nil {
		return nil, a.errs[i]
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func (a *answers) ask(req *http.Request) error {
	resp, err := (&mover{a}).RoundTrip(req)
	if err == nil {
		err = resp.Body.Close()
	}
	return err
}

func TestRequestsAreRepeatedWhenTheAddressMoves(t *testing.T) {
	always := make([]error, 100)
	for i := range always {
		always[i] = io.EOF
	}
	tests := []struct {
		name     string
		errs     []error
		attempts int
		fails    bool
	}{
		{"answered", nil, 1, false},
		{"lost once", []error{io.EOF}, 2, false},
		{"lost, then nobody listens yet", []error{syscall.ECONNRESET, syscall.ECONNREFUSED, nil}, 3, false},
		{"nobody listens", []error{syscall.ECONNREFUSED}, 1, true},
		{"lost for good", always, 16, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &answers{errs: tt.errs}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://192.0.2.1/", strings.NewReader("token"))
				if err != nil {
					t.Fatal(err)
				}
				err = a.ask(req)
				if (err != nil) != tt.fails || len(a.bodies) != tt.attempts {
					t.Errorf("%d attempts, %v", len(a.bodies), err)
				}
				for _, b := range a.bodies {
					if b != "token" {
						t.Errorf("sent %q", b)
					}
				}
			})
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://192.0.2.1/", nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &answers{errs: always}
	if err := a.ask(req); !errors.Is(err, io.EOF) || len(a.bodies) != 1 {
		t.Errorf("cancelled: %d attempts, %v", len(a.bodies), err)
	}
}
