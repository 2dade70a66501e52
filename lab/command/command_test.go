package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestRun(t *testing.T) {
	tests := []struct {
		name    string
		command Command
		want    string
	}{
		{"output", Command{Argv: []string{"printf", `a\nb`}}, "a\nb"},
		{"stderr is not output", Command{Argv: []string{"sh", "-c", "echo out; echo err >&2"}}, "out\n"},
		{"no shell", Command{Argv: []string{"echo", "$HOME; *"}}, "$HOME; *\n"},
		{"stdin", Command{Argv: []string{"cat"}, Stdin: strings.NewReader("in")}, "in"},
		{"environment is added to", Command{Argv: []string{"sh", "-c", "echo $LAB_TEST; test -n \"$PATH\""}, Env: []string{"LAB_TEST=yes"}}, "yes\n"},
		{"directory", Command{Argv: []string{"pwd"}, Dir: "/"}, "/\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.command.Run(t.Context())
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestStdoutTakesTheOutput(t *testing.T) {
	var out bytes.Buffer
	got, err := Command{Argv: []string{"echo", "x"}, Stdout: &out}.Run(t.Context())
	if err != nil || got != "" || out.String() != "x\n" {
		t.Errorf("returned %q, %v, wrote %q", got, err, out.String())
	}
}

func TestForeignProgramIsNobody(t *testing.T) {
	t.Setenv("SECRET", "of root")
	closed := t.TempDir() // nobody may not walk into it
	program := filepath.Join(closed, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nid -u; echo \"$SECRET\" \"$GIVEN\"; ls /sys/class/net; kill -0 $PPID && echo reached || echo denied\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	got, err := Command{Argv: []string{program}, Env: []string{"GIVEN=given"}, Foreign: true}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := "65534\n given\n"
	if os.Geteuid() != 0 {
		want = fmt.Sprintf("%d\n given\n", os.Geteuid())
	} else if !strings.HasSuffix(got, "denied\n") {
		t.Errorf("%q: it may send signals to labctl", got)
	}
	if !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %q first", got, want)
	}

	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = Command{Argv: []string{program}, Foreign: true}.Run(t.Context())
	if os.Geteuid() == 0 && (err == nil || !strings.Contains(err.Error(), "chmod a+rx "+program)) {
		t.Errorf("%v", err)
	}
}

func TestError(t *testing.T) {
	lines := func(from, to int) string {
		var all []string
		for i := from; i <= to; i++ {
			all = append(all, fmt.Sprint(i))
		}
		return strings.Join(all, "\n")
	}
	tests := []struct {
		name string
		argv []string
		want string
	}{
		{"silent", []string{"false"}, "false: exit status 1"},
		{"says why on stderr", []string{"sh", "-c", "echo why >&2; exit 3"}, "sh -c echo why >&2; exit 3: exit status 3:\nwhy"},
		{"says why on stdout", []string{"sh", "-c", "echo why; exit 3"}, "sh -c echo why; exit 3: exit status 3:\nwhy"},
		{"long", []string{"sh", "-c", "seq 20; exit 1"}, "sh -c seq 20; exit 1: exit status 1:\n" + lines(13, 20)},
		// More than is kept: what the program said last must be what is left.
		{"very long", []string{"sh", "-c", "seq 20000; exit 1"}, "sh -c seq 20000; exit 1: exit status 1:\n" + lines(19993, 20000)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, err := Run(t.Context(), tt.argv...)
			var failed *Error
			var exit *exec.ExitError
			if !errors.As(err, &failed) || !errors.As(err, &exit) || out != "" {
				t.Fatalf("got %q, %v, want an *Error around an *exec.ExitError", out, err)
			}
			if got := err.Error(); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestMissingProgram(t *testing.T) {
	_, err := Run(t.Context(), filepath.Join(t.TempDir(), "none"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist", err)
	}
}

func TestLine(t *testing.T) {
	var got []string
	// Written in parts, because a pipe gives what it has and not lines.
	script := "printf 'a'; sleep 0.05; printf 'b\\n\\nc'; sleep 0.05; printf 'd\\n'"
	_, err := Command{Argv: []string{"sh", "-c", script}, Line: func(line string) { got = append(got, line) }}.Run(t.Context())
	if want := []string{"ab", "", "cd"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// Both streams end in one tail and one callback: under the race detector this shows whether they share it safely.
func TestBothStreamsAtOnce(t *testing.T) {
	count := 0
	script := "for i in $(seq 300); do echo out; echo err >&2; done"
	_, err := Command{Argv: []string{"sh", "-c", script}, Line: func(line string) {
		if line == "out" || line == "err" {
			count++
		}
	}}.Run(t.Context())
	if err != nil || count != 600 {
		t.Errorf("got %d whole lines, %v, want 600", count, err)
	}
}

func TestEndOfContextEndsTheChildrenToo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	why := errors.New("the budget ran out")
	ctx, cancel := context.WithCancelCause(t.Context())
	started := make(chan struct{})
	go func() {
		<-started
		cancel(why)
	}()
	begin := time.Now()
	_, err := Command{
		Argv: []string{"sh", "-c", `sleep 60 & echo $! >"$0"; echo started; wait`, file},
		Line: func(string) { close(started) },
	}.Run(ctx)
	if !errors.Is(err, why) {
		t.Errorf("got %v, want the context's cause", err)
	}
	if took := time.Since(begin); took > 4*time.Second {
		t.Errorf("took %s: the child kept its parent's output open", took)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if !ended(child) {
		_ = syscall.Kill(child, syscall.SIGKILL)
		t.Errorf("the child %d lives on", child)
	}
}

func TestEndedContextStartsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := filepath.Join(t.TempDir(), "made")
	if _, err := Run(ctx, "touch", file); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the program ran")
	}
}

// ended waits for the process to be gone or to be a zombie, which nobody may ever collect where no init does.
func ended(pid int) bool {
	for range 100 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return true
		}
		if fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])); fields[0] == "Z" {
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}
