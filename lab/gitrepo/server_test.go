package gitrepo

import (
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"k8slab/lab/onboard"
)

const (
	file     = "infrastructure/storage/kustomization.yaml"
	password = "glpat-not-to-be-shown"
	original = "# of all nodes\r\nresources:\n  - ../w2\n  #- ../w3   # worker three\n  # - ../w4\nkind: Kustomization"
)

var activated = strings.Replace(original, "#- ../w3", "- ../w3", 1)

// server is a bare repository behind git's own HTTP server.
type server struct {
	*httptest.Server
	t    *testing.T
	dir  string // of the repository
	work string // a clone, from which others push

	// around, if set, is given each request of a push, and the handler that has it done.
	around func(w http.ResponseWriter, r *http.Request, do http.Handler)
	auth   bool         // wants git and the password
	pushes atomic.Int32 // requests that bring objects
}

func newServer(t *testing.T) *server {
	t.Helper()
	core, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Skip("there is no git: ", err)
	}
	root := t.TempDir()
	s := &server{t: t, dir: filepath.Join(root, "fleet.git"), work: filepath.Join(root, "work")}
	s.git(root, "init", "--quiet", "--bare", "--initial-branch=main", s.dir)
	s.git(s.dir, "config", "http.receivepack", "true")
	s.git(root, "clone", "--quiet", s.dir, s.work)
	s.write(file, original)
	s.write("README.md", "all of it\r\n")
	must(t, os.Chmod(filepath.Join(s.work, file), 0o755))
	must(t, os.Symlink("README.md", filepath.Join(s.work, "link.yaml")))
	s.write("apps/kustomization.yaml", "resources: []\n")
	s.push("main", "first")

	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(core)), "git-http-backend"), Stderr: t.Output(),
		Env: append(environment(), "GIT_PROJECT_ROOT="+root, "GIT_HTTP_EXPORT_ALL=1"),
	}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, given, _ := r.BasicAuth()
		push := strings.Contains(r.URL.RequestURI(), "git-receive-pack")
		if push && r.Method == http.MethodPost {
			s.pushes.Add(1)
		}
		switch {
		case s.auth && (user != "git" || given != password):
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "who are you?", http.StatusUnauthorized)
		case push && s.around != nil:
			s.around(w, r, backend)
		default:
			backend.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func environment() []string {
	env := []string{"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "PATH=" + os.Getenv("PATH"), "GNUPGHOME=" + os.Getenv("GNUPGHOME")}
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		env = append(env, "GIT_"+who+"_NAME=other", "GIT_"+who+"_EMAIL=other@example.org")
	}
	return env
}

// git runs git, also while a request is served. It fails the test, and returns what git wrote.
func (s *server) git(dir string, args ...string) string {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, environment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Errorf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (s *server) write(name, content string) {
	path := filepath.Join(s.work, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Error(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		s.t.Error(err)
	}
}

// push is what somebody else does with what was written.
func (s *server) push(branch, subject string) {
	s.git(s.work, "add", ".")
	s.git(s.work, "commit", "--quiet", "-m", subject)
	s.git(s.work, "push", "--quiet", s.dir, "HEAD:refs/heads/"+branch)
}

// pull brings the clone up to date.
func (s *server) pull() { s.git(s.work, "pull", "--quiet", "--ff-only", s.dir, "main") }

// show is the content of a file in the newest commit, byte for byte.
func (s *server) show(name string) string {
	cmd := exec.Command("git", "show", "main:"+name)
	cmd.Dir, cmd.Env = s.dir, environment()
	out, err := cmd.Output()
	if err != nil {
		s.t.Errorf("git show %s: %v", name, err)
	}
	return string(out)
}

// log is the subjects of all commits, the newest first.
func (s *server) log() string { return s.git(s.dir, "log", "--format=%s", "main") }

func (s *server) tree() string { return s.git(s.dir, "rev-parse", "main^{tree}") }

// revision is the newest commit as Flux names it.
func (s *server) revision() string { return "main@sha1:" + s.git(s.dir, "rev-parse", "main") }

// hook makes the repository ask a script about each push.
func (s *server) hook(script string) {
	path := filepath.Join(s.dir, "hooks", "pre-receive")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		s.t.Error(err)
	}
}

// onboarded is the onboarding whose activation the tests make.
var onboarded = onboard.Target{Node: "w3", Role: "worker", Cluster: "small", ClusterID: "4f0c6f0e-7a53-4c5e-9a40-0d1e5b1a2c3d"}

var target = Target{Node: onboarded.Node, Cluster: onboarded.Cluster, ClusterID: onboarded.ClusterID}

func (s *server) config() Config {
	return Config{
		URL: s.URL + "/fleet.git", Branch: "main", File: file, Entry: "../w3", Target: target, By: "ops@desk",
		Backup: filepath.Join(filepath.Dir(s.dir), "before.yaml"),
	}
}

// open is a repository whose configuration is changed before.
func (s *server) open(change ...func(*Config)) *Repository {
	s.t.Helper()
	c := s.config()
	for _, f := range change {
		f(&c)
	}
	r, err := Open(s.t.Context(), c)
	must(s.t, err)
	return r
}

const (
	subjectOn  = "Activate w3: uncomment ../w3 in " + file
	subjectOff = "Deactivate w3: comment ../w3 in " + file
)

// expect checks the file and the subjects of the commits.
func (s *server) expect(content string, subjects ...string) {
	s.t.Helper()
	if got := s.show(file); got != content {
		s.t.Errorf("the file is\n%q, wanted\n%q", got, content)
	}
	if want := strings.Join(append(subjects, "first"), "\n"); s.log() != want {
		s.t.Errorf("the commits are\n%s\nwanted\n%s", s.log(), want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lost has a request done, and cuts the connection instead of answering.
func lost(w http.ResponseWriter, r *http.Request, do http.Handler) {
	do.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// private writes a file for its owner alone.
func private(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "private")
	must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// pktLine is a line of Git's protocol.
func pktLine(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }
