package session

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"k8slab/lab/node"
)

// labnodeSays is a node whose labnode writes an answer and ends with an error.
type labnodeSays struct {
	answer string
	err    error
}

func (l labnodeSays) Run(_ context.Context, cmd node.Command) error {
	_, _ = io.WriteString(cmd.Stdout, l.answer)
	return l.err
}

func TestAsk(t *testing.T) {
	const bad = `{"verdict": "blocked", "checks": [{"id": "cri", "result": "blocked", "symptom": "runtime-socket-missing", "evidence": "it is gone"}]}`
	exit := func(status int, signal string) error {
		return &node.ExitError{Node: "w1", Argv: []string{"labnode", "mend"}, Status: status, Signal: signal, Stderr: "panic: out of range"}
	}
	tests := []struct {
		name  string
		says  labnodeSays
		wrong string // what the error tells; "" for an answer
	}{
		{"all well, or repaired", labnodeSays{bad, nil}, ""},
		{"its exit status says what its checks say", labnodeSays{bad, exit(1, "")}, ""},
		{"it crashed", labnodeSays{"", exit(2, "")}, "panic: out of range"},
		{"it crashed in its answer", labnodeSays{bad[:40], exit(2, "")}, "panic: out of range"},
		{"it was killed after its answer", labnodeSays{bad, exit(137, "KILL")}, "killed by signal KILL"},
		{"the connection was lost", labnodeSays{bad, errors.New("connection lost")}, "connection lost"},
		{"it answers something else", labnodeSays{"hello", nil}, "not JSON"},
		{"it answers nothing", labnodeSays{"", nil}, "not JSON"},
		{"it checked nothing", labnodeSays{`{"verdict": "ok"}`, nil}, "no checks"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checks, err := ask(t.Context(), tt.says, "mend")
			if tt.wrong == "" {
				if err != nil || len(checks) != 1 || checks[0].ID != "cri" {
					t.Errorf("%+v, %v", checks, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.wrong) {
				t.Fatalf("%v, want %q", err, tt.wrong)
			}
			if cause := FirstBad(checks, err); cause == nil || !strings.Contains(cause.Evidence, "does not answer") || !strings.Contains(cause.Evidence, tt.wrong) {
				t.Errorf("the first cause is %+v", cause)
			}
		})
	}
}
