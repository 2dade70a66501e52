package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

func TestAsk(t *testing.T) {
	for typed, want := range map[string]bool{"y\n": true, "YES\n": true, " y \n": true, "n\n": false, "\n": false, "": false, "y": false, "yeah\n": false} {
		in, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = out.WriteString(typed)
		_ = out.Close()
		var stderr bytes.Buffer
		a := &app{stdin: in, stderr: &stderr}
		if got, err := a.asked(t.Context(), "Do this?"); got != want || err != nil || stderr.String() != "Do this? [y/N] " {
			t.Errorf("%q: %v, %v, %q", typed, got, err, stderr.String())
		}
		// No terminal, no question: only --yes is an answer.
		got, err := a.ask(t.Context(), "Do this?", false)
		if usage, is := errors.AsType[usageError](err); got || !is || !strings.Contains(usage.Error(), "--yes") {
			t.Errorf("without a terminal: %v, %v", got, err)
		}
		if a.exitCode(t.Context(), err) != exitUsage {
			t.Error("no usage error")
		}
		if got, err := a.ask(t.Context(), "Do this?", true); !got || err != nil {
			t.Errorf("with --yes: %v, %v", got, err)
		}
		_ = in.Close()
	}
	// Who does not answer can interrupt.
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	if got, err := (&app{stdin: in, stderr: &bytes.Buffer{}}).asked(ctx, "?"); got || !errors.Is(err, errInterrupted) {
		t.Errorf("%v, %v", got, err)
	}
}
