package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8slab/lab/symptom"
)

// Tool is another program that diagnoses and repairs. It is not told which fault there is.
type Tool struct {
	Name string // in results
	// Run runs it in a phase, to its end or until its time is up, and returns its standard output. That it ends with another status than 0 is
	// an error.
	Run func(ctx context.Context, phase Phase) (string, error)
}

// Phase is what a tool is asked for.
type Phase string

// The phases, in their order.
const (
	Diagnose Phase = "diagnose" // to name the cause
	Mend     Phase = "repair"   // to repair
)

// askTool has the tool name the cause. That it is wrong does not end the experiment: it may repair all the same.
func (e *experiment) askTool(ctx context.Context) error {
	tool := e.options.Tool
	e.step(string(Diagnose) + ": " + tool.Name)
	begun := time.Now()
	out, err := tool.Run(ctx, Diagnose)
	e.result.ToCause = time.Since(begun).Seconds()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	answer := Detection{}
	if err == nil {
		answer, err = ReadAnswer(out)
	}
	answer.By = tool.Name
	wanted := statements(e.faults)
	if err == nil {
		answer.judge(wanted)
	}
	e.result.Detected = answer
	switch {
	case err != nil:
		e.misnamed = fmt.Errorf("it named no cause: %w", err)
	case !answer.RightCause || !answer.RightNode:
		e.misnamed = fmt.Errorf("it named %s; right is %s", statement{symptom: answer.Cause, of: answer.Node}, alternatives(wanted))
	}
	return nil
}

// repairWithTool has the tool repair, and wants what is wanted of labctl. One that ends with another status than 0 has not repaired.
func (e *experiment) repairWithTool(ctx context.Context) error {
	e.did(e.options.Tool.Name)
	begun := time.Now()
	if _, err := e.options.Tool.Run(ctx, Mend); err != nil {
		return fmt.Errorf("it did not repair: %w", err)
	}
	return e.settle(ctx, begun)
}

// salvageBudget is how long is waited for what is left of the workload's data in a lab that is still broken.
const salvageBudget = 20 * time.Second

// salvage looks what became of the workload's data before labctl brings back what a tool left.
func (e *experiment) salvage(ctx context.Context, before baseline) {
	if e.options.Tool == nil || ctx.Err() != nil || e.result.Data.Lost != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, e.target.patiently(salvageBudget))
	defer cancel()
	_ = e.changed(ctx, before) // it is in the result
}

// longestAnswer is how long a tool's evidence may be in a result, in bytes.
const longestAnswer = 500

// ReadAnswer reads what a tool wrote to its standard output: a JSON object {"cause", "node", "evidence"}, one line that is the ID of a cause,
// or nothing, which says that nothing is wrong. The error says why it is none of these.
func ReadAnswer(out string) (Detection, error) {
	out = strings.TrimSpace(out)
	var answer struct {
		Cause    symptom.ID `json:"cause"`
		Node     string     `json:"node"`
		Evidence string     `json:"evidence"`
	}
	switch {
	case strings.HasPrefix(out, "{"):
		if err := json.Unmarshal([]byte(out), &answer); err != nil {
			return Detection{}, fmt.Errorf("its answer is not a JSON object of strings: %w", err)
		}
	case strings.Contains(out, "\n"):
		return Detection{}, errors.New("its answer is neither a JSON object nor one line")
	default:
		answer.Cause = symptom.ID(out)
	}
	if _, known := symptom.Lookup(answer.Cause); answer.Cause != "" && !known {
		return Detection{}, fmt.Errorf("%.100q is no cause that labctl knows; `labctl fault list -o json` has them", answer.Cause)
	}
	evidence := strings.Join(strings.Fields(answer.Evidence), " ")
	return Detection{Cause: answer.Cause, Node: answer.Node, Evidence: strings.ToValidUTF8(evidence[:min(len(evidence), longestAnswer)], "")}, nil
}
