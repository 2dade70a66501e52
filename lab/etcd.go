package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8slab/lab/etcd"
)

// EtcdStatus is the membership of the lab's etcd.
type EtcdStatus struct {
	Healthy  bool         `json:"healthy"`
	Quorum   bool         `json:"quorum"` // without it the members are those that one of them remembers
	Members  []EtcdMember `json:"members"`
	Problems []string     `json:"problems,omitempty"`
}

// EtcdMember is one member of it.
type EtcdMember struct {
	ID        string   `json:"id"`             // hexadecimal, as etcdctl has it
	Name      string   `json:"name,omitempty"` // none before it has started
	Node      string   `json:"node,omitempty"` // of cluster.yaml, by its peer URL; none for a stranger
	PeerURL   string   `json:"peerURL"`
	Role      string   `json:"role"` // leader, voter or learner
	Started   bool     `json:"started"`
	Healthy   bool     `json:"healthy"` // it answers as itself and knows a leader
	RaftIndex uint64   `json:"raftIndex"`
	DBSize    int64    `json:"dbSize"` // bytes
	Alarms    []string `json:"alarms,omitempty"`
	Progress  string   `json:"progress,omitempty"` // a learner's
	Problem   string   `json:"problem,omitempty"`
}

// membersBudget bounds a look at etcd's members. It is longer than a status' because without a quorum each endpoint is asked twice, and
// each silent one costs its time.
const membersBudget = 30 * time.Second

// learnerSample is the time between the two looks that tell how fast a learner catches up.
const learnerSample = time.Second

// EtcdMembers looks at the members of etcd. It changes nothing, and needs no quorum.
func (l *Lab) EtcdMembers(ctx context.Context) (EtcdStatus, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, membersBudget, errors.New("no answer within 30s"))
	defer cancel()
	v, err := l.openAny(ctx)
	if err != nil {
		return EtcdStatus{}, err
	}
	defer v.close()
	first, err := sample(ctx, v.etcd.Status)
	if err != nil {
		remembered, localErr := sample(ctx, v.etcd.LocalStatus)
		if localErr != nil {
			return EtcdStatus{}, err
		}
		s := l.etcdStatus(remembered, remembered)
		s.Healthy, s.Problems = false, append(s.Problems, err.Error())
		return s, nil
	}
	if !slices.ContainsFunc(first.Statuses, func(s etcd.Status) bool { return s.Member.Learner && s.Healthy }) {
		return l.etcdStatus(first, first), nil
	}
	select {
	case <-ctx.Done():
	case <-time.After(learnerSample):
	}
	second, err := sample(ctx, v.etcd.Status)
	return l.etcdStatus(first, second), err
}

func sample(ctx context.Context, look func(context.Context) ([]etcd.Status, error)) (etcd.Sample, error) {
	statuses, err := look(ctx)
	return etcd.Sample{At: time.Now(), Statuses: statuses}, err
}

// etcdStatus describes the later sample; the earlier tells how fast learners catch up.
func (l *Lab) etcdStatus(earlier, later etcd.Sample) EtcdStatus {
	progress := map[uint64]string{}
	for _, p := range etcd.Learners(earlier, later) {
		if p.Known {
			progress[p.Member.ID] = p.String()
		}
	}
	s := EtcdStatus{Quorum: etcd.HasQuorum(later.Statuses), Problems: etcd.Problems(later.Statuses)}
	if !s.Quorum {
		s.Problems = append(s.Problems, "etcd has no quorum; when the lost members cannot be started again: labctl etcd snapshot restore --help")
	}
	s.Healthy = len(s.Problems) == 0
	for _, m := range later.Statuses {
		e := EtcdMember{
			ID: fmt.Sprintf("%x", m.Member.ID), Name: m.Member.Name, Node: l.nodeOfPeer(m.Member), PeerURL: strings.Join(m.Member.PeerURLs, ","),
			Role: roleOf(m), Started: m.Member.Started, Healthy: m.Healthy, RaftIndex: m.RaftIndex, DBSize: m.DBSize, Alarms: m.Alarms,
			Progress: progress[m.Member.ID],
		}
		if m.Err != nil {
			e.Problem = m.Err.Error()
		}
		s.Members = append(s.Members, e)
	}
	return s
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

func (l *Lab) nodeOfPeer(m etcd.Member) string {
	for _, n := range l.cluster.Nodes {
		if ownsPeer(n, m) {
			return n.Name
		}
	}
	return ""
}

// openAny opens a lab that is up, and its cluster through the first control plane that answers.
func (l *Lab) openAny(ctx context.Context) (*view, error) {
	if err := l.opened(); err != nil {
		return nil, err
	}
	return l.anyView(ctx)
}
