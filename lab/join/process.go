package join

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// drainQuiet is how long a stopped process's pipe stays silent when all that it wrote has been read.
	drainQuiet = 20 * time.Millisecond
	// termGrace is what a process gets to end after SIGTERM.
	termGrace = 10 * time.Second
	// lastWords is how long the output is read after the process has ended, in case a child keeps the pipe open.
	lastWords = time.Second
)

// process is a program whose output is read line by line, standard output and error in their order.
type process struct {
	cmd    *exec.Cmd
	pipe   *os.File
	lines  chan string // closed at the end of the output
	exited chan error  // what Wait returned, once
}

func startProcess(argv []string) (*process, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, r.Close(), w.Close())
	}
	_ = w.Close() // the child has its own
	p := &process{cmd: cmd, pipe: r, lines: make(chan string), exited: make(chan error, 1)}
	go p.read()
	go func() { p.exited <- cmd.Wait() }()
	return p, nil
}

func (p *process) read() {
	defer close(p.lines)
	in := bufio.NewReader(p.pipe)
	for {
		s, err := in.ReadString('\n')
		if s != "" {
			p.lines <- strings.TrimSuffix(s, "\n")
		}
		if err != nil {
			return
		}
	}
}

// close ends the reading; lines that nobody took are lost.
func (p *process) close() {
	_ = p.pipe.Close()
	go func() {
		for range p.lines {
		}
	}()
}

// end sends SIGTERM unless may forbids it. It stops the process first and reads all its output before it asks may: so the process cannot
// begin something that must not be interrupted between its last line and the signal.
func (p *process) end(see func(string), may func() bool) bool {
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
	defer func() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }()
	p.drain(see)
	if !may() {
		return false
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	return true
}

// drain hands on every line that is in the pipe.
func (p *process) drain(see func(string)) {
	for {
		select {
		case s, ok := <-p.lines:
			if !ok {
				return
			}
			see(s)
		case <-time.After(drainQuiet):
			if p.unread() == 0 {
				return
			}
		}
	}
}

// unread is how many bytes are in the pipe. (File.Fd would make the file block.)
func (p *process) unread() (n int) {
	raw, err := p.pipe.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	}
	return n
}

// finish hands on what is left to read after the process's end.
func (p *process) finish(see func(string)) {
	timer := time.NewTimer(lastWords)
	defer timer.Stop()
	for {
		select {
		case s, ok := <-p.lines:
			if !ok {
				return
			}
			see(s)
		case <-timer.C:
			return
		}
	}
}

// exitCode is a process's, and whether it ended by itself: one that a signal ended did not.
func exitCode(err error) (code int, byItself bool) {
	if err == nil {
		return 0, true
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), true
	}
	return -1, false
}
