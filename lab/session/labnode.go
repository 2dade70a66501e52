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

// What labnode may take to look at its machine, and to mend what it finds. A program that hangs, on a disk that does not answer, ends with this.
const (
	askBudget  = time.Minute
	RepairBudget = 5 * time.Minute
)

// factsLimit is far above what labnode says of a machine, in bytes.
const factsLimit = 1 << 20

// namedReader is a node that is asked.
type namedReader interface {
	Reader
	Name() string
}

// ReadFacts asks a node what it is.
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

// ShowIfSlow shows a step for what is not over soon, so that nobody waits without a word. The function that it returns ends it, and hands on the error.
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

// slowAfter is how long somebody may wait without a word.
const slowAfter = 5 * time.Second

// Facts reads what the nodes are. The error tells of those that do not answer; the others' facts are there all the same.
func (s *Session) Facts(ctx context.Context, members []config.Node) (map[string]join.Facts, error) {
	all := make([]join.Facts, len(members))
	known := make([]bool, len(members))
	err := ForEachNode(members, func(n config.Node) error {
		i := slices.IndexFunc(members, func(m config.Node) bool { return m.Name == n.Name })
		f, err := s.ReadFacts(ctx, s.Nodes[n.Name])
		all[i], known[i] = f, err == nil
		return err
	})
	byName := map[string]join.Facts{}
	for i, n := range members {
		if known[i] {
			byName[n.Name] = all[i]
		}
	}
	return byName, err
}

// FactsOf are a node's facts; none of one that does not answer.
func (s *Session) FactsOf(ctx context.Context, name string) (f join.Facts) {
	if n := s.Nodes[name]; n != nil {
		f, _ = s.ReadFacts(ctx, n)
	}
	return f
}

// Validate asks the node whether it is a healthy member.
func (s *Session) Validate(ctx context.Context, name string) ([]join.Check, error) {
	return s.Checked(ctx, name, askBudget, "validate")
}

// RepairNode has the node look for what is safe to repair, and repair it unless dryRun.
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
