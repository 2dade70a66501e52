package gitserver

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const pushPassword = "a password: 100 %"

// clone is one of the repository that a server serves.
type clone struct {
	t   *testing.T
	dir string
}

func start(t *testing.T, dir string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git: ", err)
	}
	handler, err := New(t.Context(), Config{Dir: dir, Password: pushPassword, Errors: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func cloneFrom(t *testing.T, url string) clone {
	t.Helper()
	c := clone{t, filepath.Join(t.TempDir(), "clone")}
	c.git("clone", "--quiet", url+"/lab.git", c.dir)
	return c
}

// try runs git in the clone, as somebody who has no terminal to be asked on.
func (c clone) try(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	if _, err := os.Stat(c.dir); err == nil {
		cmd.Dir = c.dir
	}
	cmd.Env = append(environment(), "PATH="+os.Getenv("PATH"), "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=other", "GIT_AUTHOR_EMAIL=other@example.org", "GIT_COMMITTER_NAME=other", "GIT_COMMITTER_EMAIL=other@example.org")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c clone) git(args ...string) string {
	c.t.Helper()
	out, err := c.try(args...)
	if err != nil {
		c.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(out)
}

func (c clone) commit(name, content string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(content), 0o644); err != nil {
		c.t.Fatal(err)
	}
	c.git("add", ".")
	c.git("commit", "--quiet", "-m", "write "+name)
}

// as is the server's URL with credentials.
func as(url, user, password string) string {
	return strings.Replace(url, "://", "://"+user+":"+strings.NewReplacer(" ", "%20", ":", "%3A", "%", "%25").Replace(password)+"@", 1) + "/lab.git"
}

func TestPush(t *testing.T) {
	dir := t.TempDir()
	url := start(t, dir)
	c := cloneFrom(t, url)
	c.commit("a", "first\n")
	for name, to := range map[string]string{
		"without credentials": url + "/lab.git",
		"a wrong password":    as(url, "git", pushPassword+"x"),
		"no password":         as(url, "git", ""),
		"another user":        as(url, "root", pushPassword),
	} {
		out, err := c.try("push", to, "HEAD:main")
		if err == nil || !strings.Contains(out, "Authentication failed") && !strings.Contains(out, "could not read") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	good := as(url, "git", pushPassword)
	c.git("push", good, "HEAD:main")
	if got := cloneFrom(t, url).git("rev-parse", "HEAD"); got != c.git("rev-parse", "HEAD") {
		t.Errorf("a new clone is at %s", got)
	}

	other := cloneFrom(t, url)
	other.commit("b", "second\n")
	other.git("push", good, "HEAD:main")
	c.commit("c", "at the same time\n")
	for _, args := range [][]string{{"push", good, "HEAD:main"}, {"push", "--force", good, "HEAD:main"}, {"push", good, ":main"}} {
		if out, err := c.try(args...); err == nil || !strings.Contains(out, "rejected") {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
	c.git("pull", "--quiet", "--rebase", url+"/lab.git", "main")
	c.commit("large", randomText(t)) // more than git sends at once
	c.git("-c", "http.postBuffer=65536", "push", good, "HEAD:main")

	// Another start finds the repository as it was.
	if got := cloneFrom(t, start(t, dir)).git("rev-parse", "HEAD"); got != c.git("rev-parse", "HEAD") {
		t.Errorf("after a restart the branch is at %s", got)
	}
}

// randomText cannot be compressed below git's smallest buffer.
func randomText(t *testing.T) string {
	t.Helper()
	f, err := os.Open("/dev/urandom")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 256<<10))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Each request of a push, and each that is nothing known, needs the password.
func TestRequests(t *testing.T) {
	url := start(t, t.TempDir())
	tests := []struct {
		method, path string
		status       int
	}{
		{http.MethodGet, "/healthz", http.StatusOK},
		{http.MethodGet, "/lab.git/info/refs?service=git-upload-pack", http.StatusOK},
		{http.MethodGet, "/lab.git/info/refs?service=git-receive-pack", http.StatusUnauthorized},
		{http.MethodGet, "/lab.git/info/refs?service=git-upload-pack&service=git-receive-pack", http.StatusUnauthorized},
		{http.MethodGet, "/lab.git/info/refs?service=git%2Dreceive-pack", http.StatusUnauthorized},
		{http.MethodPost, "/lab.git/git-receive-pack", http.StatusUnauthorized},
		{http.MethodPost, "/lab.git/git%2Dreceive-pack", http.StatusUnauthorized},
		{http.MethodGet, "/lab.git/config", http.StatusUnauthorized},
		{http.MethodGet, "/other.git/info/refs?service=git-upload-pack", http.StatusNotFound},
	}
	for _, tt := range tests {
		req, err := http.NewRequestWithContext(t.Context(), tt.method, url+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != tt.status {
			t.Errorf("%s %s: %s, wanted %d", tt.method, tt.path, resp.Status, tt.status)
		}
	}
}

func TestUnhealthy(t *testing.T) {
	dir := t.TempDir()
	url := start(t, dir)
	if err := os.RemoveAll(filepath.Join(dir, "lab.git")); err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(url + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("%s", resp.Status)
	}
}
