package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

func TestShellWithoutTerminal(t *testing.T) {
	terms := make(chan string, 1)
	_, n := setup(t, func(c *call) end {
		terms <- c.term
		line := make([]byte, 3)
		_, _ = io.ReadFull(c.stdin, line)
		fmt.Fprintf(c.stdout, "%q %s", c.line, line)
		fmt.Fprint(c.stderr, "seen")
		return end{status: 7}
	})
	in, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer w.Close()
	_, _ = io.WriteString(w, "abc") // and no end of input: the shell ends first
	var stdout, stderr bytes.Buffer
	promptly(t, func() { err = n.Shell(context.Background(), []string{"top", "-b 1"}, in, &stdout, &stderr) })
	var exit *ExitError
	if !errors.As(err, &exit) || err.Error() != "cp1: top -b 1: exit status 7" || exit.Status != 7 {
		t.Error(err)
	}
	if got := stdout.String(); got != `"top '-b 1'" abc` || stderr.String() != "seen" || <-terms != "" {
		t.Errorf("%q %q", got, stderr.String())
	}
}

func warm() chan<- os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c
}

// openTerminal returns both ends of a pseudo terminal.
func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(descriptor(master), unix.TIOCSPTLCK, 0); err != nil {
		t.Skip(err)
	}
	number, err := unix.IoctlGetInt(descriptor(master), unix.TIOCGPTN)
	if err != nil {
		t.Skip(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

func TestShellWithTerminal(t *testing.T) {
	master, slave := openTerminal(t)
	resize := func(width, height uint16) {
		t.Helper()
		if err := unix.IoctlSetWinsize(descriptor(master), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}); err != nil {
			t.Fatal(err)
		}
	}
	resize(100, 30)
	// The runtime's signal goroutine stays once it has been started; that is not a leak.
	signal.Stop(warm())
	t.Setenv("TERM", "vt220")
	before, err := term.GetState(descriptor(slave))
	if err != nil {
		t.Fatal(err)
	}
	calls := make(chan *call, 1)
	_, n := setup(t, func(c *call) end {
		calls <- c
		key := make([]byte, 1)
		_, _ = io.ReadFull(c.stdin, key)
		fmt.Fprintf(c.stdout, "key %d", key[0])
		return end{}
	})
	var out bytes.Buffer
	done := make(chan error, 1)
	go func() { done <- n.Shell(context.Background(), nil, slave, &out, io.Discard) }()
	c := <-calls
	if size := <-c.sizes; c.term != "vt220" || c.line != "" || size != [2]uint32{100, 30} {
		t.Errorf("%q %q %v", c.term, c.line, size)
	}
	resize(80, 25)
	_ = syscall.Kill(os.Getpid(), syscall.SIGWINCH)
	if size := <-c.sizes; size != [2]uint32{80, 25} {
		t.Errorf("resized to %v", size)
	}
	_, _ = master.Write([]byte{3}) // ^C is the remote program's in raw mode
	select {
	case err := <-done:
		if err != nil || out.String() != "key 3" {
			t.Errorf("%q, %v", out.String(), err)
		}
	case <-time.After(3 * time.Second):
		t.Fatal("shell does not end")
	}
	after, err := term.GetState(descriptor(slave))
	if err != nil || fmt.Sprint(*after) != fmt.Sprint(*before) {
		t.Errorf("terminal not restored: %v", err)
	}
}
