package gitrepo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8slab/lab/onboard"
)

// A child is this test's program started again, to be killed.
const (
	childVerb  = "GITREPO_TEST_CHILD" // run, resume or rollback
	childDir   = "GITREPO_TEST_DIR"
	childThing = "GITREPO_TEST_CONFIG" // a Config as JSON
)

func TestMain(m *testing.M) {
	verb := os.Getenv(childVerb)
	if verb == "" {
		os.Exit(m.Run())
	}
	var c Config
	err := json.Unmarshal([]byte(os.Getenv(childThing)), &c)
	var r *Repository
	if err == nil {
		r, err = Open(context.Background(), c)
	}
	if err == nil {
		e, _ := engine(os.Getenv(childDir), r)
		if verb == "rollback" {
			err = e.Rollback(context.Background())
		} else {
			err = e.Run(context.Background(), onboard.Options{Resume: verb == "resume"})
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Where a child is killed by the server that it pushes to.
const (
	onPush   = "before the server takes the push"
	onAnswer = "after the server took the push"
	never    = ""
)

// child runs a verb in a process of its own, until it ends or is killed.
func (s *server) child(verb, dir, kill string) {
	s.t.Helper()
	config, err := json.Marshal(s.config())
	must(s.t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVerb+"="+verb, childDir+"="+dir, childThing+"="+string(config), "GORACE=atexit_sleep_ms=0")
	started, ended := make(chan *os.Process, 1), make(chan struct{})
	s.around = func(w http.ResponseWriter, r *http.Request, do http.Handler) {
		if kill == never || r.Method != http.MethodPost {
			do.ServeHTTP(w, r)
			return
		}
		if kill == onAnswer {
			do.ServeHTTP(httptest.NewRecorder(), r)
		}
		if err := (<-started).Kill(); err != nil {
			s.t.Error(err)
		}
		<-ended
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	must(s.t, cmd.Start())
	started <- cmd.Process
	err = cmd.Wait()
	close(ended)
	s.around = nil
	exit := (*exec.ExitError)(nil)
	killed := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
	if kill == never && err != nil || kill != never && !killed {
		s.t.Fatalf("%s, to be killed %q: %v\n%s", verb, kill, err, out.String())
	}
}

// An onboarding that is killed on one side of its push or the other goes on to one commit, and its rollback to one more at most.
func TestKilledAroundThePush(t *testing.T) {
	for _, tt := range []struct {
		name, kill, then, killThen string
		log                        []string
	}{
		{"before, then on", onPush, "resume", never, []string{subjectOn}},
		{"after, then on", onAnswer, "resume", never, []string{subjectOn}},
		{"before, then back", onPush, "rollback", never, nil},
		{"after, then back", onAnswer, "rollback", never, []string{subjectOff, subjectOn}},
		{"after, back killed before", onAnswer, "rollback", onPush, []string{subjectOff, subjectOn}},
		{"after, back killed after", onAnswer, "rollback", onAnswer, []string{subjectOff, subjectOn}},
		{"never, back killed before", never, "rollback", onPush, []string{subjectOff, subjectOn}},
		{"never, back killed after", never, "rollback", onAnswer, []string{subjectOff, subjectOn}},
		{"before, on killed after", onPush, "resume", onAnswer, []string{subjectOn}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t)
			tree, dir := s.tree(), filepath.Join(t.TempDir(), "onboard")
			s.child("run", dir, tt.kill)
			s.child(tt.then, dir, tt.killThen)
			if tt.killThen != never {
				s.child(tt.then, dir, never)
			}
			if tt.then == "resume" {
				s.expect(activated, tt.log...)
				return
			}
			s.expect(original, tt.log...)
			if s.tree() != tree {
				t.Error("the tree is not what it was")
			}
		})
	}
}
