package node

import (
	"bytes"
	"fmt"
)

// A machine is a stranger: what it says must not fill this computer's memory.
const (
	answerLimit = 32 << 20 // bytes of an Answer
	lineLimit   = 1 << 20  // bytes of a line of Lines
)

// Answer keeps what a command says, up to 32 MiB.
type Answer struct {
	text bytes.Buffer
	full func(error) // called with the error of a longer one; may be nil
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

// Lines hands on the whole lines of what a command says, without their ends, until Each has an error.
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
