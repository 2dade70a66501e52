package etcdadmin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/event"
	"k8slab/lab/machine"
	"k8slab/lab/session"
	"k8slab/lab/state"
	"k8slab/lab/wait"
)

// Restore says what to restore, and where.
type Restore struct {
	Node  string // the control plane that becomes the only etcd member
	File  string // a snapshot on this computer; "" for the node's own data
	Force bool   // restore even if etcd has a quorum, or may have one
}

// Check refuses a node that is no control plane of the lab.
func (r Restore) Check(l state.Lab) error {
	if n, ok := l.Cluster.Node(r.Node); !ok || n.Role != config.ControlPlane || n.Onboard {
		return fmt.Errorf("%q is not a control plane of the cluster; cluster.yaml has %s", r.Node, session.NamesOf(l.Cluster.ControlPlanes()))
	}
	return nil
}

// restoreBudget bounds a restore as a whole. A snapshot of etcd's largest size takes minutes to copy.
const restoreBudget = 10 * time.Minute

// RestoreSnapshot replaces a lost etcd cluster by a new one with a single member. It first stops the API servers and etcd members of all
// control planes that answer, so that no client sees the old data and the new at once. On the other control planes they stay stopped: `up`
// resets these and joins them again. The node's earlier data is moved aside and kept. It refuses while etcd has a quorum, and while a
// machine that does not answer may be part of one. After an interruption it can be run again.
func RestoreSnapshot(ctx context.Context, s *session.Session, r Restore) error {
	n, _ := s.Cluster.Node(r.Node)
	var content io.Reader
	if r.File != "" {
		f, err := CheckedSnapshot(r.File)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		content = f
	}
	step := s.Events.Start(n.Name, "etcd restore", restoreBudget)
	done, err := restore(ctx, s, n, r, content, step)
	if err != nil {
		return step.End(err)
	}
	step.EndWith(done)
	return nil
}

func restore(ctx context.Context, s *session.Session, n config.Node, r Restore, content io.Reader, step *event.Step) (done string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, restoreBudget, fmt.Errorf("its %s budget ran out", restoreBudget))
	defer cancel()
	others, err := otherControlPlanes(ctx, s, n)
	if err != nil {
		return "", err
	}
	if !r.Force {
		quorum, err := etcdQuorum(ctx, s, n)
		if err == nil {
			err = refuseRestore(quorum, others)
		}
		if err != nil {
			return "", err
		}
	}
	step.Progress("stopping API servers and etcd")
	var parked []config.Node
	defer func() {
		if err != nil { // start the old cluster again
			err = errors.Join(err, session.ForEachNode(parked, func(o config.Node) error { return unparkAfter(ctx, s.Nodes[o.Name]) }))
		}
	}()
	for _, o := range others {
		if o.answers {
			parked = append(parked, o.node)
		}
	}
	err = session.ForEachNode(parked, func(o config.Node) error {
		if err := Park(ctx, s.Nodes[o.Name], s.Pace()); err != nil {
			return err
		}
		return session.Do(ctx, s.Nodes[o.Name], "systemctl", "start", "kubelet") // for its other pods
	})
	if err != nil {
		return "", err
	}
	kept, err := restoreOn(ctx, s.Nodes[n.Name], restoration{
		content: content, stamp: time.Now().UTC().Format(StampFormat), pace: s.Pace(),
		replaced: func() error { parked = nil; return s.Restored(n) },
		progress: func(text string) { step.Progress("%s", text) },
	})
	if err != nil {
		return "", err
	}
	step.Progress("waiting for etcd and the API server")
	if err := awaitRestored(ctx, s, n); err != nil {
		return "", fmt.Errorf("%w; the earlier data is kept on %s in %s\nnext: labctl logs %s --unit kubelet", err, n.Name, kept, n.Name)
	}
	return restoredText(n, r, kept, others), nil
}

func restoredText(n config.Node, r Restore, kept string, others []otherControlPlane) string {
	text := fmt.Sprintf("etcd of %s is a new cluster of one, from %s", n.Name, cmp.Or(r.File, "its own data"))
	if kept != "" {
		text += "; its earlier data is kept there in " + kept
	}
	var names []config.Node
	for _, o := range others {
		names = append(names, o.node)
	}
	if len(names) > 0 {
		text += fmt.Sprintf("\nnext: labctl up resets %s and joins them again", session.NamesOf(names))
	}
	return text
}

// awaitRestored waits until the new etcd is healthy and the API server is ready.
func awaitRestored(ctx context.Context, s *session.Session, n config.Node) error {
	v, err := s.OpenAdmin(ctx, n, s.Cluster.ControlPlanes())
	if err != nil {
		return err
	}
	defer v.Close()
	budget := s.StabilizeBudget()
	if err := wait.For(ctx, "etcd of "+n.Name, budget, s.Pace(), v.Etcd.Healthy); err != nil {
		return err
	}
	return wait.For(ctx, "the API server at "+s.Endpoint(), budget, s.Pace(), v.Kube.Ready)
}

// otherControlPlane is one that is not restored.
type otherControlPlane struct {
	node    config.Node
	machine machine.State
	answers bool // over SSH
}

func otherControlPlanes(ctx context.Context, s *session.Session, except config.Node) ([]otherControlPlane, error) {
	var others []otherControlPlane
	for _, n := range s.Cluster.ControlPlanes() {
		if n.Name == except.Name {
			continue
		}
		state, err := s.Machines.State(ctx, n.Name)
		if err != nil {
			return nil, err
		}
		o := otherControlPlane{node: n, machine: state}
		if state == machine.Running {
			one, cancel := context.WithTimeout(ctx, session.DaemonBudget)
			_, err = s.Nodes[n.Name].Read(one, "true")
			cancel()
			o.answers = err == nil
		}
		others = append(others, o)
	}
	return others, nil
}

// etcdQuorum tells whether etcd has a quorum: without one, it does not list its members.
func etcdQuorum(ctx context.Context, s *session.Session, n config.Node) (bool, error) {
	v, err := s.OpenAdmin(ctx, n, s.Cluster.ControlPlanes())
	if err != nil {
		return false, err
	}
	defer v.Close()
	_, err = v.Etcd.Members(ctx)
	return err == nil, ctx.Err()
}

// refuseRestore says why a restore would, or could, destroy a working etcd.
func refuseRestore(quorum bool, others []otherControlPlane) error {
	if quorum {
		return errors.New("refused: etcd has a quorum, and a restore would lose what was written since the snapshot; --force does it anyway")
	}
	var silent []string
	for _, o := range others {
		if !o.answers && (o.machine == machine.Running || o.machine == machine.Paused) {
			silent = append(silent, fmt.Sprintf("%s (%s)", o.node.Name, o.machine))
		}
	}
	if len(silent) > 0 {
		return fmt.Errorf("refused: %s cannot be asked, and may have a quorum of etcd without this node or come back with one: "+
			"get them to answer, or end their machines; --force does it anyway", strings.Join(silent, ", "))
	}
	return nil
}
