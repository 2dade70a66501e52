package image

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slowBody gives a byte each time that the clock has gone on by every. Where the file does not end with them, nothing follows.
type slowBody struct {
	ctx   context.Context
	every time.Duration
	text  string
	ends  bool
}

func (b *slowBody) Close() error { return nil }

func (b *slowBody) Read(to []byte) (int, error) {
	if b.text == "" && b.ends {
		return 0, io.EOF
	}
	var next <-chan time.Time
	if b.text != "" {
		next = time.After(b.every)
	}
	select {
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	case <-next:
		to[0], b.text = b.text[0], b.text[1:]
		return 1, nil
	}
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func slow(every time.Duration, text string) transport {
	return func(r *http.Request) (*http.Response, error) {
		body := &slowBody{r.Context(), every, text, text == content}
		return &http.Response{StatusCode: http.StatusOK, Body: body, ContentLength: int64(len(content)), Header: http.Header{}}, nil
	}
}

func TestDownloadStalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.part")
	synctest.Test(t, func(t *testing.T) {
		f := newFetcher()
		f.client = &http.Client{Transport: slow(20*time.Second, content[:3])}
		begin := time.Now()
		err := f.file(t.Context(), "https://mirror.example/kubelet", digestOf(content), path, step(t))
		if err == nil || !strings.Contains(err.Error(), "3 of 30 bytes arrived: 5 attempts, the last: nothing arrived for 30s") {
			t.Errorf("got %v", err)
		}
		// Each attempt has three bytes in a minute, and then half a minute of nothing; between them are pauses of a second.
		if got, want := time.Since(begin), 5*90*time.Second+4*time.Second; got != want {
			t.Errorf("gave up after %s, want %s", got, want)
		}
	})
}

func TestDownloadIsSlow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.part")
	synctest.Test(t, func(t *testing.T) {
		f := newFetcher()
		f.client = &http.Client{Transport: slow(29*time.Second, content)}
		if err := f.file(t.Context(), "https://mirror.example/kubelet", digestOf(content), path, step(t)); err != nil {
			t.Error(err)
		}
	})
}

func TestRedirects(t *testing.T) {
	open := serve(t, content)
	to := open.URL
	redirect := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, to+"/elsewhere?signature=secret", http.StatusFound)
	})
	plain, encrypted := httptest.NewServer(redirect), httptest.NewTLSServer(redirect)
	defer plain.Close()
	defer encrypted.Close()
	tests := []struct{ name, from, to, want string }{
		{"http to http", plain.URL, open.URL, ""},
		{"https to http", encrypted.URL, open.URL, "it redirects from " + encrypted.URL + " to " + open.URL + ", which is refused"},
		{"https to https to http", encrypted.URL, encrypted.URL, "it was redirected ten times"},
		{"http to ftp", plain.URL, "ftp://mirror.example", "to ftp://mirror.example, which is refused"},
		{"http to a public address", plain.URL, "http://203.0.113.1", "203.0.113.1:80 is outside of private networks"},
		{"http of a public address", "http://[2001:db8::1]:8080", "", "[2001:db8::1]:8080 is outside of private networks"},
		{"http to nowhere", plain.URL, "http://127.0.0.1:1", "connection refused"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			to = tt.to
			f := impatient()
			f.client.Transport.(byScheme).encrypted.TLSClientConfig = encrypted.Client().Transport.(*http.Transport).TLSClientConfig
			path := filepath.Join(t.TempDir(), "kubelet.part")
			err := f.file(t.Context(), tt.from+"/kubelet", digestOf(content), path, step(t))
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %q in it and no signature", err, tt.want)
			}
			if final := tt.name != "http to nowhere"; final == strings.Contains(err.Error(), "attempts") {
				t.Errorf("got %v: tried again is %v", err, !final)
			}
		})
	}
}
