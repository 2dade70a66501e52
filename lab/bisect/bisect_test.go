package bisect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// history is a repository with commits 0 to n-1, each tagged with its number after a c. The file of commit i says i.
func history(t *testing.T, n int) (dir string, run func(args ...string) string) {
	t.Helper()
	dir = t.TempDir()
	run = func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %s", args, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("init", "--quiet")
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, "file"), fmt.Append(nil, i), 0o644); err != nil {
			t.Fatal(err)
		}
		run("add", "--all")
		run("commit", "--quiet", fmt.Sprintf("--message=commit %d", i))
		run("tag", fmt.Sprintf("c%d", i))
	}
	return dir, run
}

// number is the commit that the worktree has.
func number(t *testing.T, b *Bisection) (n int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(b.Tree(), "file"))
	if err == nil {
		_, err = fmt.Sscan(string(text), &n)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRun(t *testing.T) {
	repository, run := history(t, 9)
	dir := filepath.Join(t.TempDir(), "b")
	if err := os.WriteFile(filepath.Join(repository, "mine"), []byte("not committed"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := run("status", "--porcelain", "--branch")
	b, err := Open(t.Context(), dir, Range{Checkout: repository, Good: "c0", Bad: "HEAD"})
	if err != nil || b.Resumed {
		t.Fatal(b, err)
	}
	tried := 0
	log, err := b.Run(t.Context(), func(_ context.Context, c Commit) (Verdict, error) {
		tried++
		n := number(t, b)
		if c.Subject != fmt.Sprintf("commit %d", n) {
			t.Errorf("the worktree has %d, and it is about %+v", n, c)
		}
		if err := os.WriteFile(filepath.Join(b.Tree(), "file"), []byte("a build wrote this"), 0o644); err != nil {
			t.Error(err)
		}
		if n >= 6 {
			return Bad, nil
		}
		return Good, nil
	}, func(string) {})
	if err != nil || log.First == nil || log.First.Subject != "commit 6" || tried != 3 {
		t.Fatalf("got %+v after %d tries, %v", log, tried, err)
	}
	if want := (Judged{Commit{run("rev-parse", "c8"), "commit 8"}, Bad}); !slices.Contains(log.Judged, want) || len(log.Judged) != 5 {
		t.Errorf("judged: %+v", log.Judged)
	}
	if err := b.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err == nil || run("worktree", "list") != strings.Split(run("worktree", "list"), "\n")[0] || run("status", "--porcelain", "--branch") != before {
		t.Errorf("left: %v, %s, %s", err, run("worktree", "list"), run("status", "--porcelain", "--branch"))
	}
}

// What was judged before an error is not tried again. Another range starts anew.
func TestResume(t *testing.T) {
	repository, _ := history(t, 9)
	dir := filepath.Join(t.TempDir(), "b")
	r := Range{Checkout: repository, Good: "c0", Bad: "c8", Tested: []string{"status"}}
	stop := errors.New("stop")
	var tried []int
	try := func(b *Bisection, until int) (Log, error) {
		return b.Run(t.Context(), func(context.Context, Commit) (Verdict, error) {
			n := number(t, b)
			if len(tried) == until {
				return "", stop
			}
			tried = append(tried, n)
			if n >= 3 {
				return Bad, nil
			}
			return Good, nil
		}, func(string) {})
	}
	b, err := Open(t.Context(), dir, r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := try(b, 1); !errors.Is(err, stop) {
		t.Fatal(err)
	}
	if b, err = Open(t.Context(), dir, r); err != nil || !b.Resumed {
		t.Fatal(b, err)
	}
	log, err := try(b, 9)
	if err != nil || log.First == nil || log.First.Subject != "commit 3" || !slices.Equal(tried, []int{4, 2, 3}) {
		t.Errorf("got %+v, tried %d, %v", log, tried, err)
	}
	r.Tested = []string{"validate"}
	if b, err = Open(t.Context(), dir, r); err != nil || b.Resumed {
		t.Errorf("another command goes on: %v", err)
	}
}

func TestOnlySkipped(t *testing.T) {
	repository, _ := history(t, 4)
	b, err := Open(t.Context(), filepath.Join(t.TempDir(), "b"), Range{Checkout: repository, Good: "c0", Bad: "c3"})
	if err != nil {
		t.Fatal(err)
	}
	log, err := b.Run(t.Context(), func(context.Context, Commit) (Verdict, error) { return Skip, nil }, func(string) {})
	if err != nil || log.First != nil || len(log.Possible) != 3 {
		t.Errorf("got %+v, %v", log, err)
	}
}

func TestUnknownCommit(t *testing.T) {
	repository, _ := history(t, 2)
	dir := filepath.Join(t.TempDir(), "b")
	for _, good := range []string{"v9", "--all", ""} {
		if _, err := Open(t.Context(), dir, Range{Checkout: repository, Good: good, Bad: "c1"}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("has no commit %q", good)) {
			t.Errorf("%q: %v", good, err)
		}
	}
}
