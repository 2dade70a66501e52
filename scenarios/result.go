package scenarios

import (
	"fmt"
	"time"

	"k8slab/lab/symptom"
)

// Class says how a circle ended.
type Class string

// The classes of results. Failed is the product's failure; setup-failed says that there was no healthy lab to begin with, or that the fault
// could not be made.
const (
	Passed        Class = "passed"
	Failed        Class = "failed"
	SetupFailed   Class = "setup-failed"
	NotApplicable Class = "not-applicable"
)

// Result is how one circle went.
type Result struct {
	Fault     string     `json:"fault"` // of a circle with several faults, their names joined by "+"
	Node      string     `json:"node"`
	Began     time.Time  `json:"began"`
	Class     Class      `json:"class"`
	Reason    string     `json:"reason,omitempty"` // why it is not Passed
	Symptom   symptom.ID `json:"symptom"`          // that the diagnosis said first
	SymptomOn string     `json:"symptom_on"`       // the node that it said it of; "" is the cluster
	ToBite    float64    `json:"to_bite"`          // seconds from the injection's end until its effect showed
	ToCause   float64    `json:"to_cause"`         // seconds that the diagnosis took to name it
	ToRecover float64    `json:"to_recover"`       // seconds from the first command of the recovery to a proven healthy cluster
	Seconds   float64    `json:"seconds"`          // of the whole circle
}

// Err is why the circle did not pass; nil when it passed or does not apply.
func (r Result) Err() error {
	if r.Class == Passed || r.Class == NotApplicable {
		return nil
	}
	return fmt.Errorf("%s on %s: %s: %s", r.Fault, r.Node, r.Class, r.Reason)
}
