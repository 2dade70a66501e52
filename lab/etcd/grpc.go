package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// grpcRemote is the remote that speaks to real members. Each call has its own connection.
type grpcRemote struct {
	tls  *tls.Config
	dial DialFunc
}

func newGRPC(cfg Config) (*grpcRemote, error) {
	if len(cfg.Endpoints) == 0 {
		return nil, errors.New("no endpoints")
	}
	for _, endpoint := range cfg.Endpoints {
		if err := checkEndpoint(endpoint); err != nil {
			return nil, err
		}
	}
	if cfg.Dial == nil {
		return nil, errors.New("no dial function")
	}
	pair, err := tls.X509KeyPair(cfg.Cert, cfg.Key)
	if err != nil {
		return nil, fmt.Errorf("read client certificate: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(cfg.CA) {
		return nil, errors.New("read ca certificate: no certificate found")
	}
	return &grpcRemote{
		// No server name: each connection is verified against its endpoint's host.
		tls:  &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		dial: cfg.Dial,
	}, nil
}

// checkEndpoint lets only https through: the client would take other schemes as leave to speak without TLS or to local sockets.
func checkEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil {
		return fmt.Errorf("endpoint: %w", err)
	}
	if u.Scheme != "https" || u.Port() == "" {
		return fmt.Errorf("endpoint %q is not https://host:port", endpoint)
	}
	return nil
}

// ask calls a function with a connection to one endpoint. The client's own methods would wait for a connection that fails until the time is
// up, which hides why it fails, and would open a second one to ask for a status.
func (r *grpcRemote) ask(ctx context.Context, endpoint string, do func(*grpc.ClientConn) error) error {
	if err := checkEndpoint(endpoint); err != nil { // a member's URL comes from the member
		return err
	}
	client, err := clientv3.New(clientv3.Config{
		Context:   ctx,
		Endpoints: []string{endpoint},
		TLS:       r.tls,
		Logger:    zap.NewNop(),
		// One attempt: repeated ones would hide the cause behind a timeout.
		MaxUnaryRetries: 1,
		DialOptions: []grpc.DialOption{
			grpc.WithNoProxy(),
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				return r.dial(ctx, "tcp", address)
			}),
		},
	})
	if err != nil {
		return err
	}
	defer client.Close()
	return clientv3.ContextError(ctx, do(client.ActiveConnection()))
}

func (r *grpcRemote) members(ctx context.Context, endpoint string, local bool) (members []Member, err error) {
	err = r.ask(ctx, endpoint, func(conn *grpc.ClientConn) error {
		list, err := pb.NewClusterClient(conn).MemberList(ctx, &pb.MemberListRequest{Linearizable: !local})
		if err != nil {
			return err
		}
		for _, m := range list.Members {
			members = append(members, Member{
				ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs,
				Learner: m.IsLearner, Started: m.Name != "",
			})
		}
		return nil
	})
	if errors.Is(err, rpctypes.ErrLeaderChanged) {
		err = errLeaderChanged
	}
	return members, err
}

func (r *grpcRemote) status(ctx context.Context, endpoint string) (a answer, err error) {
	err = r.ask(ctx, endpoint, func(conn *grpc.ClientConn) error {
		s, err := pb.NewMaintenanceClient(conn).Status(ctx, &pb.StatusRequest{})
		if err != nil {
			return err
		}
		a = answer{
			id: s.Header.GetMemberId(), leader: s.Leader, learner: s.IsLearner,
			index: s.RaftIndex, applied: s.RaftAppliedIndex, term: s.RaftTerm,
			dbSize: s.DbSize, revision: s.Header.GetRevision(), version: s.Version, errors: trimmed(s.Errors),
		}
		return nil
	})
	return a, err
}

func (r *grpcRemote) remove(ctx context.Context, endpoint string, id uint64) error {
	err := r.ask(ctx, endpoint, func(conn *grpc.ClientConn) error {
		_, err := pb.NewClusterClient(conn).MemberRemove(ctx, &pb.MemberRemoveRequest{ID: id})
		return err
	})
	switch {
	case errors.Is(err, rpctypes.ErrMemberNotFound):
		return errNoMember
	case errors.Is(err, rpctypes.ErrUnhealthy):
		return errUnsettled
	}
	return err
}

func (r *grpcRemote) lead(ctx context.Context, endpoint string, to uint64) error {
	return r.ask(ctx, endpoint, func(conn *grpc.ClientConn) error {
		_, err := pb.NewMaintenanceClient(conn).MoveLeader(ctx, &pb.MoveLeaderRequest{TargetID: to})
		return err
	})
}

// snapshot copies what the member sends. The client's own method would log to a logger that it has not got.
func (r *grpcRemote) snapshot(ctx context.Context, endpoint string, w io.Writer) error {
	return r.ask(ctx, endpoint, func(conn *grpc.ClientConn) error {
		stream, err := pb.NewMaintenanceClient(conn).Snapshot(ctx, &pb.SnapshotRequest{})
		if err != nil {
			return err
		}
		for {
			part, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if _, err := w.Write(part.Blob); err != nil {
				return err
			}
		}
	})
}

func (r *grpcRemote) compact(ctx context.Context, endpoint string) error {
	err := r.ask(ctx, endpoint, func(conn *grpc.ClientConn) error {
		s, err := pb.NewMaintenanceClient(conn).Status(ctx, &pb.StatusRequest{})
		if err != nil {
			return err
		}
		_, err = pb.NewKVClient(conn).Compact(ctx, &pb.CompactionRequest{Revision: s.Header.GetRevision(), Physical: true})
		return err
	})
	if errors.Is(err, rpctypes.ErrCompacted) {
		return nil
	}
	return err
}

func (r *grpcRemote) defragment(ctx context.Context, endpoint string) error {
	return r.ask(ctx, endpoint, func(conn *grpc.ClientConn) error {
		_, err := pb.NewMaintenanceClient(conn).Defragment(ctx, &pb.DefragmentRequest{})
		return err
	})
}

func (r *grpcRemote) disarm(ctx context.Context, endpoint string, id uint64) error {
	return r.ask(ctx, endpoint, func(conn *grpc.ClientConn) error {
		_, err := pb.NewMaintenanceClient(conn).Alarm(ctx,
			&pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, MemberID: id, Alarm: pb.AlarmType_NOSPACE})
		return err
	})
}

// trimmed drops the space that printed protobuf messages, alarms, end with.
func trimmed(texts []string) []string {
	var out []string
	for _, text := range texts {
		out = append(out, strings.TrimSpace(text))
	}
	return out
}
