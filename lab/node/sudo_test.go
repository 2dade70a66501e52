package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fakeSudo checks the password $SUDO_WANTS on stdin as sudo -S does, says what $SUDO_SAYS has, hands SIGTERM on, and writes down how it was
// called.
const fakeSudo = `#!/bin/sh
echo "$*" >>"$SUDO_LOG"
quiet= asks=
while :; do
	case $1 in
	-n) quiet=1 ;;
	-S) asks=1 ;;
	-k) ;;
	-p) shift ;;
	--) shift; break ;;
	*) break ;;
	esac
	shift
done
if [ -n "$SUDO_SAYS" ]; then echo "sudo: $SUDO_SAYS" >&2; exit 1; fi
if [ -n "$SUDO_WANTS" ]; then
	if [ -n "$quiet" ]; then echo "sudo: a password is required" >&2; exit 1; fi
	[ -n "$asks" ] || exit 1
	tries=0
	while IFS= read -r got; do
		[ "$got" = "$SUDO_WANTS" ] && { tries=; break; }
		tries=$((tries + 1)); echo "Sorry, try again." >&2
		[ $tries = 3 ] && break
	done
	if [ -n "$tries" ]; then echo "sudo: $tries incorrect password attempt" >&2; exit 1; fi
fi
export ROOT=yes
exec 3<&0 # a background job has no stdin of its own
"$@" <&3 3<&- &
child=$!
trap 'kill -TERM $child' TERM
wait $child
`

const password = `p'a s$word`

// withSudo is a server whose machine has the fake sudo, and a function that returns how it was called.
func withSudo(t *testing.T, handle func(*call) end, wants, says string) (*server, func() string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sudo"), []byte(fakeSudo), 0o755); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "log")
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("SUDO_LOG", log)
	t.Setenv("SUDO_WANTS", wants)
	t.Setenv("SUDO_SAYS", says)
	s, _ := newServer(t, handle)
	return s, func() string {
		text, _ := os.ReadFile(log)
		return string(text)
	}
}

func sudoLogin(t *testing.T, l *Logins, name string, s *server) *Node {
	login := at(t, s)
	login.Sudo = true
	return mustNode(t, l, name, login)
}

func TestSudo(t *testing.T) {
	for name, wants := range map[string]string{"without a password": "", "with a password": password} {
		t.Run(name, func(t *testing.T) {
			settle(t)
			s, calls := withSudo(t, realShell, wants, "")
			var asked atomic.Int32
			l := newLogins(t, LoginOptions{Password: func() (string, error) { asked.Add(1); return password, nil }}, s)
			file := filepath.Join(t.TempDir(), "file")
			var wg sync.WaitGroup
			for i := range 4 {
				n := sudoLogin(t, l, fmt.Sprint("w", i), s)
				wg.Go(func() { useSudo(t, n, fmt.Sprint(file, i)) })
			}
			wg.Wait()
			if want := int32(len(wants)); asked.Load() != min(1, want) {
				t.Errorf("asked %d times", asked.Load())
			}
			if strings.Contains(calls(), password) {
				t.Errorf("the password is in a command line:\n%s", calls())
			}
		})
	}
}

// useSudo runs one command of each kind.
func useSudo(t *testing.T, n *Node, file string) {
	ctx := within(t, 60*time.Second)
	if out, err := n.Read(ctx, "sh", "-c", "echo $ROOT; cat"); err != nil || out != "yes\n" {
		t.Errorf("%q, %v", out, err)
	}
	var stdout, stderr bytes.Buffer
	const text = "line\n\nno end"
	err := n.Run(ctx, Command{
		Argv: []string{"sh", "-c", "cat; exit 3", "it's"}, Stdin: strings.NewReader(text), Stdout: &stdout, Stderr: &stderr,
	})
	exit, is := errors.AsType[*ExitError](err)
	if !is || exit.Status != 3 || stdout.String() != text || exit.Argv[3] != "it's" || stderr.String() != "" ||
		strings.Contains(fmt.Sprintf("%+v", exit), password) {
		t.Errorf("%q, %q, %v", stdout.String(), stderr.String(), err)
	}
	if err := n.Copy(ctx, file, 0o640, strings.NewReader("content")); err != nil {
		t.Error(err)
	}
	if content, err := os.ReadFile(file); err != nil || string(content) != "content" {
		t.Errorf("%q, %v", content, err)
	}
	var out bytes.Buffer
	if err := n.Shell(ctx, nil, nil, &out, io.Discard); err != nil {
		t.Error(err)
	}
}

// A command that sudo lets through this time without the password does not get it as its input.
func TestPasswordIsNeverInput(t *testing.T) {
	settle(t)
	s, _ := withSudo(t, realShell, password, "")
	l := newLogins(t, LoginOptions{Password: func() (string, error) { return password, nil }}, s)
	n := sudoLogin(t, l, "w1", s)
	ctx := within(t, 20*time.Second)
	if err := n.Login(ctx); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SUDO_WANTS", "")
	out := &Answer{}
	if err := n.Run(ctx, Command{Argv: []string{"cat"}, Stdin: strings.NewReader("content"), Stdout: out}); err != nil || out.String() != "content" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestSudoRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		wants, says string
		ask         func() (string, error)
		want        string
	}{
		"nobody to ask":  {wants: password, want: "there is nobody to ask; next: "},
		"no answer":      {wants: password, ask: func() (string, error) { return "", errors.New("interrupted") }, want: "the password of sudo: interrupted"},
		"an empty one":   {wants: password, ask: func() (string, error) { return "", nil }, want: "is empty"},
		"a terminal":     {says: "sorry, you must have a tty to run sudo", want: "Defaults:ops !requiretty"},
		"not allowed":    {says: "ops is not in the sudoers file.", want: "next: usermod -aG sudo ops"},
		"something else": {says: "unable to open /etc/sudoers: broken", want: "exit status 1: sudo: unable to open /etc/sudoers: broken"},
		"a wrong one": {wants: password, ask: func() (string, error) { return "wr0ng-one", nil },
			want: "ops: the password of sudo is wrong; next: run this again with the right one"},
	} {
		t.Run(name, func(t *testing.T) {
			settle(t)
			s, _ := withSudo(t, realShell, test.wants, test.says)
			err := sudoLogin(t, newLogins(t, LoginOptions{Password: test.ask}, s), "w1", s).Login(within(t, 20*time.Second))
			connect, is := errors.AsType[*ConnectError](err)
			if !is || !connect.Permanent || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "wr0ng-one") {
				t.Errorf("%v of type %T", err, err)
			}
		})
	}
	t.Run("there is none", func(t *testing.T) {
		settle(t)
		s, _ := newServer(t, func(*call) end { return end{status: 127} })
		err := sudoLogin(t, newLogins(t, LoginOptions{}, s), "w1", s).Login(within(t, 20*time.Second))
		if err == nil || !strings.Contains(err.Error(), "there is no sudo; next: ") {
			t.Error(err)
		}
	})
}

// A wrong password is tried once, however many machines there are, so that it locks no account.
func TestWrongPasswordIsTriedOnce(t *testing.T) {
	settle(t)
	s, calls := withSudo(t, realShell, password, "")
	l := newLogins(t, LoginOptions{Password: func() (string, error) { return "wr0ng-one", nil }}, s)
	var wg sync.WaitGroup
	for i := range 5 {
		n := sudoLogin(t, l, fmt.Sprint("w", i), s)
		wg.Go(func() {
			for range 2 {
				_, err := n.Read(within(t, 60*time.Second), "true")
				connect, is := errors.AsType[*ConnectError](err)
				if !is || !connect.Permanent || !errors.Is(err, errWrong) || strings.Contains(err.Error(), "wr0ng-one") {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := strings.Count(calls(), "-S"); got != 1 {
		t.Errorf("tried %d times:\n%s", got, calls())
	}
}

// A cancelled command ends, although sshd does not hand on signals to root's processes.
func TestCancelledSudoEnds(t *testing.T) {
	for name, wants := range map[string]string{"without a password": "", "with a password": password} {
		t.Run(name, func(t *testing.T) {
			settle(t)
			deaf := func(c *call) end {
				return realShell(&call{line: c.line, stdin: c.stdin, stdout: c.stdout, stderr: c.stderr})
			}
			s, _ := withSudo(t, deaf, wants, "")
			n := sudoLogin(t, newLogins(t, LoginOptions{Password: func() (string, error) { return password, nil }}, s), "w1", s)
			ctx, cancel := context.WithCancel(context.Background())
			file := filepath.Join(t.TempDir(), "ended")
			began := &Lines{Each: func([]byte) error { cancel(); return nil }}
			script := `trap 'echo >"$1"; exit' TERM; echo began; while :; do sleep 0.05; done`
			err := n.Run(ctx, Command{Argv: []string{"sh", "-c", script, "sh", file}, Stdout: began})
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
				if _, err := os.Stat(file); err == nil {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("it is still running")
				}
			}
		})
	}
}

func TestSudoOnATerminal(t *testing.T) {
	for want, test := range map[string]struct {
		password string
		argv     []string
	}{
		"sudo -n -- top -b": {"", []string{"top", "-b"}},
		"sudo -- top -b":    {password, []string{"top", "-b"}},
		"sudo -n -i":        {"", nil},
		"sudo -i":           {password, nil},
	} {
		got, err := (&rights{password: test.password}).elevate(job{argv: test.argv, line: Quote(test.argv), terminal: true})
		if err != nil || got.line != want || got.stdin != nil || got.mark != "" {
			t.Errorf("%q, want %q, %v", got.line, want, err)
		}
	}
	if _, err := (&rights{}).elevate(job{line: strings.Repeat("x", maxLine)}); err == nil {
		t.Error("a line is too long")
	}
}
