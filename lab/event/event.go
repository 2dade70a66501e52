// Package event is the one stream of what a run does: steps on nodes report to a Stream, and the progress display, the run log and the JSON
// output are views of it. It redacts secrets in details, not in node or phase names, and it waits for a writer that is slow; only one that
// fails is given up.
package event

import (
	"encoding/json"
	"time"
)

// State is where a step stands.
type State string

// The states of a step, in the order a step passes through them.
const (
	Started  State = "started"
	Progress State = "progress"
	Done     State = "done"
	Failed   State = "failed"
)

// Event is one thing that happened to one step. An empty Node is the host that
// runs the lab. Limit is the time the step was given, zero if none was set.
type Event struct {
	Time    time.Time
	Node    string
	Phase   string
	State   State
	Detail  string
	Elapsed time.Duration
	Limit   time.Duration

	// heartbeat marks a progress event that carries no news, for views that show the passing time by themselves.
	heartbeat bool
}

// Sink is a view of the stream. A Stream calls Emit for one event at a time, and on its own Close it closes the sinks that are io.Closers.
type Sink interface {
	Emit(Event)
}

// wire is an Event as JSON: durations as seconds, because that is what people and jq can read.
type wire struct {
	Time    time.Time `json:"time"`
	Node    string    `json:"node,omitempty"`
	Phase   string    `json:"phase"`
	State   State     `json:"state"`
	Detail  string    `json:"detail,omitempty"`
	Elapsed float64   `json:"elapsed,omitempty"`
	Limit   float64   `json:"limit,omitempty"`
}

func (e Event) wire() wire {
	return wire{
		Time: e.Time, Node: e.Node, Phase: e.Phase, State: e.State, Detail: e.Detail,
		Elapsed: e.Elapsed.Round(time.Millisecond).Seconds(),
		Limit:   e.Limit.Round(time.Millisecond).Seconds(),
	}
}

// MarshalJSON writes durations as seconds, to the millisecond.
func (e Event) MarshalJSON() ([]byte, error) { return json.Marshal(e.wire()) }

// UnmarshalJSON reads what MarshalJSON writes.
func (e *Event) UnmarshalJSON(data []byte) error {
	var w wire
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*e = Event{
		Time: w.Time, Node: w.Node, Phase: w.Phase, State: w.State, Detail: w.Detail,
		Elapsed: fromSeconds(w.Elapsed),
		Limit:   fromSeconds(w.Limit),
	}
	return nil
}

func fromSeconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond)
}

// hostName stands for the empty node name wherever people read it.
const hostName = "host"

func (e Event) who() string {
	if e.Node == "" {
		return hostName
	}
	return OneLine(e.Node)
}
