package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8slab/lab/event"
	"k8slab/lab/join"
	"k8slab/lab/node"
	"k8slab/lab/session"
	"k8slab/lab/wait"
)

// runJoin runs the command of an attempt to join on the node, with the kubeadm configuration, and shows its events. The attempt runs in a
// systemd unit of its own: after a lost connection its events are read from where they stopped, and it goes on when labctl is killed. labnode
// sends the events of all attempts; events counts those that were read before, and is updated.
func runJoin(ctx context.Context, s *session.Session, name string, argv []string, configuration string, events *int, budget time.Duration, step *event.Step) (join.Outcome, error) {
	h := &joinReader{step: step, before: *events}
	defer func() { *events = h.lines }()
	return readJoin(ctx, s, name, budget, h, func() node.Command {
		return node.Command{Argv: argv, Stdin: strings.NewReader(configuration)}
	})
}

// followJoin follows the join that runs on the node.
func followJoin(ctx context.Context, s *session.Session, name string, budget time.Duration, step *event.Step) (join.Outcome, error) {
	return readJoin(ctx, s, name, budget, &joinReader{step: step}, func() node.Command {
		return node.Command{Argv: []string{session.LabnodePath, "follow", "-o", "json"}, ReadOnly: true}
	})
}

// readJoin runs the command that prints a join's events. After a lost connection it reads the remaining ones.
func readJoin(ctx context.Context, s *session.Session, name string, budget time.Duration, h *joinReader, begin func() node.Command) (join.Outcome, error) {
	err := wait.For(ctx, "the join on "+name, budget, 200*time.Millisecond, func(ctx context.Context) error {
		cmd := begin()
		if h.lines > 0 {
			cmd = node.Command{Argv: []string{session.LabnodePath, "follow", "-o", "json", "--from", strconv.Itoa(h.lines + 1)}, ReadOnly: true}
		}
		cmd.Stdout = &node.Lines{Each: h.line}
		err := s.Nodes[name].Run(ctx, cmd)
		var exit *node.ExitError
		switch {
		case h.outcome != nil:
			return nil
		case errors.As(err, &exit):
			return wait.Hopeless(err)
		case err == nil:
			return wait.Hopeless(fmt.Errorf("%s: labnode ended without the outcome of the join", name))
		}
		return err
	})
	if h.outcome == nil {
		return join.Outcome{}, err
	}
	return *h.outcome, nil
}

// joinReader shows the events of a join, which come as JSON lines, and keeps its outcome.
type joinReader struct {
	step    *event.Step
	before  int // lines that were shown during earlier attempts
	lines   int // lines read
	outcome *join.Outcome
}

func (h *joinReader) line(text []byte) error {
	e, outcome, err := join.ParseLine(text)
	if err != nil {
		return err
	}
	if outcome != nil {
		h.outcome = outcome
		return nil
	}
	if h.lines++; h.lines > h.before {
		h.show(e)
	}
	return nil
}

// show leaves out lines of kubelet's and containerd's journals: they log errors also in a healthy start. The node's own record has them.
func (h *joinReader) show(e event.Event) {
	switch {
	case join.FromJournal(e.Detail):
	case e.State == event.Started:
		h.step.Progress("%s", e.Phase)
	case join.NamesCause(e.Detail):
		h.step.Progress("%s", e.Detail)
	case e.Detail != "":
		h.step.Progress("%s: %s", e.Phase, e.Detail)
	}
}
