package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// ask asks a person on the terminal, unless --yes has answered: y or yes is a yes, everything else and the end of the input is a no. Without
// a terminal it is a usage error that names --yes. The caller has shown what will be done.
func (a *app) ask(ctx context.Context, question string, yes bool) (bool, error) {
	if yes {
		return true, nil
	}
	if !a.terminal() {
		return false, usageError{errors.New("there is no terminal to ask on, so nothing was changed; next: see what will be done, and answer with --yes")}
	}
	return a.asked(ctx, question)
}

// asked is ask where somebody answers.
func (a *app) asked(ctx context.Context, question string) (bool, error) {
	_, _ = fmt.Fprintf(a.stderr, "%s [y/N] ", question)
	answer, err := readLine(ctx, a.stdin)
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", err
}

// readLine also ends with ctx while it waits for input.
func readLine(ctx context.Context, in *os.File) (string, error) {
	lines := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(in).ReadString('\n')
		if err != nil { // what ends without a line is no yes
			line = ""
		}
		lines <- line
	}()
	select {
	case line := <-lines:
		return line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
