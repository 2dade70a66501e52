package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8slab/lab/node"
)

// units answers as a node does that has kubelet, and the journal of an attempt that has ended.
type units struct{ lost error }

func (units) Name() string { return "w1" }

func (u units) Read(_ context.Context, argv ...string) (string, error) {
	line := strings.Join(argv, " ")
	failed := &node.ExitError{Node: "w1", Argv: argv, Status: 1}
	switch {
	case u.lost != nil:
		return "", u.lost
	case line == "systemctl cat -- kubelet":
		return "# kubelet.service", nil
	case strings.HasPrefix(line, "journalctl ") && strings.HasSuffix(line, "--unit=k8slab-join"):
		return "joined", nil
	case strings.HasPrefix(line, "journalctl "):
		return "", failed // as of systemd 254, without entries
	}
	return "", failed
}

func TestCheckUnit(t *testing.T) {
	lost := errors.New("connection lost")
	for _, tt := range []struct {
		unit string
		lost error
		want string
	}{
		{"kubelet", nil, ""},
		{"k8slab-join", nil, ""},
		{"kublet", nil, `w1 has no unit "kublet"; did you mean "kubelet"?`},
		{"other", nil, "w1 has no unit \"other\"; `labctl ssh w1 systemctl list-units` lists them"},
		{"kubelet", lost, "connection lost"},
	} {
		err := checkUnit(t.Context(), units{tt.lost}, tt.unit)
		if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.unit, err, tt.want)
		}
	}
}

func TestJournalArguments(t *testing.T) {
	for want, j := range map[string]journal{
		"journalctl --no-pager --output=short-iso":                                         {},
		"journalctl --no-pager --output=short-iso --unit=kubelet --since=-600s --lines=50": {unit: "kubelet", since: 10 * time.Minute, lines: 50},
		"journalctl --no-pager --output=short-iso --unit=--vacuum-time=1s --follow":        {unit: "--vacuum-time=1s", follow: true},
	} {
		if got := strings.Join(j.argv(), " "); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
