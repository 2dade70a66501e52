// Package etcdadmin administers the etcd of an opened lab: it lists members, removes those that are in the way, saves snapshots and
// restores one. The client, and the rules by which members are judged, are in lab/etcd.
package etcdadmin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8slab/lab/etcd"
	"k8slab/lab/session"
)

// Status is the membership of the lab's etcd.
type Status struct {
	Healthy  bool     `json:"healthy"`
	Quorum   bool     `json:"quorum"` // without one, Members is what one member has stored
	Members  []Member `json:"members"`
	Problems []string `json:"problems,omitempty"`
}

// Member is one member of it.
type Member struct {
	ID        string   `json:"id"`             // hexadecimal, as etcdctl has it
	Name      string   `json:"name,omitempty"` // "" before it has started
	Node      string   `json:"node,omitempty"` // of cluster.yaml, by its peer URL; "" if no node has that
	PeerURL   string   `json:"peerURL"`
	Role      string   `json:"role"` // leader, voter or learner
	Started   bool     `json:"started"`
	Healthy   bool     `json:"healthy"` // it answers with its own ID and knows a leader
	RaftIndex uint64   `json:"raftIndex"`
	DBSize    int64    `json:"dbSize"` // bytes
	Alarms    []string `json:"alarms,omitempty"`
	Progress  string   `json:"progress,omitempty"` // of a learner
	Problem   string   `json:"problem,omitempty"`
}

// MembersBudget bounds Members. It is longer than a status' because without a quorum each endpoint is asked twice, and each silent one
// costs a timeout.
const MembersBudget = 30 * time.Second

// learnerSample is the time between the two samples that show how fast a learner catches up.
const learnerSample = time.Second

// Members lists the members of etcd. It needs no quorum.
func Members(ctx context.Context, s *session.Session, v *session.Admin) (Status, error) {
	first, err := Sample(ctx, v.Etcd.Status)
	if err != nil {
		remembered, localErr := Sample(ctx, v.Etcd.LocalStatus)
		if localErr != nil {
			return Status{}, err
		}
		all := statusOf(s, remembered, remembered)
		all.Healthy, all.Problems = false, append(all.Problems, err.Error())
		return all, nil
	}
	if !slices.ContainsFunc(first.Statuses, func(s etcd.Status) bool { return s.Member.Learner && s.Healthy }) {
		return statusOf(s, first, first), nil
	}
	select {
	case <-ctx.Done():
	case <-time.After(learnerSample):
	}
	second, err := Sample(ctx, v.Etcd.Status)
	return statusOf(s, first, second), err
}

// Sample reads the members' status once.
func Sample(ctx context.Context, read func(context.Context) ([]etcd.Status, error)) (etcd.Sample, error) {
	statuses, err := read(ctx)
	return etcd.Sample{At: time.Now(), Statuses: statuses}, err
}

// statusOf describes the later sample. The earlier one shows how fast learners catch up.
func statusOf(s *session.Session, earlier, later etcd.Sample) Status {
	progress := map[uint64]string{}
	for _, p := range etcd.Learners(earlier, later) {
		if p.Known {
			progress[p.Member.ID] = p.String()
		}
	}
	all := Status{Quorum: etcd.HasQuorum(later.Statuses), Problems: etcd.Problems(later.Statuses)}
	if !all.Quorum {
		all.Problems = append(all.Problems, "etcd has no quorum; when the lost members cannot be started again: labctl etcd snapshot restore --help")
	}
	all.Healthy = len(all.Problems) == 0
	for _, m := range later.Statuses {
		e := Member{
			ID: fmt.Sprintf("%x", m.Member.ID), Name: m.Member.Name, Node: nodeOfPeer(s, m.Member), PeerURL: strings.Join(m.Member.PeerURLs, ","),
			Role: roleOf(m), Started: m.Member.Started, Healthy: m.Healthy, RaftIndex: m.RaftIndex, DBSize: m.DBSize, Alarms: m.Alarms,
			Progress: progress[m.Member.ID],
		}
		if m.Err != nil {
			e.Problem = m.Err.Error()
		}
		all.Members = append(all.Members, e)
	}
	return all
}

func roleOf(s etcd.Status) string {
	switch {
	case s.Member.Learner:
		return "learner"
	case s.Leader:
		return "leader"
	}
	return "voter"
}

func nodeOfPeer(s *session.Session, m etcd.Member) string {
	for _, n := range s.Cluster.Nodes {
		if session.OwnsPeer(n, m) {
			return n.Name
		}
	}
	return ""
}
