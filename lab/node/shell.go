package node

import (
	"cmp"
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/term"
)

// Shell runs argv, or a login shell, for a person. If in is a terminal the command gets one too, which follows the window size. It counts
// as a mutation. With sudo it is root's, and sudo asks
// for a password itself. Its *ExitError carries no output: the person has seen it.
func (n *Node) Shell(ctx context.Context, argv []string, in *os.File, out, errw io.Writer) error {
	j := job{argv: argv, mutates: true, interactive: true, stdout: out, stderr: errw}
	if len(argv) > 0 {
		line, err := commandLine(argv)
		if err != nil {
			return n.commandError(argv, err)
		}
		j.line = line
	}
	// Connect before the terminal is made raw, so that ^C can still interrupt that.
	s, err := n.open(ctx, argv)
	if err != nil {
		return err
	}
	if in == nil {
		return n.finish(ctx, s, j)
	}
	j.stdin = in
	// Where the file supports deadlines, let go of a read that waits for the next key.
	j.unblock = func() { _ = in.SetReadDeadline(time.Now()) }
	defer func() { _ = in.SetReadDeadline(time.Time{}) }()

	fd := descriptor(in)
	if !term.IsTerminal(fd) {
		return n.finish(ctx, s, j)
	}
	before, err := term.MakeRaw(fd)
	if err != nil {
		s.abandon()
		return n.commandError(argv, err)
	}
	defer func() { _ = term.Restore(fd, before) }()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	over := make(chan struct{})
	defer close(over)
	j.terminal = true
	j.prepare = func(s *ssh.Session) error { return attachTerminal(s, fd, resized, over) }
	return n.finish(ctx, s, j)
}

// descriptor avoids File.Fd, which would take away deadlines.
func descriptor(f *os.File) int {
	fd := -1
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(p uintptr) { fd = int(p) })
	}
	return fd
}

// attachTerminal gives the session a terminal of the local one's size and keeps it so.
func attachTerminal(s *ssh.Session, fd int, resized <-chan os.Signal, over <-chan struct{}) error {
	kind := cmp.Or(os.Getenv("TERM"), "xterm-256color")
	width, height, err := term.GetSize(fd)
	if err != nil {
		width, height = 80, 24
	}
	if err := s.RequestPty(kind, height, width, ssh.TerminalModes{}); err != nil {
		return err
	}
	go func() {
		for {
			select {
			case <-over:
				return
			case <-resized:
			}
			if width, height, err := term.GetSize(fd); err == nil {
				_ = s.WindowChange(height, width)
			}
		}
	}()
	return nil
}
