package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8slab/lab/symptom"
)

// name waits until the diagnosis names the fault, or one of several. It asks again, because logs can be late.
func (e *experiment) name(ctx context.Context) error {
	begun := time.Now()
	wanted := statements(e.faults)
	err := e.target.await(ctx, "the diagnosis to name "+e.result.Fault, nameBudget, time.Second, func(ctx context.Context) error {
		first, err := e.stopping(ctx)
		e.named = first
		e.result.Detected, e.result.ToCause = detected(first), time.Since(begun).Seconds()
		e.result.Detected.judge(wanted)
		says := statement{first.Symptom, first.Detail, first.Node}
		if err != nil || slices.ContainsFunc(wanted, func(w statement) bool { return w.wants(says) }) {
			return err
		}
		return &misdiagnosedError{wanted: wanted, says: says}
	})
	if wrong, other := errors.AsType[*misdiagnosedError](err); other {
		wrong.after = e.target.patiently(nameBudget)
		return wrong
	}
	return err
}

// detected is what labctl's diagnosis says first.
func detected(first symptom.Finding) Detection {
	d := Detection{By: "labctl diagnose", Cause: first.Symptom, Node: first.Node}
	if len(first.Evidence) > 0 {
		d.Evidence = first.Evidence[0].Text
	}
	return d
}

// judge compares a diagnosis with what it may say of the faults.
func (d *Detection) judge(wanted []statement) {
	d.RightCause = slices.ContainsFunc(wanted, func(w statement) bool { return w.symptom == d.Cause })
	d.RightNode = slices.ContainsFunc(wanted, func(w statement) bool { return w.symptom == d.Cause && w.of == d.Node })
}

// misdiagnosedError is a diagnosis that names something else than the fault.
type misdiagnosedError struct {
	wanted []statement
	says   statement
	after  time.Duration
}

func (e *misdiagnosedError) Error() string {
	return fmt.Sprintf("timed out after %.0f s: expected %s, diagnosis said %s", e.after.Seconds(), alternatives(e.wanted), e.says)
}

// alternatives names what a diagnosis may say.
func alternatives(wanted []statement) string {
	var all []string
	for _, w := range wanted {
		all = append(all, w.String())
	}
	return strings.Join(all, " or ")
}

// diagnosed is the first finding of `labctl diagnose`, empty when there is none.
func diagnosed(ctx context.Context, t Target) (first symptom.Finding, err error) {
	out, err := t.Labctl(ctx, "diagnose", "-o", "json") // exit status 1 says that there is something
	var report struct{ Findings []symptom.Finding }
	if unread := json.Unmarshal([]byte(out), &report); unread != nil {
		return first, errors.Join(err, unread)
	}
	if len(report.Findings) > 0 {
		first = report.Findings[0]
	}
	return first, nil
}

// stopping is what the diagnosis, or before or in an upgrade its plan, names first of the faults.
func (e *experiment) stopping(ctx context.Context) (symptom.Finding, error) {
	if e.faults[0].Upgrade != "" {
		first, err := whatStopsUpgrade(ctx, e.target)
		if err != nil || first.Symptom != "" || e.faults[0].Upgrade == Before {
			return first, err
		}
	}
	return diagnosed(ctx, e.target)
}
