package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// page is a server's that knows no Git.
func page(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<h1>Hello\n") }

// wrong checks an error's kind and texts, and that it keeps the password to itself.
func wrong(t *testing.T, err, kind error, texts ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("the error is %v, wanted %v", err, kind)
	}
	for _, text := range append(texts, steps[kind]) {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error %q lacks %q", err, text)
		}
	}
	if strings.Contains(err.Error(), password) || strings.Contains(err.Error(), "\n") {
		t.Errorf("the error %q shows what it should not", err)
	}
}

func TestObstacles(t *testing.T) {
	reply := func(method string, status int) func(*server) {
		return func(s *server) {
			s.around = func(w http.ResponseWriter, r *http.Request, do http.Handler) {
				if r.Method == method {
					http.Error(w, "<b>no</b>", status)
					return
				}
				do.ServeHTTP(w, r)
			}
		}
	}
	tests := []struct {
		name   string
		spoil  func(*server)
		change func(*Config)
		kind   error
		want   []string
	}{
		{"nobody listens", func(s *server) { s.Close() }, nil, ErrUnreachable, []string{"connection refused"}},
		{"no Git", func(s *server) { s.Config.Handler = http.HandlerFunc(page) }, nil, ErrUnreachable, []string{"no Git server answers: "}},
		{"no password", func(s *server) { s.auth = true }, nil, ErrUnauthorized, []string{"who are you?"}},
		{"wrong password", func(s *server) { s.auth = true }, func(c *Config) { c.PasswordFile = "wrong" }, ErrUnauthorized, nil},
		{"may only read", reply(http.MethodGet, http.StatusForbidden), nil, ErrUnauthorized, []string{"<b>no</b>"}},
		{"may only read, said late", reply(http.MethodPost, http.StatusForbidden), nil, ErrUnauthorized, nil},
		{"the server is ill", reply(http.MethodPost, http.StatusInternalServerError), nil, ErrUnreachable, []string{"status code: 500"}},
		{"no repository", nil, func(c *Config) { c.URL += "x" }, ErrNoRepository, nil},
		{"no branch", nil, func(c *Config) { c.Branch = "prod" }, ErrNoBranch, []string{"no such branch: prod"}},
		{"empty repository", func(s *server) { s.git(s.dir, "update-ref", "-d", "refs/heads/main") }, nil, ErrNoBranch, nil},
		{"branch removed meanwhile", func(s *server) {
			s.around = func(w http.ResponseWriter, r *http.Request, do http.Handler) {
				s.git(s.dir, "update-ref", "-d", "refs/heads/main")
				do.ServeHTTP(w, r)
			}
		}, nil, ErrNoBranch, []string{"before that: the branch moved"}},
		{"no file", nil, func(c *Config) { c.File = "infrastructure/kustomization.yaml" }, ErrNoFile,
			[]string{"infrastructure/kustomization.yaml in main@sha1:"}},
		{"no directory", nil, func(c *Config) { c.File = "a/b/kustomization.yaml" }, ErrNoFile, nil},
		{"below a file", nil, func(c *Config) { c.File = file + "/x" }, ErrNoFile, nil},
		{"a directory", nil, func(c *Config) { c.File = "infrastructure/storage" }, ErrNoFile, []string{"is a directory"}},
		{"a symbolic link", nil, func(c *Config) { c.File = "link.yaml" }, ErrNoFile, []string{"a symbolic link"}},
		{"no YAML", nil, func(c *Config) { c.File = "README.md" }, ErrBadFile, []string{"main@sha1:"}},
		{"large", func(s *server) {
			s.write(file, strings.Repeat("#", maxFile+1))
			s.push("main", "large")
		}, nil, ErrBadFile, []string{"more than 1 MiB"}},
		{"large, and left out", func(s *server) {
			s.git(s.dir, "config", "uploadpack.allowFilter", "true")
			s.write(file, strings.Repeat("#", maxFile+1))
			s.push("main", "large")
		}, nil, ErrBadFile, []string{"more than 1 MiB"}},
		{"another file is huge", func(s *server) {
			s.write("huge", strings.Repeat("0", unpackedLimit))
			s.push("main", "huge")
		}, nil, ErrTooLarge, []string{"more than 128 MiB"}},
		{"no entry", nil, func(c *Config) { c.File = "apps/kustomization.yaml" }, ErrNoEntry, []string{`no list has an item "../w3"`}},
		{"a hook refuses", func(s *server) { s.hook("echo main is protected, ask Ann >&2; exit 1\n") }, nil, ErrRefused,
			[]string{"pre-receive hook declined", "main is protected, ask Ann"}},
		{"the disk is full", func(s *server) { s.git(s.dir, "config", "receive.maxInputSize", "10") }, nil, ErrRefused,
			[]string{"unpack: ", "pack exceeds maximum allowed size"}},
		{"taken and not taken", func(s *server) {
			s.around = func(w http.ResponseWriter, r *http.Request, do http.Handler) {
				if r.Method == http.MethodGet {
					do.ServeHTTP(w, r)
					return
				}
				report := pktLine("unpack ok\n") + pktLine("ok refs/heads/main\n") + "0000"
				fmt.Fprint(w, pktLine("\x01"+report)+"0000")
			}
		}, nil, ErrRefused, []string{"the branch is as before"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t)
			if tt.spoil != nil {
				tt.spoil(s)
			}
			r := s.open(func(c *Config) {
				if tt.change != nil {
					tt.change(c)
				}
				if c.PasswordFile != "" {
					c.PasswordFile = private(t, password+c.PasswordFile)
				}
			})
			_, err := r.Activate(t.Context())
			wrong(t, err, tt.kind, append(tt.want, "activate ../w3 in "+r.File, r.URL)...)
			if log := s.git(s.dir, "log", "--all", "--format=%s"); strings.Contains(log, "Activate") {
				t.Errorf("there is a commit:\n%s", log)
			}
		})
	}
}

func TestPassword(t *testing.T) {
	s := newServer(t)
	s.auth = true
	_, err := s.open(func(c *Config) { c.PasswordFile = private(t, password+"\n") }).Activate(t.Context())
	must(t, err)
	s.expect(activated, subjectOn)
}

// A server that takes connections and says nothing ends no later than the context.
func TestSilentServer(t *testing.T) {
	s := newServer(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	s.around = func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		cancel(errors.New("the budget ran out"))
		<-r.Context().Done()
	}
	_, err := s.open().Activate(ctx)
	if err == nil || !strings.Contains(err.Error(), "the budget ran out") || strings.Contains(err.Error(), steps[ErrUnreachable]) {
		t.Errorf("the error is %v", err)
	}
}
