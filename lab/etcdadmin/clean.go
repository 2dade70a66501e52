package etcdadmin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8slab/config"
	"k8slab/lab/etcd"
	"k8slab/lab/join"
	"k8slab/lab/machine"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// Verdict is what was decided about an etcd member.
type Verdict struct {
	ID      string      `json:"id"`
	Name    string      `json:"name,omitempty"`
	Node    string      `json:"node,omitempty"`
	PeerURL string      `json:"peerURL"`
	Learner bool        `json:"learner"`
	Action  etcd.Action `json:"action"`
	Removed bool        `json:"removed"` // the member was removed
	Reason  string      `json:"reason"`
}

// Verdicts are the verdicts on the removed members, and then on those that are left.
func Verdicts(removed, left []etcd.Verdict) []Verdict {
	var all []Verdict
	for i, v := range slices.Concat(removed, left) {
		all = append(all, Verdict{
			ID: fmt.Sprintf("%x", v.Member.ID), Name: v.Member.Name, Node: v.Machine, PeerURL: strings.Join(v.Member.PeerURLs, ","),
			Learner: v.Member.Learner, Action: v.Action, Removed: i < len(removed), Reason: v.Reason,
		})
	}
	return all
}

// CleanDryRun says what Clean would do. While another labctl holds the lab's lock, every machine counts as joining.
func CleanDryRun(ctx context.Context, s *session.Session, v *session.Admin) ([]Verdict, error) {
	busy, err := state.Locked(s.Cluster.Name)
	if err != nil {
		return nil, err
	}
	statuses, err := v.Etcd.Status(ctx)
	if err != nil {
		return nil, err
	}
	machines, err := Machines(ctx, s)
	if busy {
		for i := range machines {
			machines[i].Joining = etcd.Yes
		}
	}
	return Verdicts(nil, etcd.Judge(statuses, machines, "")), err
}

// Clean removes the etcd members that are in the way of the joining node, or of any if joiner is "", by the rules of etcd.Judge. It saves a
// snapshot before it removes a voter. The caller holds the lab's lock, so that no other process begins a join meanwhile. A verdict that is
// left may say to wait or to stop.
func Clean(ctx context.Context, s *session.Session, v *session.Admin, joiner string) (removed, left []etcd.Verdict, err error) {
	return v.Etcd.Clean(ctx, etcd.CleanOptions{
		Joiner: joiner, Machines: func(ctx context.Context) ([]etcd.Machine, error) { return Machines(ctx, s) },
		Before: func(ctx context.Context, verdict etcd.Verdict) error {
			return keepVoter(ctx, s, v, verdict.Member, verdict.Machine)
		},
	})
}

// RemoveMember removes the node's etcd member, a voter only after a snapshot.
func RemoveMember(ctx context.Context, s *session.Session, v *session.Admin, n config.Node) error {
	_, err := etcd.Dismiss(ctx, v.Etcd, session.PeerURL(n), func(m etcd.Member) error { return keepVoter(ctx, s, v, m, n.Name) })
	if err != nil {
		return fmt.Errorf("its etcd member cannot leave: %w", err)
	}
	return nil
}

// keepVoter saves a snapshot before a voter, the machine's, is removed.
func keepVoter(ctx context.Context, s *session.Session, v *session.Admin, m etcd.Member, machine string) error {
	if m.Learner {
		return nil
	}
	return KeepSnapshot(ctx, s, v.Etcd, "before-removing-"+machine)
}

// Machines reads the facts of every control plane's machine by which etcd's members are judged.
func Machines(ctx context.Context, s *session.Session) ([]etcd.Machine, error) {
	return session.FromEachNode(s.EveryControlPlane(), func(n config.Node) (etcd.Machine, error) {
		state, err := s.MachineState(ctx, n.Name)
		if err != nil {
			return etcd.Machine{}, err
		}
		m := etcd.Machine{Name: n.Name, PeerURL: session.PeerURL(n)}
		if node := s.Nodes[n.Name]; node != nil && state == machine.Running {
			m.Joining, m.Data = askEtcdMachine(ctx, node)
		} else {
			m.Joining = joiningWithout(state)
			if state == machine.Absent { // its disk went with it
				m.Data = etcd.No
			}
		}
		return m, nil
	})
}

// joiningWithout tells whether a join can run on a machine that was not asked.
func joiningWithout(state machine.State) etcd.Fact {
	switch state {
	case machine.Absent, machine.Off, machine.Crashed:
		return etcd.No
	}
	return etcd.Unknown // a join on a paused machine goes on when it is resumed
}

// askEtcdMachine asks a machine whether a join runs on it, and whether it has an etcd member's data.
func askEtcdMachine(ctx context.Context, n session.Reader) (joining, data etcd.Fact) {
	if out, err := n.Read(ctx, "systemctl", "show", "--property", "ActiveState", "--value", join.JoinUnit); err == nil {
		switch strings.TrimSpace(out) {
		case "":
		case "inactive", "failed":
			joining = etcd.No
		default:
			joining = etcd.Yes
		}
	}
	// Not `test -e`: a missing file and a failed command would have the same exit status.
	if out, err := n.Read(ctx, "find", "/var/lib", "-maxdepth", "2", "-path", session.EtcdData+"/member"); err == nil {
		data = etcd.No
		if strings.TrimSpace(out) != "" {
			data = etcd.Yes
		}
	}
	return joining, data
}
