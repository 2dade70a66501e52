package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"k8slab/config"
	"k8slab/lab/node"
)

// defaultFile describes the lab unless -c or --lab names another.
const defaultFile = "cluster.yaml"

const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

var errInterrupted = errors.New("interrupted; run the same command again to go on")

// resumableError is the error of an interrupted command that another command has to resume.
type resumableError struct {
	error
	how string
}

func (e resumableError) Unwrap() error { return e.error }

// interruption says how to go on after Ctrl-C.
func interruption(err error) string {
	if again, ok := errors.AsType[resumableError](err); ok {
		return "interrupted; " + again.how
	}
	return errInterrupted.Error()
}

// usageError is a mistake in how labctl was called.
type usageError struct{ error }

func (a *app) exitCode(ctx context.Context, err error) int {
	var exit *node.ExitError
	var status exitStatus
	var usage usageError
	var problems config.Problems
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	case errors.Is(context.Cause(ctx), errInterrupted):
		_, _ = fmt.Fprintln(a.stderr, "labctl:", interruption(err))
		return exitInterrupted
	case a.passthrough && errors.As(err, &exit): // ssh and kubectl: the command's own status, it has said why
		return exit.Status
	}
	_, _ = fmt.Fprintln(a.stderr, "labctl:", shown(err))
	if errors.As(err, &usage) || errors.As(err, &problems) {
		return exitUsage
	}
	return exitFailed
}

// exitStatus ends labctl with this status and no further message.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// app is one call of labctl.
type app struct {
	args           []string // what labctl was called with
	stdin          *os.File
	stdout, stderr io.Writer
	file           string // -c
	labName        string // --lab
	output         string // -o
	verbose        bool
	yes            bool   // --yes
	acceptNew      bool   // --accept-new
	named          string // --name of dismantle
	passthrough    bool
}

func (a *app) checkOutput() error {
	if a.output != "text" && a.output != "json" {
		return usageError{fmt.Errorf("--output %q: use text or json", a.output)}
	}
	return nil
}
