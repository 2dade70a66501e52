package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/event"
	"k8slab/lab/machine"
	"k8slab/lab/wait"
)

// Restore says what to make a new etcd cluster of one member out of.
type Restore struct {
	Node  string // the control plane that gets it
	File  string // a snapshot on this computer; "" for what the node's own etcd has stored
	Force bool   // also when etcd has a quorum, or may have one
}

// restoreBudget bounds a restore as a whole. A snapshot of etcd's largest size takes minutes to copy.
const restoreBudget = 10 * time.Minute

// SnapshotRestore replaces a lost etcd cluster by a new one of a single member. The API servers and etcd members of all control planes that
// answer are stopped first, so that no one meets the old data and the new at once; those of the others stay stopped. The node's earlier
// data is moved aside and kept. The other control planes have no part in the new cluster: `up` resets them and joins them again. It refuses
// while etcd has a quorum, and while a machine that does not answer may be part of one. Interrupted, it is run again.
func (l *Lab) SnapshotRestore(ctx context.Context, r Restore) error {
	if !l.state.exists() {
		return ErrNotUp
	}
	n, ok := l.cluster.Node(r.Node)
	if !ok || n.Role != config.ControlPlane || n.Onboard {
		return fmt.Errorf("%q is not a control plane of the cluster; cluster.yaml has %s", r.Node, namesOf(l.cluster.ControlPlanes()))
	}
	release, err := lock(l.cluster.Name, "labctl etcd snapshot restore")
	if err != nil {
		return err
	}
	defer release()
	var content io.Reader
	if r.File != "" {
		f, err := checkedSnapshot(r.File)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		content = f
	}
	if err := l.open(); err != nil {
		return err
	}
	step := l.events.Start(n.Name, "etcd restore", restoreBudget)
	done, err := l.restore(ctx, n, r, content, step)
	if err != nil {
		return step.End(err)
	}
	step.EndWith(done)
	return nil
}

func (l *Lab) restore(ctx context.Context, n config.Node, r Restore, content io.Reader, step *event.Step) (done string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, restoreBudget, fmt.Errorf("its %s budget ran out", restoreBudget))
	defer cancel()
	others, err := l.otherControlPlanes(ctx, n)
	if err != nil {
		return "", err
	}
	if !r.Force {
		quorum, err := l.etcdQuorum(ctx, n)
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
		if err != nil { // the old cluster goes on as it was
			err = errors.Join(err, together(parked, func(o config.Node) error { return unparkAfter(ctx, l.nodes[o.Name]) }))
		}
	}()
	for _, o := range others {
		if o.answers {
			parked = append(parked, o.node)
		}
	}
	err = together(parked, func(o config.Node) error {
		if err := park(ctx, l.nodes[o.Name], l.pace()); err != nil {
			return err
		}
		return runOn(ctx, l.nodes[o.Name], "systemctl", "start", "kubelet") // its other pods go on
	})
	if err != nil {
		return "", err
	}
	kept, err := restoreOn(ctx, l.nodes[n.Name], restoration{
		content: content, stamp: time.Now().UTC().Format(stampFormat), pace: l.pace(),
		replaced: func() error { parked = nil; return l.state.write(restoredFile, []byte(n.Name)) },
		progress: func(text string) { step.Progress("%s", text) },
	})
	if err != nil {
		return "", err
	}
	step.Progress("waiting for etcd and the API server")
	if err := l.awaitRestored(ctx, n); err != nil {
		return "", fmt.Errorf("%w; the earlier data is kept on %s in %s\nnext: labctl logs %s --unit kubelet", err, n.Name, kept, n.Name)
	}
	return restoredText(n, r, kept, others), nil
}

func restoredText(n config.Node, r Restore, kept string, others []otherControlPlane) string {
	source := r.File
	if source == "" {
		source = "its own data"
	}
	text := fmt.Sprintf("etcd of %s is a new cluster of one, from %s", n.Name, source)
	if kept != "" {
		text += "; its earlier data is kept there in " + kept
	}
	var names []config.Node
	for _, o := range others {
		names = append(names, o.node)
	}
	if len(names) > 0 {
		text += fmt.Sprintf("\nnext: labctl up resets %s and joins them again", namesOf(names))
	}
	return text
}

// awaitRestored waits until the new etcd votes and the API server serves out of it.
func (l *Lab) awaitRestored(ctx context.Context, n config.Node) error {
	v, err := l.openView(ctx, n, l.cluster.ControlPlanes())
	if err != nil {
		return err
	}
	defer v.close()
	budget := time.Duration(l.cluster.Tuning.CPStabilizeTimeoutSeconds) * time.Second
	if err := wait.For(ctx, "etcd of "+n.Name, budget, l.pace(), v.etcd.Healthy); err != nil {
		return err
	}
	return wait.For(ctx, "the API server at "+l.endpoint(), budget, l.pace(), v.kube.Ready)
}

// otherControlPlane is one that is not restored.
type otherControlPlane struct {
	node    config.Node
	machine machine.State
	answers bool // over SSH
}

func (l *Lab) otherControlPlanes(ctx context.Context, except config.Node) ([]otherControlPlane, error) {
	var others []otherControlPlane
	for _, n := range l.cluster.ControlPlanes() {
		if n.Name == except.Name {
			continue
		}
		state, err := l.machines.State(ctx, n.Name)
		if err != nil {
			return nil, err
		}
		o := otherControlPlane{node: n, machine: state}
		if state == machine.Running {
			one, cancel := context.WithTimeout(ctx, daemonBudget)
			_, err = l.nodes[n.Name].Read(one, "true")
			cancel()
			o.answers = err == nil
		}
		others = append(others, o)
	}
	return others, nil
}

// etcdQuorum asks whether etcd can still agree on anything: a list of its members takes a quorum.
func (l *Lab) etcdQuorum(ctx context.Context, n config.Node) (bool, error) {
	v, err := l.openView(ctx, n, l.cluster.ControlPlanes())
	if err != nil {
		return false, err
	}
	defer v.close()
	_, err = v.etcd.Members(ctx)
	return err == nil, ctx.Err()
}

// refuseRestore returns why a restore would or could destroy an etcd that works.
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

func namesOf(nodes []config.Node) string {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return strings.Join(names, ", ")
}
