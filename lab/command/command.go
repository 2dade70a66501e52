// Package command runs programs on this computer: no shell, bounded by a context, and an error that shows what the program said.
// Programs on a node go through lab/node instead.
package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Command is one program run.
type Command struct {
	Argv   []string
	Dir    string
	Env    []string // added to this process's own
	Stdin  io.Reader
	Stdout io.Writer         // nil: returned by Run
	Line   func(line string) // called with each line of output as it appears, for progress
	// Foreign says that Argv[0] is the path of a program that came from elsewhere. It gets no environment but Env, and with root it runs as
	// nobody, without a network.
	Foreign bool
}

// Error is a program that could not be started or exited with another status than 0.
type Error struct {
	Argv   []string
	Cause  error
	Output string // the last part of stdout and stderr
}

func (e *Error) Error() string {
	msg := fmt.Sprintf("%s: %v", strings.Join(e.Argv, " "), e.Cause)
	if out := lastLines(e.Output, 8); out != "" {
		msg += ":\n" + out
	}
	return msg
}

func (e *Error) Unwrap() error { return e.Cause }

// Run runs argv and returns its standard output.
func Run(ctx context.Context, argv ...string) (string, error) {
	return Command{Argv: argv}.Run(ctx)
}

// Run runs the command and returns its standard output, unless Stdout takes it.
func (c Command) Run(ctx context.Context) (string, error) {
	var stdout bytes.Buffer
	tail := &tail{line: c.Line}
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Dir, cmd.Stdin = c.Dir, c.Stdin
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Stderr = tail
	cmd.Stdout = io.MultiWriter(&stdout, tail)
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	// The program's children must end with it, and Ctrl-C reaches it through ctx alone, so that it is ended once and in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if c.Foreign {
		program, err := c.confine(cmd)
		if err != nil {
			return "", &Error{Argv: c.Argv, Cause: err}
		}
		defer func() { _ = program.Close() }()
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return "", &Error{Argv: c.Argv, Cause: err, Output: tail.String()}
	}
	return stdout.String(), nil
}

const nobody = 65534

// confine takes from the program what it does not need. It is started by its descriptor, as nobody may not walk to where root's files are.
func (c Command) confine(cmd *exec.Cmd) (*os.File, error) {
	program, err := os.Open(c.Argv[0])
	if err != nil {
		return nil, err
	}
	cmd.Env = append([]string{"PATH=/usr/bin:/bin", "HOME=/nonexistent"}, c.Env...)
	if os.Geteuid() != 0 {
		return program, nil
	}
	info, err := program.Stat()
	if err == nil && info.Mode()&1 == 0 {
		err = fmt.Errorf("root runs it as nobody, who may not: chmod a+rx %s", c.Argv[0])
	}
	if err != nil {
		return nil, errors.Join(err, program.Close())
	}
	cmd.Dir = "/"
	cmd.Path = fmt.Sprintf("/proc/self/fd/%d", 3+len(cmd.ExtraFiles))
	cmd.ExtraFiles = append(cmd.ExtraFiles, program)
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC
	return program, nil
}

// tail keeps the last part of what is written to it.
type tail struct {
	mu   sync.Mutex // stdout and stderr are read at the same time
	buf  []byte
	line func(string)
	part []byte
}

const tailSize = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - tailSize; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	if t.line != nil {
		t.part = append(t.part, p...)
		for {
			i := bytes.IndexByte(t.part, '\n')
			if i < 0 {
				break
			}
			t.line(string(t.part[:i]))
			t.part = t.part[i+1:]
		}
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.buf) }

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
