package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"k8slab/lab/health"
	"k8slab/lab/onboard"
	"k8slab/lab/validate"
)

// poison is what a node's condition, a pod's last words or an API server can say.
const poison = "bad\x1b]0;TITLE\a\x1b[2J\x1b[31m\u009b5n\u202ereversed\rback\nlabctl: forged line"

// Nothing that strangers say reaches a terminal but as text, in a line of labctl's.
func TestStrangersWordsAreText(t *testing.T) {
	printed := map[string]func(io.Writer){
		"an error": func(w io.Writer) {
			_, _ = io.WriteString(w, shown(fmt.Errorf("ask the cluster: %w", errors.New(poison))))
		},
		"status": func(w io.Writer) { printStatus(w, health.Status{Problems: []string{poison}}) },
		"validate": func(w io.Writer) {
			printFindings(w, []validate.Finding{{Status: validate.Failed, Detail: poison, Next: poison}})
		},
		"onboard --dry-run": func(w io.Writer) {
			printOnboardPlan(w, []onboard.Planned{{Note: poison, Steps: []string{poison}}})
		},
		"onboard --rollback": func(w io.Writer) { printUndoable(w, []onboard.Change{{Undo: poison}}) },
	}
	for name, show := range printed {
		var out bytes.Buffer
		a := &app{stdout: &out}
		if err := a.print(nil, show); err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "labctl: forged") {
				t.Errorf("%s: a forged line", name)
			}
		}
		if i := strings.IndexFunc(out.String(), func(r rune) bool { return r != '\n' && r < ' ' || r == 0x9b || r == 0x202e || r == 0x7f }); i >= 0 {
			t.Errorf("%s: %q is printed", name, out.String()[i:min(i+20, out.Len())])
		}
		if !strings.Contains(out.String(), "forged line") {
			t.Errorf("%s: it is not shown: %q", name, out.String())
		}
	}
}

func TestPrintToAFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = full.Close() }()
	if status := run([]string{"version"}, os.Stdin, full, io.Discard); status != exitFailed {
		t.Errorf("exit status %d", status)
	}
}
