package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"k8slab/lab/event"
)

const (
	exitFailed      = 1
	exitUsage       = 2
	exitFixable     = 3
	exitInterrupted = 130
)

// app is one call of labnode.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
}

var errInterrupted = errors.New("interrupted")

// usageError is a mistake in how labnode was called.
type usageError struct{ error }

// exitStatus ends labnode with this status and no further message.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func (a *app) exitCode(ctx context.Context, err error) int {
	var status exitStatus
	var usage usageError
	switch {
	case errors.Is(context.Cause(ctx), errInterrupted):
		_, _ = fmt.Fprintln(a.stderr, "labnode:", errInterrupted)
		return exitInterrupted
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	}
	_, _ = fmt.Fprintln(a.stderr, "labnode:", event.Redact(err.Error()))
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}
