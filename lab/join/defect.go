package join

import (
	"fmt"

	"k8slab/lab/symptom"
)

// Defect is one thing that a measurement of a member found wrong.
type Defect struct {
	Symptom symptom.ID `json:"symptom,omitempty"` // the cause, where the measurement shows it by itself
	Where   string     `json:"where"`             // the file, port or program that shows it
	Text    string     `json:"text"`
	Hint    string     `json:"hint,omitempty"` // instead of the cause's own
	Warn    bool       `json:"warn,omitempty"` // nothing fails of it yet
}

func (d Defect) String() string { return d.Where + ": " + d.Text }

func wrong(id symptom.ID, where, format string, args ...any) Defect {
	return Defect{Symptom: id, Where: where, Text: fmt.Sprintf(format, args...)}
}
