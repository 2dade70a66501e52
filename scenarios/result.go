package scenarios

import (
	"fmt"
	"strings"
	"time"

	"k8slab/lab/symptom"
)

// Class says how an experiment ended.
type Class string

// The classes of results. Failed is a failure of labctl, or of the tool that was tried; setup-failed says that the lab was not healthy before,
// or that the fault could not be injected.
const (
	Passed        Class = "passed"
	Failed        Class = "failed"
	SetupFailed   Class = "setup-failed"
	NotApplicable Class = "not-applicable"
)

// Result is the result of one experiment. Times are in seconds.
type Result struct {
	Fault     string    `json:"fault"` // of an experiment with several faults, their names joined by "+"
	Story     string    `json:"story"` // what the fault imitates, with its source; of several, joined by "; "
	Node      string    `json:"node"`
	Began     time.Time `json:"began"`
	Class     Class     `json:"class"`
	Reason    string    `json:"reason,omitempty"` // why it is not Passed
	Detected  Detection `json:"detected"`
	Repaired  bool      `json:"repaired"`         // the lab was proven healthy, and nothing was lost or changed that had to stay
	Recovery  []string  `json:"recovery"`         // the commands that were run to recover, and in round brackets what only a person could do
	Person    string    `json:"person,omitempty"` // what a person had to do for labctl first: ByHint or ByHand
	Restored  bool      `json:"restored"`         // the lab was not recovered: the injector took the fault back, and labctl brought the lab up again
	ToEffect  float64   `json:"to_effect"`        // from the injection's end until its effect showed
	ToCause   float64   `json:"to_cause"`         // that the diagnosis took to name it
	ToRecover float64   `json:"to_recover"`       // from the first command of the recovery to a proven healthy cluster
	Data      Data      `json:"data"`
	Seconds   float64   `json:"seconds"` // of the whole experiment
}

// What a person had to do before labctl could recover.
const (
	ByHint = "hint"    // the commands of labctl's own hint, run as they are written there
	ByHand = "by-hand" // what no command of a hint does: the fault's script acted as a person would
)

// Detection is what a diagnosis said first.
type Detection struct {
	By         string     `json:"by"`       // the command that said it
	Cause      symptom.ID `json:"cause"`    // "" is that nothing is wrong
	Node       string     `json:"node"`     // "" is the cluster
	Evidence   string     `json:"evidence"` // one line
	RightCause bool       `json:"right_cause"`
	RightNode  bool       `json:"right_node"` // it is the node that has the fault, or one that shows it
}

// Data is what the experiment's own workload found in the end.
type Data struct {
	// Lost is which of the workload's data is gone or another: the ConfigMap, a node's file. nil: nobody could look.
	Lost []string `json:"lost"`
	// Writes are those that etcd acknowledged during the experiment.
	Writes int `json:"writes"`
	// LostWrites are acknowledged writes that etcd does not have in the end. nil: nobody could look.
	LostWrites *int `json:"lost_writes"`
	// WriteGap is the longest time in seconds that a writer, who tries again and again, waited for a write to be acknowledged.
	WriteGap float64 `json:"write_gap"`
}

// Err is why the experiment did not pass; nil when it passed or does not apply.
func (r Result) Err() error {
	if r.Class == Passed || r.Class == NotApplicable {
		return nil
	}
	return fmt.Errorf("%s on %s: %s: %s", r.Fault, r.Node, r.Class, r.Reason)
}

// Summary says what is lost, in a few words.
func (d Data) Summary() string {
	var lost []string
	if d.LostWrites != nil && *d.LostWrites > 0 {
		lost = append(lost, fmt.Sprintf("%d of %d writes", *d.LostWrites, d.Writes))
	}
	switch lost = append(lost, d.Lost...); {
	case len(lost) > 0:
		return strings.Join(lost, ", ")
	case d.Lost == nil || d.LostWrites == nil:
		return "unknown"
	}
	return "none"
}
