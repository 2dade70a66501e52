package node

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strings"
	"unicode"
)

// ErrLost is wrapped when the connection went away under a started command: whether the command finished is unknown.
var ErrLost = errors.New("connection lost before the command was seen to end")

var errClosed = fmt.Errorf("node is closed: %w", net.ErrClosed)

// ExitError is a command that ran and failed. Stdout and Stderr hold the last 64 KiB of each.
type ExitError struct {
	Node           string
	Argv           []string
	Status         int    // 128+n for a signal
	Signal         string // without "SIG", empty if the command exited by itself
	Stdout, Stderr string
}

func (e *ExitError) Error() string {
	how := fmt.Sprintf("exit status %d", e.Status)
	if e.Signal != "" {
		how = "killed by signal " + e.Signal
	}
	text := fmt.Sprintf("%s: %s: %s", e.Node, summary(e.Argv), how)
	if said := cmp.Or(lastLines(e.Stderr), lastLines(e.Stdout)); said != "" {
		text += ": " + said
	}
	return text
}

// ConnectError is a node that could not be reached over SSH.
type ConnectError struct {
	Node, Address string
	Cause         error
	Permanent     bool // trying again cannot help
}

func (e *ConnectError) Error() string {
	return fmt.Sprintf("%s: connect to %s: %v", e.Node, e.Address, e.Cause)
}

func (e *ConnectError) Unwrap() error { return e.Cause }

// hopeless is a cause that trying again cannot help.
type hopeless struct{ error }

func (e *hopeless) Unwrap() error { return e.error }

// summary names a command by its first two words: enough to recognize it, and unlikely to put a token or a whole script into an error.
func summary(argv []string) string {
	if len(argv) == 0 {
		return "shell"
	}
	words := make([]string, 0, 3)
	for _, word := range argv[:min(2, len(argv))] {
		word = printable(word)
		if r := []rune(word); len(r) > 40 {
			word = string(r[:40]) + "…"
		}
		words = append(words, word)
	}
	if len(argv) > 2 {
		words = append(words, "…")
	}
	return strings.Join(words, " ")
}

// lastLines joins the last non-empty lines that fit into about 400 characters.
func lastLines(text string) string {
	const limit = 400
	lines := strings.Split(text, "\n")
	said := ""
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimSpace(printable(lines[i]))
		if line == "" {
			continue
		}
		if r := []rune(line); said == "" && len(r) > limit {
			return "…" + string(r[len(r)-limit:])
		}
		if said == "" {
			said = line
			continue
		}
		if len([]rune(line))+len([]rune(said))+2 > limit {
			break
		}
		said = line + "; " + said
	}
	return said
}

// printable keeps control sequences of a remote program out of our errors.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return -1
	}, s)
}
