package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

var leaderLostDuringJoin = Fault{
	Name:    "leader-lost-during-join",
	Story:   "etcd's leader dies while a control plane's learner is catching up: only a leader can promote it (control-plane-join-failures)",
	Roles:   controlPlane,
	Alone:   "kubeadm joins after 18 s",
	Applies: threeControlPlanes,
	Outside: true,
	Inject: func(ctx context.Context, t Target) error {
		leader, term, err := t.etcdLeader(ctx)
		if err != nil {
			return err
		}
		if err := t.etcdctl(ctx, "put", termKey, strconv.FormatUint(term, 10)); err != nil {
			return err
		}
		at := t
		at.Node = leader
		err = at.run(ctx, append([]string{"systemd-run", "--quiet", "--collect", "--unit", etcdKiller, "sh", "-c",
			ownEtcdctl + `until etcdctl "$@" member list | grep -q ', true$'; do sleep 0.1; done; pkill -KILL -x etcd`, "sh"}, etcdFlags("127.0.0.1")...)...)
		if err != nil {
			return err
		}
		_, _ = t.Labctl(ctx, "join", t.Node) // whether it got over it, the diagnosis and the recovery show
		return nil
	},
	Effect: func(ctx context.Context, t Target) error {
		before, err := t.etcd(ctx, "get", "--print-value-only", termKey)
		if err != nil {
			return err
		}
		leader, term, err := t.etcdLeader(ctx)
		if was := strings.TrimSpace(before); err == nil && was == strconv.FormatUint(term, 10) {
			err = fmt.Errorf("etcd's leader is %s, of the same term %s as before", leader, was)
		}
		return err
	},
	Recover: nodeVerb("join"),
	May:     []Change{Quorum}, // of two voters neither can be missed
	Restore: func(ctx context.Context, t Target) error {
		for _, m := range t.Members {
			t.Node = m.Name
			if err := stopUnit(etcdKiller)(ctx, t); err != nil {
				return err
			}
		}
		return t.etcdctl(ctx, "del", termKey)
	},
}

const (
	etcdKiller = "fault-kill-etcd"
	termKey    = "/k8slab/fault-term" // the raft term before the fault
)

// etcdLeader is the control plane with etcd's leader, and the Raft term.
func (t Target) etcdLeader(ctx context.Context) (name string, term uint64, err error) {
	out, err := t.etcd(ctx, "endpoint", "status", "--cluster", "--write-out=json")
	var members []struct {
		Endpoint string
		Status   struct {
			Header struct {
				MemberID uint64 `json:"member_id"`
				RaftTerm uint64 `json:"raft_term"`
			}
			Leader uint64
		}
	}
	if err == nil {
		err = json.Unmarshal([]byte(out), &members)
	}
	for _, m := range members {
		at, bad := url.Parse(m.Endpoint)
		if bad != nil || m.Status.Leader == 0 || m.Status.Leader != m.Status.Header.MemberID {
			continue
		}
		for _, member := range t.Members {
			if member.Address == at.Hostname() {
				return member.Name, m.Status.Header.RaftTerm, nil
			}
		}
	}
	if err == nil {
		err = errors.New("no control plane of the lab is etcd's leader")
	}
	return "", 0, err
}
