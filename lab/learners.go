package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8slab/config"
	"k8slab/lab/etcd"
	"k8slab/lab/join"
	"k8slab/lab/machine"
)

// MemberVerdict is what was decided about an etcd member.
type MemberVerdict struct {
	ID      string      `json:"id"`
	Name    string      `json:"name,omitempty"`
	Node    string      `json:"node,omitempty"`
	PeerURL string      `json:"peerURL"`
	Learner bool        `json:"learner"`
	Action  etcd.Action `json:"action"`
	Removed bool        `json:"removed"` // it was done
	Reason  string      `json:"reason"`
}

func memberVerdicts(removed, left []etcd.Verdict) []MemberVerdict {
	var all []MemberVerdict
	for i, v := range slices.Concat(removed, left) {
		all = append(all, MemberVerdict{
			ID: fmt.Sprintf("%x", v.Member.ID), Name: v.Member.Name, Node: v.Machine, PeerURL: strings.Join(v.Member.PeerURLs, ","),
			Learner: v.Member.Learner, Action: v.Action, Removed: i < len(removed), Reason: v.Reason,
		})
	}
	return all
}

// CleanLearners removes the learners that no join will promote, or with dryRun only says what it would do. It returns its verdict on every
// member, also with an error.
func (l *Lab) CleanLearners(ctx context.Context, dryRun bool) ([]MemberVerdict, error) {
	if !l.state.exists() {
		return nil, ErrNotUp
	}
	if !dryRun {
		release, err := lock(l.cluster.Name, "labctl etcd clean-learners")
		if err != nil {
			return nil, err
		}
		defer release()
	}
	v, err := l.openAny(ctx)
	if err != nil {
		return nil, err
	}
	defer v.close()
	if !dryRun {
		removed, left, err := l.cleanMembers(ctx, v, "")
		return memberVerdicts(removed, left), err
	}
	busy, err := locked(l.cluster.Name)
	if err != nil {
		return nil, err
	}
	statuses, err := v.etcd.Status(ctx)
	if err != nil {
		return nil, err
	}
	machines, err := l.etcdMachines(ctx)
	if busy {
		for i := range machines {
			machines[i].Joining = etcd.Yes // what has the lab may be about to start one
		}
	}
	return memberVerdicts(nil, etcd.Judge(statuses, machines, "")), err
}

// cleanMembers removes the etcd members that are in the way of the joiner, "" for nobody's, by the rules of etcd.Judge. The caller has the
// lab's lock, so that no other process begins a join meanwhile. A snapshot is saved before a voter is removed. What is left may mean to
// wait or to stop.
func (l *Lab) cleanMembers(ctx context.Context, v *view, joiner string) (removed, left []etcd.Verdict, err error) {
	return v.etcd.Clean(ctx, etcd.CleanOptions{
		Joiner: joiner, Machines: l.etcdMachines,
		Before: func(ctx context.Context, verdict etcd.Verdict) error {
			if verdict.Member.Learner {
				return nil
			}
			return l.keepSnapshot(ctx, v.etcd, "before-removing-"+verdict.Machine)
		},
	})
}

// etcdMachines says of every control plane of cluster.yaml what etcd's members are judged by.
func (l *Lab) etcdMachines(ctx context.Context) ([]etcd.Machine, error) {
	var nodes []config.Node
	for _, n := range l.cluster.Nodes {
		if n.Role == config.ControlPlane {
			nodes = append(nodes, n)
		}
	}
	machines := make([]etcd.Machine, len(nodes))
	err := together(nodes, func(n config.Node) error {
		ctx, cancel := context.WithTimeoutCause(ctx, daemonBudget, errDaemonSilent)
		defer cancel()
		state, err := l.machines.State(ctx, n.Name)
		if err != nil {
			return err
		}
		m := etcd.Machine{Name: n.Name, PeerURL: peerURL(n)}
		if node := l.nodes[n.Name]; node != nil && state == machine.Running {
			m.Joining, m.Data = askEtcdMachine(ctx, node)
		} else {
			m.Joining = joiningWithout(state)
		}
		machines[slices.IndexFunc(nodes, func(o config.Node) bool { return o.Name == n.Name })] = m
		return nil
	})
	return machines, err
}

// joiningWithout tells whether a join can be at work on a machine that was not asked.
func joiningWithout(state machine.State) etcd.Fact {
	switch state {
	case machine.Absent, machine.Off, machine.Crashed:
		return etcd.No
	}
	return etcd.Unknown // a paused one goes on where it was
}

// reader runs a command that changes nothing.
type reader interface {
	Read(ctx context.Context, argv ...string) (string, error)
}

// askEtcdMachine asks a machine whether kubeadm is at work on it and whether it has an etcd member's data.
func askEtcdMachine(ctx context.Context, n reader) (joining, data etcd.Fact) {
	if out, err := n.Read(ctx, "systemctl", "show", "--property", "ActiveState", "--value", join.JoinUnit); err == nil {
		switch strings.TrimSpace(out) {
		case "":
		case "inactive", "failed":
			joining = etcd.No
		default:
			joining = etcd.Yes
		}
	}
	// Not a test of the file: its status would be that of a failed command too.
	if out, err := n.Read(ctx, "find", "/var/lib", "-maxdepth", "2", "-path", etcdData+"/member"); err == nil {
		data = etcd.No
		if strings.TrimSpace(out) != "" {
			data = etcd.Yes
		}
	}
	return joining, data
}
