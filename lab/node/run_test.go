package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestRun(t *testing.T) {
	for name, test := range map[string]struct {
		argv                   []string
		stdin, stdout, stderr  string
		status                 int
		signal, message, wrong string
	}{
		"success":        {argv: []string{"true"}},
		"separation":     {argv: []string{"sh", "-c", "echo out; echo err >&2"}, stdout: "out\n", stderr: "err\n"},
		"stdin":          {argv: []string{"tr", "a-z", "A-Z"}, stdin: "hello", stdout: "HELLO"},
		"stdin not read": {argv: []string{"true"}, stdin: strings.Repeat("x", 4<<20)},
		"status with stderr": {
			argv: []string{"sh", "-c", "echo out; echo first >&2; echo >&2; echo last >&2; exit 3"}, stdout: "out\n",
			stderr: "first\n\nlast\n", status: 3, message: "cp1: sh -c …: exit status 3: first; last",
		},
		"status with stdout": {
			argv: []string{"sh", "-c", "echo out; exit 1"}, stdout: "out\n",
			status: 1, message: "cp1: sh -c …: exit status 1: out",
		},
		"silent status": {argv: []string{"false"}, status: 1, message: "cp1: false: exit status 1"},
		"signal": {
			argv: []string{"sh", "-c", "kill -KILL $PPID"}, status: 137, signal: "KILL",
			message: "cp1: sh -c …: killed by signal KILL",
		},
		"missing program": {argv: []string{"/no/such/program"}, status: 127, wrong: "/no/such/program"},
	} {
		t.Run(name, func(t *testing.T) {
			_, n := setup(t, realShell)
			var stdout, stderr bytes.Buffer
			cmd := Command{Argv: test.argv, Stdout: &stdout, Stderr: &stderr}
			if test.stdin != "" {
				cmd.Stdin = strings.NewReader(test.stdin)
			}
			err := n.Run(within(t, 20*time.Second), cmd)
			if test.wrong == "" && (stdout.String() != test.stdout || stderr.String() != test.stderr) {
				t.Errorf("stdout %q, stderr %q", stdout.String(), stderr.String())
			}
			if test.status == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var exit *ExitError
			if !errors.As(err, &exit) {
				t.Fatalf("error %v", err)
			}
			if exit.Status != test.status || exit.Signal != test.signal || exit.Node != "cp1" ||
				exit.Stdout != stdout.String() || exit.Stderr != stderr.String() {
				t.Errorf("%+v", exit)
			}
			if test.message != "" && exit.Error() != test.message {
				t.Errorf("message %q", exit.Error())
			}
			if !strings.Contains(exit.Error(), test.wrong) {
				t.Errorf("message %q", exit.Error())
			}
		})
	}
}

func TestRefusedCommands(t *testing.T) {
	s, n := setup(t, realShell)
	for _, argv := range [][]string{nil, {""}, {"echo", "a\x00b"}, {"echo", strings.Repeat("x", 128<<10)}} {
		if _, err := n.Read(t.Context(), argv...); err == nil {
			t.Errorf("%.20q accepted", argv)
		}
	}
	if s.connections() != 0 {
		t.Error("connected for a command that cannot be run")
	}
}

func TestReadReturnsOutputOfFailure(t *testing.T) {
	_, n := setup(t, realShell)
	out, err := n.Read(within(t, 20*time.Second), "sh", "-c", "echo inactive; exit 3")
	var exit *ExitError
	if out != "inactive\n" || !errors.As(err, &exit) {
		t.Errorf("%q, %v", out, err)
	}
}

func TestBigOutput(t *testing.T) {
	const size = 8 << 20
	_, n := setup(t, func(c *call) end {
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = c.stderr.Write(bytes.Repeat([]byte("e"), size)) })
		wg.Go(func() { _, _ = c.stdout.Write(bytes.Repeat([]byte("o"), size)) })
		wg.Wait()
		_, _ = io.WriteString(c.stderr, "\nthe end\n")
		return end{status: 1}
	})
	out, err := n.Read(within(t, 60*time.Second), "noisy")
	if len(out) != size || strings.Trim(out, "o") != "" {
		t.Errorf("%d bytes of stdout", len(out))
	}
	var exit *ExitError
	if !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if len(exit.Stdout) != 64<<10 || len(exit.Stderr) != 64<<10 || !strings.HasSuffix(exit.Stderr, "e\nthe end\n") {
		t.Errorf("kept %d and %d bytes", len(exit.Stdout), len(exit.Stderr))
	}
	if got := exit.Error(); len(got) > 500 || !strings.HasSuffix(got, "exit status 1: the end") {
		t.Errorf("message %q", got)
	}
}

type fails struct{ err error }

func (f fails) Write([]byte) (int, error) { return 0, f.err }
func (f fails) Read([]byte) (int, error)  { return 0, f.err }

func TestFailingWriterDoesNotBlockTheCommand(t *testing.T) {
	_, n := setup(t, realShell)
	full := errors.New("disk full")
	err := n.Run(within(t, 20*time.Second), Command{
		Argv: []string{"sh", "-c", "head -c 10000000 /dev/zero"}, Stdout: fails{full},
	})
	if !errors.Is(err, full) {
		t.Error(err)
	}
}

func TestFailingReaderStopsTheCommand(t *testing.T) {
	ended := make(chan string, 1)
	_, n := setup(t, func(c *call) end {
		ended <- <-c.signals
		return end{signal: "TERM"}
	})
	broken := errors.New("broken source")
	err := n.Run(within(t, 20*time.Second), Command{Argv: []string{"apply"}, Stdin: fails{broken}})
	if !errors.Is(err, broken) {
		t.Error(err)
	}
	if got := <-ended; got != "TERM" {
		t.Error(got)
	}
}

func TestStdinThatNeverEnds(t *testing.T) {
	_, n := setup(t, realShell)
	blocked, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	promptly(t, func() {
		if err := n.Run(context.Background(), Command{Argv: []string{"true"}, Stdin: blocked}); err != nil {
			t.Error(err)
		}
	})
}

func TestCancelDuringRun(t *testing.T) {
	running, signalled := make(chan struct{}), make(chan string, 1)
	_, n := setup(t, func(c *call) end {
		_, _ = io.WriteString(c.stdout, "partial")
		close(running)
		signalled <- <-c.signals
		<-c.closed
		return end{signal: "TERM"}
	})
	why := errors.New("the user had enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() { <-running; cancel(why) }()
	promptly(t, func() {
		_, err := n.Read(ctx, "sleep", "1000")
		if !errors.Is(err, why) || err.Error() != "cp1: sleep 1000: the user had enough" {
			t.Error(err)
		}
	})
	if got := <-signalled; got != "TERM" {
		t.Errorf("signal %q", got)
	}
}

func TestCancelledBeforehand(t *testing.T) {
	s, n := setup(t, realShell)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := n.Read(ctx, "true"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := n.Dial(ctx, "tcp", "127.0.0.1:1"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if s.connections() != 0 {
		t.Error("connected")
	}
}

func TestManyConcurrentCommands(t *testing.T) {
	s, n := setup(t, func(c *call) end {
		time.Sleep(20 * time.Millisecond)
		_, _ = io.WriteString(c.stdout, c.line)
		return end{}
	})
	s.change(func() { s.delay = 50 * time.Millisecond }) // so that everybody waits for the same connection
	ctx := within(t, 30*time.Second)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			want := fmt.Sprintf("echo %d", i)
			if out, err := n.Read(ctx, "echo", fmt.Sprint(i)); err != nil || out != want {
				t.Errorf("%q, %v", out, err)
			}
		})
	}
	wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused != 0 || s.peak > maxSessions || s.accepted != 1 {
		t.Errorf("%d refused, %d at once, %d connections", s.refused, s.peak, s.accepted)
	}
}

func TestWaitForSessionObeysContext(t *testing.T) {
	release, running := make(chan struct{}), make(chan struct{}, maxSessions)
	_, n := setup(t, func(*call) end { running <- struct{}{}; <-release; return end{} })
	var wg sync.WaitGroup
	for range maxSessions {
		wg.Go(func() { _, _ = n.Read(context.Background(), "hold") })
	}
	for range maxSessions {
		<-running
	}
	_, err := n.Read(within(t, 50*time.Millisecond), "late")
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "free session") {
		t.Error(err)
	}
	close(release)
	wg.Wait()
}

func TestRefusedSessionIsTriedAgain(t *testing.T) {
	release, running := make(chan struct{}), make(chan struct{}, 2)
	s, n := setup(t, func(*call) end { running <- struct{}{}; <-release; return end{} })
	s.change(func() { s.maxSessions = 1 })
	first := make(chan error, 1)
	go func() { _, err := n.Read(context.Background(), "first"); first <- err }()
	<-running
	time.AfterFunc(150*time.Millisecond, func() { close(release) })
	if _, err := n.Read(within(t, 20*time.Second), "second"); err != nil {
		t.Error(err)
	}
	if err := <-first; err != nil {
		t.Error(err)
	}
}

func TestMutated(t *testing.T) {
	settle(t)
	_, cfg := newServer(t, func(*call) end { return end{} })
	var seen []string
	cfg.Mutated = func(what string) error { seen = append(seen, what); return nil }
	n := newNode(t, cfg)
	ctx := within(t, 20*time.Second)
	_, _ = n.Read(ctx, "cat", "/etc/hosts")
	_ = n.Run(ctx, Command{Argv: []string{"uptime"}, ReadOnly: true})
	_ = n.Run(ctx, Command{Argv: []string{"kubeadm", "join", "--token", "secret"}})
	_ = n.Run(ctx, Command{Argv: []string{"bad\x00"}})
	_ = n.Copy(ctx, "/etc/hosts", 0o644, strings.NewReader(""))
	_ = n.Copy(ctx, "relative", 0o644, strings.NewReader(""))
	_ = n.Shell(ctx, nil, nil, io.Discard, io.Discard)
	if got := strings.Join(seen, "|"); got != "kubeadm join …|copy /etc/hosts|shell" {
		t.Error(got)
	}
}

// What may change the node does not start when that is refused, and its slot is free again.
func TestRefusedMutation(t *testing.T) {
	settle(t)
	started := make(chan string, 100)
	s, cfg := newServer(t, func(c *call) end { started <- c.line; return end{} })
	why := errors.New("this command only looks")
	cfg.Mutated = func(string) error { return why }
	n := newNode(t, cfg)
	ctx := within(t, 20*time.Second)
	for range maxSessions + 1 {
		for what, err := range map[string]error{
			"run":   n.Run(ctx, Command{Argv: []string{"rm", "-rf", "/x"}, Stdin: strings.NewReader("y")}),
			"copy":  n.Copy(ctx, "/etc/hosts", 0o644, strings.NewReader("")),
			"shell": n.Shell(ctx, nil, nil, io.Discard, io.Discard),
		} {
			if !errors.Is(err, why) || !strings.HasPrefix(err.Error(), "cp1: ") {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	if len(started) > 0 {
		t.Errorf("%q started", <-started)
	}
	if _, err := n.Read(ctx, "uptime"); err != nil || len(started) != 1 || s.connections() != 1 {
		t.Errorf("%v, %d started, %d connections", err, len(started), s.connections())
	}
}
