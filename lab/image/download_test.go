package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// impatient does not pause between attempts.
func impatient() fetcher {
	f := newFetcher()
	f.pause = 0
	return f
}

const content = "what a program has: 0123456789"

// download is one run's.
func download(t *testing.T, s *fileServer, path string) error {
	t.Helper()
	return impatient().file(t.Context(), s.URL+"/kubelet", digestOf(content), path, step(t))
}

func TestDownload(t *testing.T) {
	half := fmt.Sprintf("bytes=%d-", len(content)/2)
	tests := []struct {
		name    string
		before  func(s *fileServer, n int, w http.ResponseWriter, r *http.Request) bool
		there   string // of an earlier run
		noted   string // validator of that
		want    []string
		wantErr []string
	}{
		{name: "at once", want: []string{"whole"}},
		{name: "all there", there: content, noted: `"1"`},
		{name: "all there, without validator", there: content},
		{name: "beginning there", there: content[:15], noted: `"1"`, want: []string{half}},
		{name: "beginning there, without validator", there: content[:15], want: []string{"whole"}},
		{name: "beginning of another file there", there: "another", noted: `"0"`, want: []string{"bytes=7-"}},
		{name: "truncated", want: []string{"whole", half}, before: func(s *fileServer, n int, w http.ResponseWriter, _ *http.Request) bool {
			return n == 1 && s.cut(w, 15)
		}},
		{name: "truncated by a server without ranges", want: []string{"whole", half},
			before: func(s *fileServer, n int, w http.ResponseWriter, r *http.Request) bool {
				r.Header.Del("Range")
				return n == 1 && s.cut(w, 15)
			}},
		{name: "truncated, and then another file", want: []string{"whole", "bytes=20-"},
			before: func(_ *fileServer, n int, w http.ResponseWriter, _ *http.Request) bool {
				if n == 1 {
					w.Header().Set("ETag", `"0"`)
					w.Header().Set("Content-Length", "50")
					_, _ = io.WriteString(w, "what the mirror had ")
				}
				return n == 1
			}},
		{name: "more there than the server has", there: content + "more", noted: `"1"`, want: []string{fmt.Sprintf("bytes=%d-", len(content)+4), "whole"}},
		{name: "another range than was asked for", there: content[:15], noted: `"1"`, want: []string{half, "whole"},
			before: func(_ *fileServer, n int, w http.ResponseWriter, _ *http.Request) bool {
				if n == 1 {
					w.Header().Set("Content-Range", fmt.Sprintf("bytes 3-%d/%d", len(content)-1, len(content)))
					w.WriteHeader(http.StatusPartialContent)
					_, _ = io.WriteString(w, content[3:])
				}
				return n == 1
			}},
		{name: "a part of the range that was asked for", there: content[:15], noted: `"1"`, want: []string{half, "bytes=20-"},
			before: func(_ *fileServer, n int, w http.ResponseWriter, _ *http.Request) bool {
				if n == 1 {
					w.Header().Set("Content-Range", fmt.Sprintf("bytes 15-19/%d", len(content)))
					w.WriteHeader(http.StatusPartialContent)
					_, _ = io.WriteString(w, content[15:20])
				}
				return n == 1
			}},
		{name: "busy for a moment", want: []string{"whole", "whole"}, before: func(_ *fileServer, n int, w http.ResponseWriter, _ *http.Request) bool {
			if n == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return n == 1
		}},
		{name: "weak entity tag", want: []string{"whole", "whole"}, before: func(s *fileServer, n int, w http.ResponseWriter, _ *http.Request) bool {
			s.etag = `W/"1"`
			return n == 1 && s.cut(w, 15)
		}},
		{name: "always truncated", want: []string{"whole", half, half, half, half},
			before: func(s *fileServer, n int, w http.ResponseWriter, _ *http.Request) bool {
				if n > 1 {
					w.Header().Set("Content-Range", fmt.Sprintf("bytes 15-%d/%d", len(content)-1, len(content)))
					w.Header().Set("Content-Length", fmt.Sprint(len(content)-15))
					w.WriteHeader(http.StatusPartialContent)
					_ = http.NewResponseController(w).Flush()
					panic(http.ErrAbortHandler)
				}
				return s.cut(w, 15)
			}, wantErr: []string{"/kubelet: 15 of 30 bytes arrived: 5 attempts, the last: unexpected EOF", "run the command again"}},
		{name: "refused", want: []string{"whole"}, before: func(_ *fileServer, _ int, w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusForbidden)
			return true
		}, wantErr: []string{"/kubelet: the server answers 403 Forbidden"}},
		{name: "too large", want: []string{"whole"}, before: func(_ *fileServer, _ int, w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Length", fmt.Sprint(maxProgram+1))
			return true
		}, wantErr: []string{"/kubelet: it has 1073741825 bytes, more than any of Kubernetes' programs"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, content)
			if tt.before != nil {
				s.before = func(n int, w http.ResponseWriter, r *http.Request) bool { return tt.before(s, n, w, r) }
			}
			path := filepath.Join(t.TempDir(), "kubelet.part")
			if tt.there != "" {
				write(t, path, []byte(tt.there), 0o644)
			}
			if tt.noted != "" {
				write(t, path+".validator", []byte(tt.noted), 0o644)
			}
			err := download(t, s, path)
			s.asked(t, tt.want...)
			if tt.wantErr == nil {
				if err != nil || read(t, path) != content {
					t.Errorf("got %q, %v", read(t, path), err)
				}
				return
			}
			for _, want := range tt.wantErr {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
		})
	}
}

func TestDownloadOfAnotherFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.part")
	s := serve(t, "something else")
	err := download(t, s, path)
	for _, want := range []string{s.URL + "/kubelet does not match its checksum", digestOf("something else"), digestOf(content), "kubernetes.source"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	s.asked(t, "whole") // not again in the hope of another
	if exists(path) || exists(path+".validator") {
		t.Error("the wrong file is still there")
	}
}

// What an interrupted run has is not sent again.
func TestDownloadGoesOnInTheNextRun(t *testing.T) {
	s := serve(t, content)
	ctx, interrupt := context.WithCancelCause(t.Context())
	why := errors.New("Ctrl-C")
	path := filepath.Join(t.TempDir(), "kubelet.part")
	s.before = func(n int, w http.ResponseWriter, r *http.Request) bool {
		if n > 1 {
			return false
		}
		w.Header().Set("ETag", s.etag)
		w.Header().Set("Content-Length", fmt.Sprint(len(s.content)))
		_, _ = io.WriteString(w, content[:20])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done() // the client's end
		return true
	}
	f := impatient()
	f.client.Transport = onRead{f.client.Transport, func() { interrupt(why) }}
	err := f.file(ctx, s.URL+"/kubelet", digestOf(content), path, step(t))
	if !errors.Is(err, why) || !strings.Contains(err.Error(), "20 of 30 bytes arrived") {
		t.Errorf("got %v", err)
	}
	if err := download(t, s, path); err != nil || read(t, path) != content {
		t.Errorf("then %q, %v", read(t, path), err)
	}
	s.asked(t, "whole", "bytes=20-")
	if s.sent != 10 {
		t.Errorf("the second run received %d bytes, want the 10 that were missing", s.sent)
	}
}

// onRead calls after when the first bytes of an answer were read and more are asked for.
type onRead struct {
	http.RoundTripper
	after func()
}

func (o onRead) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := o.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = &readTwice{resp.Body, false, o.after}
	}
	return resp, err
}

type readTwice struct {
	io.ReadCloser
	read  bool
	after func()
}

func (r *readTwice) Read(b []byte) (int, error) {
	if r.read {
		r.after()
	}
	n, err := r.ReadCloser.Read(b)
	r.read = n > 0
	return n, err
}

// A disk that takes no more is no reason to ask the server again.
func TestDownloadCannotBeWritten(t *testing.T) {
	s := serve(t, content)
	path := filepath.Join(t.TempDir(), "kubelet.part")
	write(t, path, []byte(content[:15]), 0o644)
	write(t, path+".validator", []byte(s.etag), 0o644)
	p, err := openPart(path)
	if err != nil {
		t.Fatal(err)
	}
	p.close()
	f := impatient()
	err = f.retry(t.Context(), s.URL, step(t), func(ctx context.Context, alive func()) error {
		p.alive, p.progress = alive, func() {}
		return f.transfer(ctx, s.URL, p)
	})
	if !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v", err)
	}
	s.asked(t, "bytes=15-")
}
