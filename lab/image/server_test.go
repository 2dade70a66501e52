package image

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// fileServer serves one file as a mirror does, with ranges and an entity tag, and notes what it was asked for.
type fileServer struct {
	*httptest.Server
	mu       sync.Mutex
	content  []byte
	etag     string
	requests []string // the ranges, "whole" without one
	sent     int      // bytes
	// before answers a request in place of the file if it returns true; n counts them from 1.
	before func(n int, w http.ResponseWriter, r *http.Request) bool
}

func serve(t *testing.T, content string) *fileServer {
	s := &fileServer{content: []byte(content), etag: `"1"`}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *fileServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what := r.Header.Get("Range")
	if what == "" {
		what = "whole"
	}
	if r.Header.Get("Accept-Encoding") != "" {
		what += " compressed"
	}
	s.requests = append(s.requests, what)
	if s.before != nil && s.before(len(s.requests), w, r) {
		return
	}
	if s.etag != "" {
		w.Header().Set("ETag", s.etag)
	}
	http.ServeContent(counter{w, &s.sent}, r, "", time.Time{}, bytes.NewReader(s.content))
}

type counter struct {
	http.ResponseWriter
	sent *int
}

func (c counter) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b)
	*c.sent += n
	return n, err
}

// cut promises the whole file and ends the connection after n bytes of it.
func (s *fileServer) cut(w http.ResponseWriter, n int) bool {
	w.Header().Set("ETag", s.etag)
	w.Header().Set("Content-Length", fmt.Sprint(len(s.content)))
	_, _ = w.Write(s.content[:n])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func (s *fileServer) asked(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.requests, want) {
		t.Errorf("the server was asked for %q, want %q", s.requests, want)
	}
}
