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

// askName is ask for what cannot be undone: the answer is the cluster's name, and --yes is one only together with --name.
func (a *app) askName(name string) func(ctx context.Context, question string, yes bool) (bool, error) {
	return func(ctx context.Context, question string, yes bool) (bool, error) {
		switch {
		case yes && a.named == name:
			return true, nil
		case yes, a.named != "" && a.named != name, !a.terminal():
			return false, usageError{fmt.Errorf("nothing was changed; next: see what will be lost, and answer with --name %s --yes", name)}
		}
		_, _ = fmt.Fprintf(a.stderr, "This cannot be undone. %s Type the cluster's name, %s: ", question, name)
		answer, err := readLine(ctx, a.stdin)
		return strings.TrimSpace(answer) == name, err
	}
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
