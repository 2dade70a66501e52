package onboard

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8slab/lab/event"
)

func TestText(t *testing.T) {
	defer func(l *time.Location) { time.Local = l }(time.Local)
	time.Local = time.UTC
	back := sample()
	back.Changes[1].Status = Undone
	turnBack(back)
	gone := sample()
	turnBack(gone)
	for i := range gone.Changes {
		gone.Changes[i].Status = Undone
	}
	gone.Status = RolledBack
	tests := []struct {
		name string
		view View
		want string
	}{
		{"rolled back", View{Condition: TakenBack, State: gone}, `
rolled back                          4m5.5s

2 changes, all undone

errors, the newest last:
  10:30:40 gitops_activation
    push the commit: <remote> "origin" refused: non-fast-forward
next: start again: labctl onboard w2
`},
		{"never", View{Condition: Never}, "onboarding: not_started\nnext: start it: labctl onboard NODE\n"},
		{"at work", View{Condition: Working, Holder: "labctl onboard (process 7)", State: sample()}, `onboarding of w2: working
worker, cluster small
began 2024-01-15 10:30:00, last written 2024-01-15 10:34:12

PHASE                   STATUS       TIME     TRIES
pre_validation          completed    12s      1
gitops_activation       completed    1m11.2s  2
node_join_monitoring    in progress  2m42.3s  1
storage_integration     not started
network_validation      not started
monitoring_integration  not started
security_validation     not started
post_validation         not started
health_verification     not started
2 of 9 completed                     4m5.5s

2 changes, none undone

errors, the newest last:
  10:30:40 gitops_activation
    push the commit: <remote> "origin" refused: non-fast-forward
at work: labctl onboard (process 7)
next: wait, or look again
`},
		{"half rolled back", View{Condition: HalfBack, State: back}, `
2 changes, 1 undone
  still to undo: revert the commit of w2's configuration

errors, the newest last:
  10:30:40 gitops_activation
    push the commit: <remote> "origin" refused: non-fast-forward
next: finish it: --rollback
`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			must(t, tt.view.WriteText(&b))
			var lines []string
			for line := range strings.Lines(b.String()) {
				lines = append(lines, strings.TrimRight(line, " \n"))
			}
			got := strings.Join(lines, "\n") + "\n"
			if !strings.HasSuffix(got, tt.want) || tt.want[0] != '\n' && got != tt.want {
				t.Errorf("got\n%s", got)
			}
			for _, line := range lines {
				if event.Columns(line) > 60 && !strings.HasPrefix(line, "    ") {
					t.Errorf("%d columns: %s", event.Columns(line), line)
				}
			}
		})
	}
}

// The view's JSON is the state's, and what only a look can tell.
func TestViewJSON(t *testing.T) {
	data, err := json.Marshal(View{Condition: Interrupted, State: sample()})
	must(t, err)
	var got map[string]any
	must(t, json.Unmarshal(data, &got))
	if got["condition"] != "interrupted" || got["node"] != "w2" || got["current_phase"] != "node_join_monitoring" || got["completed_phases"] != 2.0 {
		t.Errorf("got %s", data)
	}
	if data, err = json.Marshal(View{Condition: Never}); err != nil || string(data) != `{"condition":"not_started"}` {
		t.Errorf("got %s, %v", data, err)
	}
}

func TestConditions(t *testing.T) {
	with := func(change func(*State)) *State {
		s := sample()
		change(s)
		return s
	}
	tests := []struct {
		state   *State
		working bool
		want    Condition
	}{
		{nil, false, Never},
		{nil, true, Working},
		{sample(), true, Working},
		{sample(), false, Interrupted},
		{with(func(s *State) { s.set(NodeJoinMonitoring, Completed, nil) }), false, Interrupted}, // between two phases
		{with(func(s *State) { s.set(NodeJoinMonitoring, Failed, errBroken) }), false, Broken},
		{with(turnBack), false, HalfBack},
		{with(func(s *State) { s.Status = Completed }), false, Onboarded},
		{with(func(s *State) { s.Status = RolledBack }), false, TakenBack},
	}
	for _, tt := range tests {
		if got := condition(tt.state, tt.working); got != tt.want {
			t.Errorf("%+v, working %v: %s, want %s", tt.state, tt.working, got, tt.want)
		}
		if advice[tt.want] == "" {
			t.Errorf("nothing to do about %s", tt.want)
		}
	}
}

func TestLevels(t *testing.T) {
	tests := []struct {
		event event.Event
		want  string
	}{
		{event.Event{State: event.Started}, "PROGRESS"},
		{event.Event{State: event.Progress, Detail: "still running: warning: x"}, "PROGRESS"},
		{event.Event{State: event.Progress, Detail: "no Node yet"}, "INFO"},
		{event.Event{State: event.Progress, Detail: "warning: two replicas"}, "WARN"},
		{event.Event{State: event.Progress, Detail: "debug: asked again"}, "DEBUG"},
		{event.Event{State: event.Done, Detail: "warning: x"}, "SUCCESS"},
		{event.Event{State: event.Failed, Detail: "debug: x"}, "ERROR"},
	}
	for _, tt := range tests {
		if got := Level(tt.event); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.event, got, tt.want)
		}
	}
}
