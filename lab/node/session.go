package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/crypto/ssh"
)

// errCutOff is a session that ended without an exit status; outcome explains it.
var errCutOff = errors.New("no exit status")

// session is an open SSH session that occupies one of the node's slots.
type session struct {
	*ssh.Session
	link    *link
	slots   chan struct{}
	started chan struct{} // closed when starting has succeeded or failed
}

// abandon gives the session back.
func (s *session) abandon() {
	s.Close()
	<-s.slots
}

// open waits for a slot and opens a session; nothing has started yet when it fails.
func (n *Node) open(ctx context.Context, argv []string) (*session, error) {
	select {
	case n.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, n.commandError(argv, fmt.Errorf("wait for a free session: %w", context.Cause(ctx)))
	}
	opened, l, err := n.openRetrying(ctx)
	if err == nil {
		return &session{opened, l, n.slots, make(chan struct{})}, nil
	}
	<-n.slots
	var unreachable *ConnectError
	if errors.As(err, &unreachable) {
		return nil, err
	}
	return nil, n.commandError(argv, fmt.Errorf("open session: %w", err))
}

// openRetrying opens a session, and repeats that while sshd refuses: sessions of cancelled commands count towards its limit until the
// commands have ended.
func (n *Node) openRetrying(ctx context.Context) (*ssh.Session, *link, error) {
	for tries := 1; ; tries++ {
		opened, l, err := through(ctx, n, (*ssh.Client).NewSession, func(s *ssh.Session) { s.Close() })
		var refused *ssh.OpenChannelError
		if !errors.As(err, &refused) || tries == 20 {
			return opened, l, err
		}
		select {
		case <-time.After(grace):
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}

// perform starts the job and waits for its end.
func (s *session) perform(j job, stdin *input) error {
	pipe, err := s.start(j)
	close(s.started)
	switch {
	case errors.Is(err, io.EOF) || err != nil && s.link.raw.broken.Load():
		return errCutOff // the request was sent, so it may have started
	case err != nil:
		return errors.New("sshd refused to start it") // the library's text repeats the whole line
	}
	if pipe != nil {
		go feed(pipe, stdin)
	}
	return s.Wait()
}

func (s *session) start(j job) (pipe io.WriteCloser, err error) {
	if j.stdin != nil {
		if pipe, err = s.StdinPipe(); err != nil {
			return nil, err
		}
	}
	if j.prepare != nil {
		if err := j.prepare(s.Session); err != nil {
			return nil, err
		}
	}
	if j.line == "" {
		return pipe, s.Shell()
	}
	return pipe, s.Start(j.line)
}

// feed is not waited for, because a command may end before it has read everything. After a failed read the input is not closed, so that the
// command does not take a part for the whole.
func feed(pipe io.WriteCloser, stdin *input) {
	if _, err := io.Copy(pipe, stdin); err == nil {
		pipe.Close()
	}
}

// terminate may block on a dead machine. A signal ahead of the start would be ignored.
func (s *session) terminate() {
	<-s.started
	_ = s.Signal(ssh.SIGTERM)
	s.Close()
}

// A machine is not trusted: its output must not fill this computer's memory.
const (
	answerLimit = 32 << 20 // bytes of an Answer
	lineLimit   = 1 << 20  // bytes of a line of Lines
)

// Answer keeps a command's output, up to 32 MiB.
type Answer struct {
	text bytes.Buffer
	full func(error) // called when the output is longer; may be nil
}

func (a *Answer) Write(p []byte) (int, error) {
	if a.text.Len()+len(p) <= answerLimit {
		return a.text.Write(p)
	}
	err := fmt.Errorf("it says more than %d MiB", answerLimit>>20)
	if a.full != nil {
		a.full(err)
	}
	return 0, err
}

func (a *Answer) String() string { return a.text.String() }

// Lines calls Each with every whole line of a command's output, without its end, until Each returns an error.
type Lines struct {
	Each func(line []byte) error

	rest []byte
}

func (l *Lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			break
		}
		if err := l.Each(line); err != nil {
			return 0, err
		}
		l.rest = rest
	}
	if len(l.rest) > lineLimit {
		l.rest = nil
		return 0, fmt.Errorf("it says a line longer than %d MiB", lineLimit>>20)
	}
	return len(p), nil
}
