package gitrepo

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestActivateAndDeactivate(t *testing.T) {
	s := newServer(t)
	before := s.tree()
	r := s.open()
	for n := range 2 { // the second time there is nothing to do
		revision, err := r.Activate(t.Context())
		must(t, err)
		if revision != s.revision() {
			t.Errorf("time %d: revision %s, wanted %s", n+1, revision, s.revision())
		}
		s.expect(activated, subjectOn)
	}
	if got := s.git(s.dir, "diff", "--raw", "main~", "main"); strings.Count(got, "\n") != 0 || !strings.HasPrefix(got, ":100755 100755 ") {
		t.Errorf("more than the file changed: %s", got)
	}
	want := subjectOn + "\n\nCluster: small (4f0c6f0e-7a53-4c5e-9a40-0d1e5b1a2c3d)\nRequested-by: ops@desk"
	if got := s.git(s.dir, "log", "-1", "--format=%B", "main"); got != want {
		t.Errorf("the message is\n%s\nwanted\n%s", got, want)
	}
	host, _ := os.Hostname()
	want = fmt.Sprintf("labctl labctl@%s labctl labctl@%[1]s", host)
	if got := s.git(s.dir, "log", "-1", "--format=%an %ae %cn %ce", "main"); got != want {
		t.Errorf("by %s, wanted %s", got, want)
	}
	s.git(s.dir, "fsck", "--strict")

	if kept, err := os.ReadFile(r.Backup); err != nil || string(kept) != original {
		t.Errorf("the backup is %q, %v", kept, err)
	}
	if info, err := os.Stat(r.Backup); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup is %v, %v", info.Mode(), err)
	}

	for range 2 {
		revision, err := r.Deactivate(t.Context())
		must(t, err)
		if revision != s.revision() {
			t.Errorf("revision %s, wanted %s", revision, s.revision())
		}
		s.expect(original, subjectOff, subjectOn)
	}
	if got := s.tree(); got != before {
		t.Errorf("the tree is %s, and was %s", got, before)
	}
}

// Somebody pushes while the commit is made, or while it is on its way: both commits are there at the end.
func TestOvertaken(t *testing.T) {
	for name, method := range map[string]string{"before the push asks": http.MethodGet, "before the server takes it": http.MethodPost} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			once := sync.OnceFunc(func() {
				s.write(file, strings.Replace(original, "# - ../w4", "- ../w4", 1))
				s.push("main", "w4 too")
			})
			s.around = func(w http.ResponseWriter, r *http.Request, do http.Handler) {
				if r.Method == method {
					once()
				}
				do.ServeHTTP(w, r)
			}
			revision, err := s.open().Activate(t.Context())
			must(t, err)
			s.expect(strings.Replace(activated, "# - ../w4", "- ../w4", 1), subjectOn, "w4 too")
			if revision != s.revision() {
				t.Errorf("revision %s, wanted %s", revision, s.revision())
			}
		})
	}
}

func TestOvertakenByTheSame(t *testing.T) {
	s := newServer(t)
	s.around = func(w http.ResponseWriter, r *http.Request, do http.Handler) {
		s.write(file, activated)
		s.push("main", "by hand")
		s.around = nil
		do.ServeHTTP(w, r)
	}
	revision, err := s.open().Activate(t.Context())
	must(t, err)
	s.expect(activated, "by hand")
	if revision != s.revision() {
		t.Errorf("revision %s, wanted %s", revision, s.revision())
	}
}

func TestOvertakenAlways(t *testing.T) {
	s := newServer(t)
	others := 0
	s.around = func(w http.ResponseWriter, r *http.Request, do http.Handler) {
		others++
		s.write("README.md", strings.Repeat("x", others))
		s.push("main", "quick")
		do.ServeHTTP(w, r)
	}
	_, err := s.open().Activate(t.Context())
	wrong(t, err, ErrOvertaken, "10 times", "the branch moved from", "try again when")
	if others != attempts || s.show(file) != original {
		t.Errorf("%d pushes", others)
	}
}

// The lock of a push that is not through yet is no refusal.
func TestLockedBranch(t *testing.T) {
	s := newServer(t)
	lock := filepath.Join(s.dir, "refs", "heads", "main.lock")
	must(t, os.WriteFile(lock, nil, 0o600))
	s.around = func(w http.ResponseWriter, r *http.Request, do http.Handler) {
		do.ServeHTTP(w, r)
		if r.Method == http.MethodPost {
			os.Remove(lock)
		}
	}
	_, err := s.open().Activate(t.Context())
	must(t, err)
	s.expect(activated, subjectOn)
	if s.pushes.Load() != 2 {
		t.Errorf("%d pushes", s.pushes.Load())
	}
}

// A commit that the server took without saying so is not made again.
func TestLostAnswer(t *testing.T) {
	post := func(do func(w http.ResponseWriter, r *http.Request, do http.Handler)) func(http.ResponseWriter, *http.Request, http.Handler) {
		return func(w http.ResponseWriter, r *http.Request, backend http.Handler) {
			if r.Method == http.MethodPost {
				do(w, r, backend)
				return
			}
			backend.ServeHTTP(w, r)
		}
	}
	for name, around := range map[string]func(http.ResponseWriter, *http.Request, http.Handler){
		"cut": post(lost),
		"empty": post(func(_ http.ResponseWriter, r *http.Request, do http.Handler) {
			do.ServeHTTP(httptest.NewRecorder(), r)
		}),
		"gateway": post(func(w http.ResponseWriter, r *http.Request, do http.Handler) {
			do.ServeHTTP(httptest.NewRecorder(), r)
			http.Error(w, "upstream is slow", http.StatusGatewayTimeout)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.around = around
			_, err := s.open().Activate(t.Context())
			must(t, err)
			s.expect(activated, subjectOn)
			_, err = s.open().Deactivate(t.Context())
			must(t, err)
			s.expect(original, subjectOff, subjectOn)
		})
	}
}

// Two that activate different nodes at one moment both get through.
func TestTogether(t *testing.T) {
	s := newServer(t)
	var gate sync.WaitGroup
	gate.Add(2)
	met := map[string]bool{}
	var mu sync.Mutex
	s.around = func(w http.ResponseWriter, r *http.Request, do http.Handler) {
		mu.Lock()
		first := r.Method == http.MethodPost && len(met) < 2 && !met[r.RemoteAddr]
		if first {
			met[r.RemoteAddr] = true
		}
		mu.Unlock()
		if first { // neither is taken before both are on their way
			gate.Done()
			gate.Wait()
		}
		do.ServeHTTP(w, r)
	}
	var both sync.WaitGroup
	for _, node := range []string{"w3", "w4"} {
		r := s.open(func(c *Config) { c.Entry, c.Target.Node, c.Backup = "../"+node, node, c.Backup+node })
		both.Go(func() {
			if _, err := r.Activate(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if got, want := s.show(file), strings.Replace(activated, "# - ../w4", "- ../w4", 1); got != want {
		t.Errorf("the file is\n%q, wanted\n%q", got, want)
	}
	if log := s.log(); strings.Count(log, "\n") != 2 || strings.Count(log, "Activate w3") != 1 || strings.Count(log, "Activate w4") != 1 {
		t.Errorf("the commits are\n%s", log)
	}
}
