package repair

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"k8slab/lab/join"
	"k8slab/lab/labtest"
	"k8slab/lab/node"
	"k8slab/lab/session"
)

// labnodeSays is a node whose labnode writes an answer and ends with an error.
type labnodeSays struct {
	session.Node
	answer string
	err    error
}

func (l labnodeSays) Run(_ context.Context, cmd node.Command) error {
	_, _ = io.WriteString(cmd.Stdout, l.answer)
	return l.err
}

// What a node did not answer is left.
func TestMendedWithoutAnAnswer(t *testing.T) {
	const bad = `{"verdict": "blocked", "checks": [{"id": "cri", "result": "blocked", "symptom": "runtime-socket-missing", "evidence": "it is gone"}]}`
	exit := func(status int, signal string) error {
		return &node.ExitError{Node: "w1", Argv: []string{"labnode", "mend"}, Status: status, Signal: signal, Stderr: "panic: out of range"}
	}
	tests := []struct {
		name  string
		says  labnodeSays
		wrong string // what the error tells
	}{
		{"it crashed", labnodeSays{nil, "", exit(2, "")}, "panic: out of range"},
		{"it crashed in its answer", labnodeSays{nil, bad[:40], exit(2, "")}, "panic: out of range"},
		{"it was killed after its answer", labnodeSays{nil, bad, exit(137, "KILL")}, "killed by signal KILL"},
		{"the connection was lost", labnodeSays{nil, bad, errors.New("connection lost")}, "connection lost"},
		{"it answers something else", labnodeSays{nil, "hello", nil}, "not JSON"},
		{"it answers nothing", labnodeSays{nil, "", nil}, "not JSON"},
		{"it checked nothing", labnodeSays{nil, `{"verdict": "ok"}`, nil}, "no checks"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := labtest.Session(t, labtest.Small)
			s.Nodes["w1"] = tt.says
			checks, err := s.RepairNode(t.Context(), "w1", false)
			if found := nodeRepairs("w1", false, checks, err); len(found) != 1 || found[0].Left == "" || !strings.Contains(found[0].Evidence, tt.wrong) {
				t.Errorf("a repair tells %+v", found)
			}
		})
	}
}

func TestMended(t *testing.T) {
	checks := []join.Check{
		{ID: "swap", Result: join.OK, Evidence: "off"},
		{ID: "cri", Result: join.OK, Symptom: "runtime-socket-missing", Evidence: "it was dead", Fixed: "started containerd"},
		{ID: "cni-config", Result: join.Fixable, Symptom: "cni-stale-config", Evidence: "another wins", Hint: "mv it"},
		{ID: "image-filesystem", Result: join.Blocked, Symptom: "image-filesystem-zero", Evidence: "0 bytes", Hint: "umount"},
		{ID: "clock", Result: join.Warn, Symptom: "clock-skew"},
	}
	for _, dryRun := range []bool{true, false} {
		found := nodeRepairs("w1", dryRun, checks, nil)
		if len(found) != 3 || found[0].Did != "started containerd" || found[2].Left != "umount" {
			t.Fatalf("%+v", found)
		}
		if dryRun != (found[1].Would == "mv it") || dryRun == (found[1].Left == "mv it") {
			t.Errorf("dry run %v: %+v; what was not repaired is left", dryRun, found[1])
		}
	}
}
