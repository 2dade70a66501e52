package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/cgi"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"k8slab/lab/command"
)

const (
	gitRepository = "lab.git" // below the directory
	gitBranch     = "main"
	gitUser       = "git"    // who may push
	maxPush       = 64 << 20 // bytes
)

// gitServer serves one Git repository over HTTP, with git's own program. Everybody may read it; to push takes the password.
type gitServer struct {
	dir      string // has the repository
	password string
	errors   io.Writer // what git says to its operator
}

func (a *app) gitserverCommand() *cobra.Command {
	s := &gitServer{dir: "/git", errors: a.stderr}
	addr, passwordFile := ":8080", ""
	cmd := &cobra.Command{
		Use:   "gitserver",
		Short: "Serve the Git repository of the lab's add-ons",
		Long: `Serve a Git repository over HTTP, and make it if it is not there:
  /lab.git      open for reading; a push needs the user git and the password
  GET /healthz  200 if the repository can be read`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if s.password, err = readPassword(passwordFile); err != nil {
				return err
			}
			handler, err := s.handler(cmd.Context())
			if err != nil {
				return err
			}
			return serve(cmd.Context(), addr, handler)
		},
	}
	cmd.Flags().StringVar(&s.dir, "dir", s.dir, "directory that has the repository")
	cmd.Flags().StringVar(&addr, "listen", addr, "address to serve on")
	cmd.Flags().StringVar(&passwordFile, "password-file", "", "file with the password for pushing")
	_ = cmd.MarkFlagRequired("password-file")
	return cmd
}

func readPassword(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	password := strings.TrimRight(string(data), "\r\n")
	if password == "" {
		return "", fmt.Errorf("%s is empty: it has to have the password for pushing", file)
	}
	return password, nil
}

// handler makes the repository if it is not there, and serves it.
func (s *gitServer) handler(ctx context.Context) (http.Handler, error) {
	core, err := s.git(ctx, "--exec-path")
	if err != nil {
		return nil, err
	}
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	backend := &cgi.Handler{
		Path:   filepath.Join(strings.TrimSpace(core), "git-http-backend"),
		Env:    append(gitEnvironment(), "GIT_PROJECT_ROOT="+s.dir, "GIT_HTTP_EXPORT_ALL=1"),
		Stderr: s.errors,
	}
	mux := http.NewServeMux()
	mux.Handle("/"+gitRepository+"/", s.guard(whole(backend)))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.ReadFile(filepath.Join(s.repository(), "HEAD")); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	return mux, nil
}

func (s *gitServer) repository() string { return filepath.Join(s.dir, gitRepository) }

// prepare makes the repository beside its place and moves it there when it is on the disk, so that no crash leaves one by halves, and
// configures it: pushes are on and reach the disk, none can rewrite or delete what others have fetched, and none starts a collection of
// garbage, whose processes would outlive it as children of a pod's first process, which waits for none.
func (s *gitServer) prepare(ctx context.Context) error {
	if _, err := os.Stat(s.repository()); errors.Is(err, fs.ErrNotExist) {
		partial := s.repository() + ".new"
		if err := os.RemoveAll(partial); err != nil {
			return err
		}
		if _, err := s.git(ctx, "init", "--quiet", "--bare", "--initial-branch="+gitBranch, partial); err != nil {
			return err
		}
		syscall.Sync()
		if err := os.Rename(partial, s.repository()); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	for _, setting := range [][2]string{
		{"http.receivepack", "true"}, {"receive.denyNonFastForwards", "true"}, {"receive.denyDeletes", "true"},
		{"receive.autogc", "false"}, {"core.fsync", "all"},
	} {
		if _, err := s.git(ctx, "--git-dir", s.repository(), "config", setting[0], setting[1]); err != nil {
			return err
		}
	}
	return nil
}

// guard lets nobody push without the password. Whatever is none of the two requests of a fetch counts as a push.
func (s *gitServer) guard(next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(s.password)) // of one length, so that comparing takes one time
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, given, _ := r.BasicAuth()
		got := sha256.Sum256([]byte(given))
		allowed := user == gitUser && subtle.ConstantTimeCompare(got[:], want[:]) == 1
		path := strings.TrimPrefix(r.URL.Path, "/"+gitRepository)
		reads := path == "/git-upload-pack" || path == "/info/refs" && r.URL.RawQuery == "service=git-upload-pack"
		if !reads && !allowed {
			w.Header().Set("WWW-Authenticate", `Basic realm="lab"`)
			http.Error(w, "pushing needs the user "+gitUser+" and the password", http.StatusUnauthorized)
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
func (s *gitServer) git(ctx context.Context, args ...string) (string, error) {
	return command.Command{Argv: append([]string{"git"}, args...), Env: gitEnvironment()}.Run(ctx)
}

// gitEnvironment lets no configuration but the repository's count.
func gitEnvironment() []string {
	return []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"}
}
