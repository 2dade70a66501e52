package lab

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"k8slab/config"
)

// member is one of the world's etcd.
type member struct {
	id      uint64
	node    string // whose peer URL it has; a name that is no node's is a stranger's
	learner bool
}

// quorum tells whether enough voters run to agree on anything. The caller has the lock.
func (w *world) quorum() bool {
	voters, alive := 0, 0
	for _, m := range w.members {
		if m.learner {
			continue
		}
		voters++
		if w.runs(m) {
			alive++
		}
	}
	return voters > 0 && alive > voters/2
}

func (w *world) runs(m *member) bool {
	b := w.machines[m.node]
	return b != nil && b.answers() == nil && b.voter && b.facts.Joined
}

// addMember adds the node's member. The caller has the lock.
func (w *world) addMember(node string, learner bool) *member {
	id := uint64(1)
	for _, m := range w.members {
		id = max(id, m.id+1)
	}
	m := &member{id: id, node: node, learner: learner}
	w.members = append(w.members, m)
	return m
}

func (w *world) memberOf(node string) *member {
	for _, m := range w.members {
		if m.node == node {
			return m
		}
	}
	return nil
}

// serveEtcd is the etcd of a control plane.
func (w *world) serveEtcd(b *box) {
	if b.node.Role != config.ControlPlane {
		return
	}
	b.etcd = newPipes()
	b.server = grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{w.pki.pair}, CurvePreferences: []tls.CurveID{tls.X25519}})))
	e := &etcdServer{w: w, node: b.node.Name}
	pb.RegisterClusterServer(b.server, e)
	pb.RegisterMaintenanceServer(b.server, e)
	pb.RegisterKVServer(b.server, e)
	go func() { _ = b.server.Serve(b.etcd) }()
	w.ended = append(w.ended, b.server.Stop)
}

type etcdServer struct {
	pb.UnimplementedClusterServer
	pb.UnimplementedMaintenanceServer
	pb.UnimplementedKVServer
	w    *world
	node string
}

func (e *etcdServer) peer(name string) string {
	if b := e.w.machines[name]; b != nil {
		return b.node.IP.String()
	}
	return "192.0.2.42"
}

func (e *etcdServer) MemberList(_ context.Context, r *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	if r.Linearizable && !e.w.quorum() {
		return nil, rpctypes.ErrGRPCNoLeader
	}
	list := &pb.MemberListResponse{Header: &pb.ResponseHeader{}}
	for _, m := range e.w.members {
		one := &pb.Member{ID: m.id, PeerURLs: []string{"https://" + e.peer(m.node) + ":2380"}, IsLearner: m.learner}
		if e.w.runs(m) || !m.learner {
			one.Name, one.ClientURLs = m.node, []string{"https://" + e.peer(m.node) + ":2379"}
		}
		list.Members = append(list.Members, one)
	}
	return list, nil
}

func (e *etcdServer) MemberRemove(_ context.Context, r *pb.MemberRemoveRequest) (*pb.MemberRemoveResponse, error) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	if err := e.w.called(fmt.Sprintf("etcd: remove %d", r.ID)); err != nil {
		return nil, err
	}
	before := len(e.w.members)
	e.w.members = slices.DeleteFunc(e.w.members, func(m *member) bool { return m.id == r.ID })
	if len(e.w.members) == before {
		return nil, rpctypes.ErrGRPCMemberNotFound
	}
	return &pb.MemberRemoveResponse{Header: &pb.ResponseHeader{}}, nil
}

func (e *etcdServer) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	m := e.w.memberOf(e.node)
	if m == nil {
		return nil, rpctypes.ErrGRPCStopped
	}
	leader := uint64(0)
	for _, l := range e.w.members {
		if e.w.quorum() && !l.learner && e.w.runs(l) {
			leader = l.id
			break
		}
	}
	var alarms []string
	if full := e.w.memberOf(e.w.cramped); full != nil {
		alarms = []string{fmt.Sprintf("memberID:%d alarm:NOSPACE ", full.id)}
	}
	return &pb.StatusResponse{Header: &pb.ResponseHeader{MemberId: m.id, Revision: 7}, Errors: alarms, Leader: leader, RaftIndex: 9, RaftAppliedIndex: 9, DbSize: 4096, Version: "3.6.8", IsLearner: m.learner}, nil
}

func (e *etcdServer) Snapshot(_ *pb.SnapshotRequest, out pb.Maintenance_SnapshotServer) error {
	data := bytes.Repeat([]byte("0123456789abcdef"), 512/16)
	sum := sha256.Sum256(data)
	return out.Send(&pb.SnapshotResponse{Blob: append(data, sum[:]...)})
}

func (e *etcdServer) Compact(context.Context, *pb.CompactionRequest) (*pb.CompactionResponse, error) {
	return &pb.CompactionResponse{Header: &pb.ResponseHeader{}}, nil
}

func (e *etcdServer) Defragment(context.Context, *pb.DefragmentRequest) (*pb.DefragmentResponse, error) {
	return &pb.DefragmentResponse{Header: &pb.ResponseHeader{}}, nil
}

// Alarm takes back that of the member.
func (e *etcdServer) Alarm(_ context.Context, r *pb.AlarmRequest) (*pb.AlarmResponse, error) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	if m := e.w.memberOf(e.w.cramped); m != nil && m.id == r.MemberID && r.Action == pb.AlarmRequest_DEACTIVATE {
		e.w.cramped = ""
	}
	return &pb.AlarmResponse{Header: &pb.ResponseHeader{}}, nil
}
