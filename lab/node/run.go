package node

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/crypto/ssh"
)

// Command is a program to run on a node, never a shell line.
type Command struct {
	Argv           []string
	Stdin          io.Reader // nil means empty; a read that blocks for good outlives the command
	Stdout, Stderr io.Writer // nil: only the end is kept, for an ExitError
	ReadOnly       bool      // changes nothing on the node
}

// Read runs a command that changes nothing and returns its stdout, also when it failed. A command that prints more than 32 MiB is ended.
func (n *Node) Read(ctx context.Context, argv ...string) (string, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	stdout := &Answer{full: stop}
	err := n.Run(ctx, Command{Argv: argv, Stdout: stdout, ReadOnly: true})
	return stdout.String(), err
}

// Run runs a command to its end. A failing command gives an *ExitError. When ctx ends first, the command gets SIGTERM and Run returns at
// once, after telling a command of sudo to end, which takes 2 s at most; the error wraps the context's cause.
func (n *Node) Run(ctx context.Context, cmd Command) error {
	line, err := commandLine(cmd.Argv)
	if err != nil {
		return n.commandError(cmd.Argv, err)
	}
	return n.run(ctx, job{
		argv: cmd.Argv, line: line, mutates: !cmd.ReadOnly,
		stdin: cmd.Stdin, stdout: cmd.Stdout, stderr: cmd.Stderr,
	})
}

// job is what to run in a session.
type job struct {
	argv           []string // for errors
	line           string   // for the login shell; empty means the shell itself
	mutates        bool
	interactive    bool   // the caller has seen the output
	terminal       bool   // it has one
	last           bool   // when cancelled, nothing else is done
	mark           string // what a command of sudo is found by; "" for another
	stdin          io.Reader
	stdout, stderr io.Writer
	prepare        func(*ssh.Session) error // before the start; may be nil
	unblock        func()                   // ends a blocked read of stdin; may be nil
}

func (n *Node) run(ctx context.Context, j job) error {
	s, err := n.open(ctx, j.argv)
	if err != nil {
		return err
	}
	return n.finish(ctx, s, j)
}

// finish runs the job in the session, and gives up when ctx ends.
func (n *Node) finish(ctx context.Context, s *session, j job) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if s.link.rights != nil {
		elevated, err := s.link.rights.elevate(j)
		if err != nil {
			s.abandon()
			return n.commandError(j.argv, err)
		}
		j = elevated
	}
	stdout, stderr := newOutput(j.stdout), newOutput(j.stderr)
	stdin := &input{gate: newGate(), from: j.stdin, failed: func(err error) { stop(fmt.Errorf("read stdin: %w", err)) }}
	if j.mutates {
		if err := n.mutated(summary(j.argv)); err != nil {
			s.abandon()
			return n.commandError(j.argv, err)
		}
	}
	s.Stdout, s.Stderr = stdout, stderr
	ended := make(chan error, 1)
	go func() {
		ended <- s.perform(j, stdin)
		s.abandon() // only when the command has ended: until then sshd counts its session
	}()

	var err error
	select {
	case err = <-ended:
		err = n.outcome(s, j, err, stdout, stderr)
	case <-ctx.Done():
		go s.terminate()
		if j.mark != "" && !j.last {
			n.end(j.mark)
		}
		err = n.commandError(j.argv, context.Cause(ctx))
	}
	if j.unblock != nil {
		j.unblock()
	}
	stdout.shut()
	stderr.shut()
	stdin.shut()
	return err
}

// outcome turns the end of a session into the caller's error.
func (n *Node) outcome(s *session, j job, err error, stdout, stderr *output) error {
	var exit *ssh.ExitError
	var missing *ssh.ExitMissingError
	switch {
	case errors.As(err, &exit):
		e := &ExitError{Node: n.name, Argv: j.argv, Status: exit.ExitStatus(), Signal: exit.Signal()}
		if !j.interactive {
			e.Stdout, e.Stderr = stdout.tail.String(), stderr.tail.String()
		}
		return e
	case errors.As(err, &missing), errors.Is(err, errCutOff):
		return n.commandError(j.argv, s.link.lost())
	case err != nil:
		return n.commandError(j.argv, err)
	case (j.stdout != nil || j.stderr != nil) && s.link.raw.broken.Load():
		// sshd sends the exit status ahead of the last output, which may now be missing.
		return n.commandError(j.argv, s.link.lost())
	case stdout.err != nil:
		return n.commandError(j.argv, fmt.Errorf("write stdout: %w", stdout.err))
	case stderr.err != nil:
		return n.commandError(j.argv, fmt.Errorf("write stderr: %w", stderr.err))
	}
	return nil
}
