// Package gitserver serves one Git repository over HTTP, with git's own program. Everybody may read it; to push takes a password. It encrypts
// nothing, so it is for a network whose members are trusted: the lab's.
package gitserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/cgi"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"k8slab/lab/command"
)

const (
	repository = "lab.git" // below the directory, and of the URL
	branch     = "main"
	user       = "git"    // who may push
	maxPush    = 64 << 20 // bytes
)

// Config is a repository and who may push to it.
type Config struct {
	Dir      string    // has the repository, lab.git
	Password string    // of the user git, for pushing
	Errors   io.Writer // what git says to its operator
}

// New makes the repository if it is not there, and returns what serves it:
//
//	/lab.git      open for reading; a push needs the user git and the password
//	GET /healthz  200 if the repository can be read
func New(ctx context.Context, c Config) (http.Handler, error) {
	core, err := git(ctx, "--exec-path")
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(c.Dir, repository)
	if err := prepare(ctx, dir); err != nil {
		return nil, err
	}
	backend := &cgi.Handler{
		Path:   filepath.Join(strings.TrimSpace(core), "git-http-backend"),
		Env:    append(environment(), "GIT_PROJECT_ROOT="+c.Dir, "GIT_HTTP_EXPORT_ALL=1"),
		Stderr: c.Errors,
	}
	mux := http.NewServeMux()
	mux.Handle("/"+repository+"/", guard(c.Password, whole(backend)))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.ReadFile(filepath.Join(dir, "HEAD")); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	return mux, nil
}

// prepare makes the repository beside its place and moves it there when it is on the disk, so that no crash leaves one by halves, and
// configures it: pushes are on and reach the disk, none can rewrite or delete what others have fetched, and none starts a collection of
// garbage, whose processes would outlive it as children of a pod's first process, which waits for none.
func prepare(ctx context.Context, dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		partial := dir + ".new"
		if err := os.RemoveAll(partial); err != nil {
			return err
		}
		if _, err := git(ctx, "init", "--quiet", "--bare", "--initial-branch="+branch, partial); err != nil {
			return err
		}
		syscall.Sync()
		if err := os.Rename(partial, dir); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	for _, setting := range [][2]string{
		{"http.receivepack", "true"}, {"receive.denyNonFastForwards", "true"}, {"receive.denyDeletes", "true"},
		{"receive.autogc", "false"}, {"core.fsync", "all"},
	} {
		if _, err := git(ctx, "--git-dir", dir, "config", setting[0], setting[1]); err != nil {
			return err
		}
	}
	return nil
}

// guard lets nobody push without the password. Whatever is none of the two requests of a fetch counts as a push.
func guard(password string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(password)) // of one length, so that comparing takes one time
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, given, _ := r.BasicAuth()
		got := sha256.Sum256([]byte(given))
		allowed := name == user && subtle.ConstantTimeCompare(got[:], want[:]) == 1
		path := strings.TrimPrefix(r.URL.Path, "/"+repository)
		reads := path == "/git-upload-pack" || path == "/info/refs" && r.URL.RawQuery == "service=git-upload-pack"
		if !reads && !allowed {
			w.Header().Set("WWW-Authenticate", `Basic realm="lab"`)
			http.Error(w, "pushing needs the user "+user+" and the password", http.StatusUnauthorized)
			return
		}
		r.Header.Del("Authorization") // which git would have in its environment
		next.ServeHTTP(w, r)
	})
}

// whole gives the handler a body of known length, without which CGI has none: git sends what is longer than its http.postBuffer in chunks.
func whole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength < 0 {
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPush))
			if err != nil {
				http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
				return
			}
			r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
		}
		next.ServeHTTP(w, r)
	})
}

// git runs git and returns what it printed.
func git(ctx context.Context, args ...string) (string, error) {
	return command.Command{Argv: append([]string{"git"}, args...), Env: environment()}.Run(ctx)
}

// environment lets no configuration but the repository's count.
func environment() []string {
	return []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"}
}
