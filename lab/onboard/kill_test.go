package onboard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8slab/lab/atomicfile"
)

// A child is this test's program started again. Its environment says what it does, where, and at which write of the state it is killed.
const (
	childVerb = "ONBOARD_TEST_CHILD" // run, resume or rollback
	childDir  = "ONBOARD_TEST_DIR"
	childKill = "ONBOARD_TEST_KILL" // "before 3": just before the third rename; "after 3"
)

func TestMain(m *testing.M) {
	if verb := os.Getenv(childVerb); verb != "" {
		if err := child(verb, os.Getenv(childDir), os.Getenv(childKill)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(verb, dir, kill string) error {
	f := newFake(dir)
	writes := 0
	atomicfile.Rename = func(from, to string) error {
		writes++
		if kill == fmt.Sprintf("before %d", writes) {
			die()
		}
		err := os.Rename(from, to)
		if kill == fmt.Sprintf("after %d", writes) {
			die()
		}
		return err
	}
	defer func() { fmt.Println(writes) }()
	if verb == "rollback" {
		return f.Rollback(context.Background())
	}
	return f.Run(context.Background(), Options{Resume: verb == "resume"})
}

// die ends the process as kill -9 does: nothing is cleaned up.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// start runs a child until it ends, or is killed, and returns how often it wrote, or 0. A child that fails fails the test.
func start(t *testing.T, verb, dir, kill string) (writes int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVerb+"="+verb, childDir+"="+dir, childKill+"="+kill,
		"GORACE=atexit_sleep_ms=0") // by default every program with the race detector sleeps for a second at its end
	out, err := cmd.CombinedOutput()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if killed := ok && status.Signaled() && status.Signal() == syscall.SIGKILL; killed && kill != "" {
		return 0
	}
	writes, wrong := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || wrong != nil {
		t.Fatalf("%s in %s, killed %q: %v\n%s", verb, dir, kill, err, out)
	}
	return writes
}

// points kills a child that does verb at each of its writes, every time in a world that prepare has made, and calls each after that.
func points(t *testing.T, verb string, writes int, prepare, each func(t *testing.T, dir string)) {
	for n := range 2 * writes {
		kill := fmt.Sprintf("%s %d", []string{"before", "after"}[n%2], n/2+1)
		t.Run(kill, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			prepare(t, dir)
			if start(t, verb, dir, kill) > 0 {
				t.Error("it was not killed")
			}
			each(t, dir)
		})
	}
}

// outcome is what an onboarding came to, without times and attempts.
func outcome(t *testing.T, dir string) string {
	t.Helper()
	v := view(t, newFake(dir))
	if v.State == nil {
		return string(v.Condition)
	}
	v.Started, v.Timestamp, v.PhaseTimes = time.Time{}, time.Time{}, nil
	for i := range v.Changes {
		v.Changes[i].Time = time.Time{}
	}
	for i := range v.Errors {
		v.Errors[i].Time = time.Time{}
	}
	data, err := json.MarshalIndent(v, "", " ")
	must(t, err)
	return string(data)
}

// whole checks that the world is what it should be, that everything was done once, and that no write left anything.
func whole(t *testing.T, dir, things, done string) {
	t.Helper()
	w := newWorld(dir)
	if w.things() != things || w.done() != done {
		t.Errorf("there are: %s\nwanted:    %s\ndone:   %s\nwanted: %s", w.things(), things, w.done(), done)
	}
	left, err := filepath.Glob(filepath.Join(dir, "onboard", "w2", ".new-"+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v %v", left, err)
	}
}

// An onboarding that is killed anywhere goes on to the same end, everything done once; or it is undone, and what was done is undone once.
func TestKilledRun(t *testing.T) {
	undisturbed := t.TempDir()
	writes := start(t, "run", undisturbed, "")
	want := outcome(t, undisturbed)
	whole(t, undisturbed, allThings, allMade)

	points(t, "run", writes, func(*testing.T, string) {}, func(t *testing.T, dir string) {
		other := t.TempDir()
		must(t, os.CopyFS(other, os.DirFS(dir)))
		restrict(t, other)
		switch c := view(t, newFake(dir)).Condition; c {
		case Never: // killed before the first write
			start(t, "run", dir, "")
		case Interrupted:
			start(t, "resume", dir, "")
			must(t, newFake(other).Rollback(t.Context()))
			if v := view(t, newFake(other)); v.Condition != TakenBack || len(v.left()) > 0 {
				t.Errorf("rolled back, it is %s with %v", v.Condition, v.left())
			}
			undoneOnce(t, other)
		case Onboarded:
		default:
			t.Errorf("killed, it is %s", c)
		}
		if got := outcome(t, dir); got != want {
			t.Errorf("it came to\n%s\nwanted\n%s", got, want)
		}
		whole(t, dir, allThings, allMade)
	})
}

// One whose every process is killed comes to the same end too, in and out again.
func TestKilledAgainAndAgain(t *testing.T) {
	dir := t.TempDir()
	until := func(verb, kill string, end Condition) {
		t.Helper()
		for range 50 {
			if view(t, newFake(dir)).Condition == end {
				return
			}
			start(t, verb, dir, kill)
			if verb == "run" {
				verb = "resume"
			}
		}
		t.Fatalf("after 50 processes it is %s", view(t, newFake(dir)).Condition)
	}
	until("run", "before 4", Onboarded)
	whole(t, dir, allThings, allMade)
	until("rollback", "after 2", TakenBack)
	undoneOnce(t, dir)
}

// restrict gives the copies of files the modes that the files have.
func restrict(t *testing.T, dir string) {
	t.Helper()
	must(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		return errors.Join(err, os.Chmod(path, info.Mode().Perm()&^0o077))
	}))
}

// undoneOnce checks that the world is as it was, and that each thing that was made was undone once.
func undoneOnce(t *testing.T, dir string) {
	t.Helper()
	var made, undone []string
	for _, what := range strings.Fields(newWorld(dir).done()) {
		if thing, ok := strings.CutPrefix(what, "make:"); ok {
			made = append(made, what)
			undone = append(undone, "undo:"+thing)
		}
	}
	whole(t, dir, found, strings.Join(append(made, undone...), " "))
}

// A rollback that is killed anywhere goes on to the same end, everything undone once.
func TestKilledRollback(t *testing.T) {
	for name, spoil := range map[string]func(*fake){
		"of a completed onboarding": func(*fake) {},
		"of a failed one":           func(f *fake) { f.runners[HealthVerification].run = broken },
	} {
		t.Run(name, func(t *testing.T) {
			prepare := func(t *testing.T, dir string) {
				f := newFake(dir)
				spoil(f)
				if err := f.Run(t.Context(), Options{}); err != nil && !errors.Is(err, errBroken) {
					t.Fatal(err)
				}
			}
			undisturbed := t.TempDir()
			prepare(t, undisturbed)
			writes := start(t, "rollback", undisturbed, "")
			want := outcome(t, undisturbed)
			undoneOnce(t, undisturbed)

			points(t, "rollback", writes, prepare, func(t *testing.T, dir string) {
				if c := view(t, newFake(dir)).Condition; c != TakenBack {
					start(t, "rollback", dir, "")
				}
				if got := outcome(t, dir); got != want {
					t.Errorf("it came to\n%s\nwanted\n%s", got, want)
				}
				undoneOnce(t, dir)
				backups, _ := filepath.Glob(filepath.Join(dir, "onboard", "w2", "before-rollback-*.json"))
				if len(backups) != 1 {
					t.Fatalf("backups: %v", backups)
				}
				data, err := os.ReadFile(backups[0])
				must(t, err)
				if s, err := parse(data); err != nil || s.Status == RollingBack || bytes.Contains(data, []byte(`"undone"`)) {
					t.Errorf("the backup is bad: %v\n%s", err, data)
				}
			})
		})
	}
}
