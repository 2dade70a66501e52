package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"syscall"
	"time"

	"k8slab/lab/event"
)

// fetcher downloads files over HTTP. The next attempt, or the next run, continues a download that was cut off.
type fetcher struct {
	client *http.Client
	idle   time.Duration // how long an attempt may be without a byte
	pause  time.Duration // between attempts

	addressed bool // a URL has the digest of its content, which so never changes
}

const (
	attempts   = 5
	maxText    = 4 << 10 // bytes of a checksum file
	maxProgram = 1 << 30 // bytes; ten times what Kubernetes' largest program has
)

func newFetcher() fetcher {
	encrypted := http.DefaultTransport.(*http.Transport).Clone()
	encrypted.DisableCompression = true // ranges and lengths count the bytes of the file
	open := encrypted.Clone()
	open.Proxy = nil
	open.DialContext = (&net.Dialer{Timeout: 30 * time.Second, Control: nearOnly}).DialContext
	return fetcher{client: &http.Client{Transport: byScheme{open, encrypted}, CheckRedirect: checkRedirect}, idle: 30 * time.Second, pause: time.Second}
}

// byScheme asks open for http:// and encrypted for https://.
type byScheme struct{ open, encrypted *http.Transport }

func (b byScheme) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "http" {
		return b.open.RoundTrip(r)
	}
	return b.encrypted.RoundTrip(r)
}

func (b byScheme) CloseIdleConnections() {
	b.open.CloseIdleConnections()
	b.encrypted.CloseIdleConnections()
}

// nearOnly refuses unencrypted connections to addresses outside of private networks: others on the way could change the programs, and their
// checksums with them.
func nearOnly(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if a := at.Addr().Unmap(); !a.IsLoopback() && !a.IsPrivate() && !a.IsLinkLocalUnicast() {
		return final{fmt.Errorf("%s is outside of private networks, and what comes from there without encryption can be changed on the way: use https://", at)}
	}
	return nil
}

// checkRedirect follows to HTTP only, and never from an encrypted connection to an open one.
func checkRedirect(to *http.Request, via []*http.Request) error {
	from := via[len(via)-1].URL
	switch {
	case len(via) >= 10:
		return final{errors.New("it was redirected ten times")}
	case to.URL.Scheme != "https" && (to.URL.Scheme != "http" || from.Scheme == "https"):
		return final{fmt.Errorf("it redirects from %s://%s to %s://%s, which is refused", from.Scheme, from.Host, to.URL.Scheme, to.URL.Host)}
	}
	return nil
}

// final is an error for which another attempt is useless.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// statusError is an answer of the server other than the file.
type statusError struct{ code int }

func (e *statusError) Error() string {
	return fmt.Sprintf("the server answers %d %s", e.code, http.StatusText(e.code))
}

func (e *statusError) missing() bool { return e.code == http.StatusNotFound }

func statusProblem(code int) error {
	if code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout {
		return &statusError{code}
	}
	return final{&statusError{code}}
}

// text downloads a small file.
func (f fetcher) text(ctx context.Context, url string, step *event.Step) (text string, err error) {
	err = f.retry(ctx, url, step, func(ctx context.Context, _ func()) error {
		resp, err := f.get(ctx, url, nil)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			return statusProblem(resp.StatusCode)
		}
		data, err := io.ReadAll(io.LimitReader(resp.Body, maxText+1))
		if err == nil && len(data) > maxText {
			err = final{fmt.Errorf("it has more than %d bytes: no checksum file", maxText)}
		}
		text = string(data)
		return err
	})
	var hopeless final
	switch {
	case err == nil:
		return text, nil
	case ctx.Err() != nil || errors.As(err, &hopeless):
		return "", fmt.Errorf("download %s: %w", url, err)
	}
	return "", fmt.Errorf("download %s: %w; check that this computer reaches the mirror, and run the command again", url, err)
}

// file downloads what has the SHA-256 digest, given in hexadecimal digits, to path. What is there of it is not downloaded again.
func (f fetcher) file(ctx context.Context, url, digest, path string, step *event.Step) error {
	p, err := openPart(path)
	if err != nil {
		return err
	}
	defer p.close()
	if p.digest() == digest {
		return nil
	}
	p.progress = func() { step.Progress("%s: %s", filepath.Base(url), p) }
	err = f.retry(ctx, url, step, func(ctx context.Context, alive func()) error {
		p.alive = alive
		return f.transfer(ctx, url, p)
	})
	if err != nil && p.size == 0 {
		return fmt.Errorf("download %s: %w", url, err)
	} else if err != nil {
		return fmt.Errorf("download %s: %s arrived: %w; it is kept: run the command again to continue from there", url, p, err)
	}
	if got := p.digest(); got != digest {
		p.remove()
		return fmt.Errorf("%s does not match its checksum: its SHA-256 is %s, and %s.sha256 says %s; it was deleted: "+
			"run the command again (the mirror may have been changing); if that fails, ask the mirror's owner, or use another kubernetes.source", url, got, url, digest)
	}
	return nil
}

// transfer makes one attempt at downloading what the part lacks.
func (f fetcher) transfer(ctx context.Context, url string, p *part) error {
	header := http.Header{}
	if v := p.validator(); (v != "" || f.addressed) && p.size > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", p.size))
		if v != "" && !f.addressed {
			header.Set("If-Range", v)
		}
	}
	resp, err := f.get(ctx, url, header)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	p.alive()
	switch resp.StatusCode {
	case http.StatusOK: // it has no ranges, or the file is another one now
		err = p.restart(resp)
	case http.StatusPartialContent:
		err = p.continues(resp)
	case http.StatusRequestedRangeNotSatisfiable:
		err = cmp.Or(p.clear(), errors.New("the server's file has no bytes after those that were here"))
	default:
		err = statusProblem(resp.StatusCode)
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(p, resp.Body)
	if err == nil && p.total >= 0 && p.size != p.total {
		err = fmt.Errorf("the server ended it at %s", p)
	}
	return err
}

func (f fetcher) get(ctx context.Context, address string, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	for key, values := range header {
		req.Header[key] = values
	}
	resp, err := f.client.Do(req)
	var of *url.Error
	if errors.As(err, &of) { // the URL may be that of a redirect, with a signature that must not be shown
		err = of.Err
	}
	return resp, err
}

// retry makes attempts until one succeeds, an error is final, or there were enough. An attempt may last as long as it calls alive, which
// says that something arrived.
func (f fetcher) retry(ctx context.Context, url string, step *event.Step, attempt func(ctx context.Context, alive func()) error) error {
	for n := 1; ; n++ {
		err := f.watched(ctx, attempt)
		var hopeless final
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil || errors.As(err, &hopeless):
			return err
		case n == attempts:
			return fmt.Errorf("%d attempts, the last: %w", n, err)
		}
		step.Progress("%s: %v; trying again", url, err)
		select {
		case <-ctx.Done():
		case <-time.After(f.pause):
		}
	}
}

func (f fetcher) watched(ctx context.Context, attempt func(ctx context.Context, alive func()) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(f.idle, func() { cancel(fmt.Errorf("nothing arrived for %s", f.idle)) })
	defer watch.Stop()
	err := attempt(ctx, func() { watch.Reset(f.idle) })
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
