package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"k8slab/lab/join"
	"k8slab/lab/node"
	"slices"
	"time"
)

// Validate asks the node whether it is a healthy member.
func (s *Session) Validate(ctx context.Context, name string) ([]join.Check, error) {
	return s.Checked(ctx, name, askBudget, "validate")
}

// MendNode has the node look for what is safe to repair, and repair it unless dryRun.
func (s *Session) MendNode(ctx context.Context, name string, dryRun bool) ([]join.Check, error) {
	if dryRun {
		return s.Checked(ctx, name, askBudget, "mend", "--dry-run")
	}
	return s.Checked(ctx, name, MendBudget, "mend")
}

// Checked has the node's labnode check it within the budget.
func (s *Session) Checked(ctx context.Context, name string, budget time.Duration, args ...string) ([]join.Check, error) {
	ctx, cancel := s.Within(ctx, budget)
	defer cancel()
	end := s.Slow(name, args[0])
	checks, err := ask(ctx, s.Nodes[name], args...)
	return checks, end(err)
}

// ask has labnode check the node. Its exit status says what its checks say. An answer that did not come, or not whole, is an error.
func ask(ctx context.Context, on Runner, args ...string) ([]join.Check, error) {
	var out node.Answer
	argv := slices.Concat([]string{LabnodePath}, args, []string{"-o", "json"})
	readOnly := slices.Contains(args, "--dry-run") || args[0] != "mend" && !slices.Contains(args, "--fix")
	err := on.Run(ctx, node.Command{Argv: argv, Stdout: &out, ReadOnly: readOnly})
	if exit, ended := errors.AsType[*node.ExitError](err); err != nil && (!ended || exit.Signal != "") {
		return nil, err
	}
	var answer struct{ Checks []join.Check }
	unread := json.Unmarshal([]byte(out.String()), &answer)
	switch {
	case unread == nil && len(answer.Checks) > 0:
		return answer.Checks, nil
	case err != nil: // it says why there is no answer
		return nil, err
	case unread != nil:
		return nil, fmt.Errorf("the answer of labnode %s is not JSON: %w", args[0], unread)
	}
	return nil, fmt.Errorf("the answer of labnode %s has no checks", args[0])
}

// FirstBad is the nearest cause among the checks. An answer that did not come is one.
func FirstBad(checks []join.Check, err error) *join.Check {
	if err != nil {
		return &join.Check{ID: join.CheckLabnode, Result: join.Blocked, Evidence: "it does not answer: " + err.Error()}
	}
	for i, c := range checks {
		if c.Result == join.Blocked || c.Result == join.Fixable {
			return &checks[i]
		}
	}
	return nil
}
