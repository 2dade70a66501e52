package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// Sudo has the commands of a login that is not root run as root. Nodes share it: its password is asked for once, and kept in memory only.
// It is safe for concurrent use.
type Sudo struct {
	// Password is called when the first machine wants one. nil: there is nobody to ask.
	Password func() (string, error)

	mu       sync.Mutex
	asked    bool
	proved   bool // some machine has taken it
	password string
	err      error // no machine is to be tried any more
}

// rights are how sudo is used on one machine.
type rights struct {
	password string // "" where sudo wants none
	err      error  // why it cannot be used
}

// asker runs a short line in the login shell, with stdin, and returns what it said on stderr.
type asker func(ctx context.Context, line, stdin string) (said string, err error)

// The language of what sudo says. A ticket of an earlier command must not hide that a password is wanted: it runs out.
const (
	trySudo     = "env LC_ALL=C sudo -k -n true"
	tryPassword = "env LC_ALL=C sudo -S -k -p '' true"
)

// rights finds out how to use sudo on a machine. A plain error is of the connection; the machine's answer is in the rights.
func (s *Sudo) rights(ctx context.Context, user string, ask asker) (rights, error) {
	said, err := ask(ctx, trySudo, "")
	if err == nil {
		return rights{}, nil
	}
	if !ended(err) {
		return rights{}, fmt.Errorf("ask sudo: %w", err)
	}
	if bad := sudoRefusal(user, said, err); bad != nil {
		return rights{err: bad}, nil
	}
	s.mu.Lock()
	if err := s.ask(); err != nil || s.proved {
		s.mu.Unlock()
		if err != nil {
			return rights{err: err}, nil
		}
		return s.try(ctx, user, ask)
	}
	// One machine after another, until one has taken the password: a wrong one is tried once.
	defer s.mu.Unlock()
	r, err := s.try(ctx, user, ask)
	switch {
	case err == nil && r.err == nil:
		s.proved = true
	case errors.Is(r.err, errWrong):
		s.err = fmt.Errorf("%w; it was wrong on another machine, and is not tried on this one", errWrong)
	}
	return r, err
}

// ask gets the password, once. The caller holds s.mu.
func (s *Sudo) ask() error {
	if s.asked {
		return s.err
	}
	s.asked = true
	if s.Password == nil {
		s.err = errors.New("sudo wants a password, and there is nobody to ask; next: run this on a terminal, " +
			"or allow the login sudo without one (NOPASSWD)")
		return s.err
	}
	if s.password, s.err = s.Password(); s.err != nil {
		s.err = fmt.Errorf("the password of sudo: %w", s.err)
	} else if s.password == "" || strings.ContainsAny(s.password, "\n\x00") {
		s.err = errors.New("the password of sudo is empty, or has a line break")
	}
	return s.err
}

var errWrong = errors.New("the password of sudo is wrong; next: run this again with the right one")

// try checks the password on a machine.
func (s *Sudo) try(ctx context.Context, user string, ask asker) (rights, error) {
	said, err := ask(ctx, tryPassword, s.password+"\n")
	switch {
	case err == nil:
		return rights{password: s.password}, nil
	case !ended(err):
		return rights{}, fmt.Errorf("ask sudo: %w", err)
	}
	if bad := sudoRefusal(user, said, err); bad != nil {
		return rights{err: bad}, nil
	}
	return rights{err: fmt.Errorf("%s: %w", user, errWrong)}, nil
}

func ended(err error) bool {
	_, is := errors.AsType[*ssh.ExitError](err)
	return is
}

// sudoRefusal is what sudo says when a password does not help; nil if it wants one, or another.
func sudoRefusal(user, said string, err error) error {
	says := func(texts ...string) bool {
		for _, text := range texts {
			if strings.Contains(said, text) {
				return true
			}
		}
		return false
	}
	exit, _ := errors.AsType[*ssh.ExitError](err)
	switch {
	case exit.ExitStatus() == 127:
		return errors.New("there is no sudo; next: install it on the machine, or log in as root (ssh.user in cluster.yaml)")
	case says("must have a tty"):
		return fmt.Errorf("sudo wants a terminal (requiretty); next: visudo on the machine, and write: Defaults:%s !requiretty", user)
	case says("not in the sudoers file", "not allowed to", "may not run sudo", "I'm sorry"):
		return fmt.Errorf("sudo does not allow %s to run commands as root; "+
			"next: usermod -aG sudo %s on the machine (wheel instead of sudo on Fedora)", user, user)
	case says("password is required", "authentication is required", "incorrect password", "incorrect authentication",
		"Authentication failed", "try again", "no password was provided"):
		return nil
	}
	return fmt.Errorf("sudo on the machine fails with exit status %d: %s", exit.ExitStatus(), lastLines(said))
}

// Root's shell runs the command. $0 is a mark: by it the command's sudo is found when the command is to end. Where sudo wants a password,
// what comes before the mark on stdin is sudo's, and never the command's, even if sudo did not want it this time.
const (
	markedScript = `exec "$@"`
	unlockScript = `while IFS= read -r l; do [ "$l" = "$0" ] && exec "$@"; done; exit 125`
)

// elevate has root run the job.
func (r *rights) elevate(j job) (job, error) {
	switch {
	case j.terminal && r.password == "":
		j.line = strings.TrimSuffix("sudo -n -- "+j.line, "-- ")
	case j.terminal: // sudo itself asks
		j.line = strings.TrimSuffix("sudo -- "+j.line, "-- ")
	default:
		j.mark = rand.Text()
		if j.line == "" {
			j.line = "sh -l"
		}
		sudo, script := "sudo -n --", markedScript
		if r.password != "" {
			sudo, script = "sudo -S -k -p '' --", unlockScript
			if j.stdin == nil {
				j.stdin = strings.NewReader("")
			}
			j.stdin = io.MultiReader(strings.NewReader(r.password+"\n"+j.mark+"\n"), j.stdin)
		}
		j.line = sudo + " " + Quote([]string{"sh", "-c", script, j.mark}) + " " + j.line
	}
	if j.terminal && len(j.argv) == 0 {
		j.line += "-i"
	}
	if len(j.line) > maxLine {
		return j, fmt.Errorf("command line is %d bytes with sudo, at most %d are possible: pass data over stdin", len(j.line), maxLine)
	}
	return j, nil
}

// killTime is how long a cancelled command of sudo may take to be told.
const killTime = 2 * time.Second

// end tells a cancelled command of sudo to end. sshd signals only what runs as the login, but sudo hands SIGTERM on. It is found by its
// random mark, which nothing else has; the pattern does not match itself. A command that cannot be told keeps running.
func (n *Node) end(mark string) {
	ctx, cancel := context.WithTimeout(context.Background(), killTime)
	defer cancel()
	argv := []string{"pkill", "-TERM", "-f", "--", "[" + mark[:1] + "]" + mark[1:]}
	_ = n.run(ctx, job{argv: argv, line: Quote(argv), last: true})
}

// become finds out, once, how the node's login gets root's rights.
func (n *Node) become(ctx context.Context, l *link) (*rights, error) {
	n.mu.Lock()
	r := n.rights
	n.mu.Unlock()
	if r == nil {
		found, err := n.sudo.rights(ctx, n.user, func(ctx context.Context, line, stdin string) (string, error) {
			ctx, cancel := context.WithTimeoutCause(ctx, n.dialLimit, fmt.Errorf("no answer within %v", n.dialLimit))
			defer cancel()
			return l.ask(ctx, line, stdin)
		})
		if err != nil {
			return nil, err
		}
		r = &found
		n.mu.Lock()
		n.rights = r
		n.mu.Unlock()
	}
	if r.err != nil {
		return nil, &hopeless{r.err}
	}
	return r, nil
}
