package scenarios

import (
	"fmt"
	"time"

	"k8slab/lab/symptom"
)

// Class says how an experiment ended.
type Class string

// The classes of results. Failed is a failure of labctl; setup-failed says that the lab was not healthy before, or that the fault could not be
// injected.
const (
	Passed        Class = "passed"
	Failed        Class = "failed"
	SetupFailed   Class = "setup-failed"
	NotApplicable Class = "not-applicable"
)

// Result is the result of one experiment.
type Result struct {
	Fault     string     `json:"fault"` // of an experiment with several faults, their names joined by "+"
	Node      string     `json:"node"`
	Began     time.Time  `json:"began"`
	Class     Class      `json:"class"`
	Reason    string     `json:"reason,omitempty"` // why it is not Passed
	Symptom   symptom.ID `json:"symptom"`          // that the diagnosis named first
	SymptomOn string     `json:"symptom_on"`       // the node that the diagnosis named; "" is the cluster
	ToEffect  float64    `json:"to_bite"`          // seconds from the injection's end until its effect showed
	ToCause   float64    `json:"to_cause"`         // seconds that the diagnosis took to name it
	ToRecover float64    `json:"to_recover"`       // seconds from the first command of the recovery to a proven healthy cluster
	Seconds   float64    `json:"seconds"`          // of the whole experiment
}

// Err is why the experiment did not pass; nil when it passed or does not apply.
func (r Result) Err() error {
	if r.Class == Passed || r.Class == NotApplicable {
		return nil
	}
	return fmt.Errorf("%s on %s: %s: %s", r.Fault, r.Node, r.Class, r.Reason)
}
