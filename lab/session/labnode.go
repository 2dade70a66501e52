package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8slab/config"
	"k8slab/lab/event"
	"k8slab/lab/join"
	"k8slab/lab/node"
)

// Paths in a node that kubeadm chooses by default, which the lab keeps.
const (
	EtcdData    = "/var/lib/etcd"
	ManifestDir = "/etc/kubernetes/manifests"
)

// LabnodePath is the program of the lab in its nodes.
const LabnodePath = "/usr/bin/labnode"

// How long labnode may take to read its machine, and to repair it. The limit also ends a labnode that hangs on a disk that does not answer.
const (
	askBudget    = time.Minute
	RepairBudget = 5 * time.Minute
)

// factsLimit bounds what a machine may send as its facts, in bytes. Real ones are far smaller.
const factsLimit = 1 << 20

// namedReader is a node that is asked.
type namedReader interface {
	Reader
	Name() string
}

// ReadFacts has the node's labnode read what it is.
func (s *Session) ReadFacts(ctx context.Context, n namedReader) (join.Facts, error) {
	ctx, cancel := s.Within(ctx, askBudget)
	defer cancel()
	end := s.ShowIfSlow(n.Name(), "facts")
	out, err := n.Read(ctx, LabnodePath, "facts")
	if err := end(err); err != nil {
		return join.Facts{}, err
	}
	var f join.Facts
	if len(out) > factsLimit {
		return f, fmt.Errorf("%s: its facts are larger than %d MiB", n.Name(), factsLimit>>20)
	}
	if err := json.Unmarshal([]byte(out), &f); err != nil {
		return f, fmt.Errorf("%s: read its facts: %w", n.Name(), err)
	}
	return f, nil
}

// ShowIfSlow shows a step for work that takes longer than slowAfter, so that nobody waits without a word. The returned function ends the
// step and returns the error that it gets.
func (s *Session) ShowIfSlow(name, phase string) (end func(error) error) {
	var mu sync.Mutex
	var step *event.Step
	over := false
	begin := time.AfterFunc(slowAfter, func() {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			step = s.Events.Start(name, phase, 0)
		}
	})
	return func(err error) error {
		begin.Stop()
		mu.Lock()
		defer mu.Unlock()
		if over = true; step == nil {
			return err
		}
		return step.End(err)
	}
}

// slowAfter is how long work may take before the user is told about it.
const slowAfter = 5 * time.Second

// Facts reads the facts of all these nodes at once. Nodes that do not answer are missing from the map and named in the error.
func (s *Session) Facts(ctx context.Context, members []config.Node) (map[string]join.Facts, error) {
	all, err := FromEachNode(members, func(n config.Node) (*join.Facts, error) {
		f, err := s.ReadFacts(ctx, s.Nodes[n.Name])
		if err != nil {
			return nil, err
		}
		return &f, nil
	})
	byName := map[string]join.Facts{}
	for i, n := range members {
		if all[i] != nil {
			byName[n.Name] = *all[i]
		}
	}
	return byName, err
}

// Validate asks the node whether it is a healthy member.
func (s *Session) Validate(ctx context.Context, name string) ([]join.Check, error) {
	return s.Checked(ctx, name, askBudget, "validate")
}

// RepairNode has the node repair what is safe to repair; with dryRun it only says what it would do. It calls `labnode mend`, the old name
// of `labnode repair`, because the nodes of a lab keep the labnode that they were made with.
func (s *Session) RepairNode(ctx context.Context, name string, dryRun bool) ([]join.Check, error) {
	if dryRun {
		return s.Checked(ctx, name, askBudget, "mend", "--dry-run")
	}
	return s.Checked(ctx, name, RepairBudget, "mend")
}

// Checked has the node's labnode check it within the budget.
func (s *Session) Checked(ctx context.Context, name string, budget time.Duration, args ...string) ([]join.Check, error) {
	ctx, cancel := s.Within(ctx, budget)
	defer cancel()
	end := s.ShowIfSlow(name, args[0])
	checks, err := ask(ctx, s.Nodes[name], args...)
	return checks, end(err)
}

// ask runs a check of labnode's on the node. A failed check also makes labnode exit with a status, which is no error here; an answer that
// is missing or cut short is one.
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
	case err != nil: // why there is no answer
		return nil, err
	case unread != nil:
		return nil, fmt.Errorf("the answer of labnode %s is not JSON: %w", args[0], unread)
	}
	return nil, fmt.Errorf("the answer of labnode %s has no checks", args[0])
}

// FirstBad is the first check that failed: checks come from cause to effect. When labnode did not answer, that is the failed check.
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
