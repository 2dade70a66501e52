package gitrepo

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// lacking is what to write so that the files are there, whatever they say.
func lacking(files map[string]string) func(func(string) ([]byte, error)) (map[string][]byte, error) {
	return func(read func(string) ([]byte, error)) (map[string][]byte, error) {
		found := map[string][]byte{}
		for path, content := range files {
			if old, err := read(path); err != nil {
				return nil, err
			} else if old == nil {
				found[path] = []byte(content)
			}
		}
		return found, nil
	}
}

func (s *server) files() string { return s.git(s.dir, "ls-tree", "-r", "--name-only", "main") }

func TestCompleteBegins(t *testing.T) {
	s := newServer(t)
	s.git(s.dir, "update-ref", "-d", "refs/heads/main")
	files := map[string]string{"kustomization.yaml": "a\n", "nodes/w3.yaml": "b\n", "nodes.yaml": "c\n", "nodes/deep/x": "d\n"}
	for range 2 { // the second time there is nothing to do
		revision, err := s.open().Complete(t.Context(), "Begin\n", lacking(files))
		must(t, err)
		if revision != s.revision() || s.log() != "Begin" {
			t.Errorf("revision %s, wanted %s; the commits are\n%s", revision, s.revision(), s.log())
		}
	}
	if want := slices.Sorted(maps.Keys(files)); s.files() != strings.Join(want, "\n") {
		t.Errorf("the files are\n%s\nwanted\n%s", s.files(), want)
	}
	if got := s.show("nodes/deep/x"); got != "d\n" {
		t.Errorf("a file has %q", got)
	}
	s.git(s.dir, "fsck", "--strict")
}

// What is there stays, byte for byte and with its mode, and what somebody else pushes meanwhile too.
func TestCompleteAdds(t *testing.T) {
	s := newServer(t)
	once := sync.OnceFunc(func() {
		s.write("infrastructure/new.yaml", "theirs\n")
		s.push("main", "theirs")
	})
	s.around = func(w http.ResponseWriter, r *http.Request, do http.Handler) {
		once()
		do.ServeHTTP(w, r)
	}
	_, err := s.open().Complete(t.Context(), "Add\n", lacking(map[string]string{
		file: "ours\n", "infrastructure/new.yaml": "ours\n", "infrastructure/storage/a": "ours\n",
	}))
	must(t, err)
	s.expect(original, "Add", "theirs")
	if got := s.show("infrastructure/new.yaml"); got != "theirs\n" {
		t.Errorf("their file has %q", got)
	}
	if got := s.git(s.dir, "diff", "--raw", "main~", "main"); strings.Count(got, "\n") != 0 || !strings.HasSuffix(got, "A\tinfrastructure/storage/a") {
		t.Errorf("more than a file was added: %s", got)
	}
	s.git(s.dir, "fsck", "--strict")
}

func TestCompleteObstacles(t *testing.T) {
	s := newServer(t)
	for _, path := range []string{"apps", "README.md/x"} {
		_, err := s.open().Complete(t.Context(), "Add\n", lacking(map[string]string{path: "x"}))
		wrong(t, err, ErrNoFile)
	}
	own := errors.New("own")
	_, err := s.open().Complete(t.Context(), "Add\n", func(func(string) ([]byte, error)) (map[string][]byte, error) { return nil, own })
	wrong(t, err, own)
	s.auth = true
	_, err = s.open().Complete(t.Context(), "Add\n", lacking(map[string]string{"x": "x"}))
	wrong(t, err, ErrUnauthorized)
	s.expect(original)
}

// The server has a name that only the dialer knows.
func TestDial(t *testing.T) {
	s := newServer(t)
	s.auth = true
	addresses := map[string]int{}
	var mu sync.Mutex
	r := s.open(func(c *Config) {
		c.URL, c.PasswordFile = "http://git.gitops.svc.cluster.local/fleet.git", private(t, password)
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			mu.Lock()
			addresses[address]++
			mu.Unlock()
			return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
		}
	})
	_, err := r.Activate(t.Context())
	must(t, err)
	s.expect(activated, subjectOn)
	if len(addresses) != 1 || addresses["git.gitops.svc.cluster.local:80"] == 0 {
		t.Errorf("dialled %v", addresses)
	}
	r = s.open(func(c *Config) {
		c.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("cp1 is silent") }
	})
	_, err = r.Look(t.Context())
	wrong(t, err, ErrUnreachable)
	if err == nil || !strings.Contains(err.Error(), "cp1 is silent") {
		t.Errorf("the error is %v", err)
	}
}
