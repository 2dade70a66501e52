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

// connect makes a client of one endpoint that lives no longer than ctx.
func (r *grpcRemote) connect(ctx context.Context, endpoint string) (*clientv3.Client, error) {
	if err := checkEndpoint(endpoint); err != nil { // a member's URL comes from the member
		return nil, err
	}
	return clientv3.New(clientv3.Config{
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
}

// clusterOf and maintenanceOf ask over the client's one connection. The client's own would wait for a connection that fails until the time
// is up, which hides why it fails, and would open a second one to ask for a status.
func clusterOf(client *clientv3.Client) clientv3.Cluster {
	return clientv3.NewClusterFromClusterClient(pb.NewClusterClient(client.ActiveConnection()), nil)
}

func maintenanceOf(client *clientv3.Client) clientv3.Maintenance {
	return clientv3.NewMaintenanceFromMaintenanceClient(pb.NewMaintenanceClient(client.ActiveConnection()), nil)
}

func (r *grpcRemote) members(ctx context.Context, endpoint string, local bool) ([]Member, error) {
	client, err := r.connect(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var options []clientv3.OpOption
	if local {
		options = append(options, clientv3.WithSerializable())
	}
	list, err := clusterOf(client).MemberList(ctx, options...)
	if errors.Is(err, rpctypes.ErrLeaderChanged) {
		return nil, errLeaderChanged
	}
	if err != nil {
		return nil, err
	}
	members := make([]Member, 0, len(list.Members))
	for _, m := range list.Members {
		members = append(members, Member{
			ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs,
			Learner: m.IsLearner, Started: m.Name != "",
		})
	}
	return members, nil
}

func (r *grpcRemote) status(ctx context.Context, endpoint string) (answer, error) {
	client, err := r.connect(ctx, endpoint)
	if err != nil {
		return answer{}, err
	}
	defer client.Close()
	s, err := maintenanceOf(client).Status(ctx, endpoint)
	if err != nil {
		return answer{}, err
	}
	return answer{
		id: s.Header.GetMemberId(), leader: s.Leader, learner: s.IsLearner,
		index: s.RaftIndex, applied: s.RaftAppliedIndex, term: s.RaftTerm,
		dbSize: s.DbSize, version: s.Version, errors: trimmed(s.Errors),
	}, nil
}

func (r *grpcRemote) remove(ctx context.Context, endpoint string, id uint64) error {
	client, err := r.connect(ctx, endpoint)
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = clusterOf(client).MemberRemove(ctx, id)
	if errors.Is(err, rpctypes.ErrMemberNotFound) {
		return errNoMember
	}
	return err
}

// snapshot copies what the member sends. The client's own method would log to a logger that it has not got.
func (r *grpcRemote) snapshot(ctx context.Context, endpoint string, w io.Writer) error {
	client, err := r.connect(ctx, endpoint)
	if err != nil {
		return err
	}
	defer client.Close()
	stream, err := pb.NewMaintenanceClient(client.ActiveConnection()).Snapshot(ctx, &pb.SnapshotRequest{})
	if err != nil {
		return err
	}
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return rpctypes.Error(err)
		}
		if _, err := w.Write(part.Blob); err != nil {
			return err
		}
	}
}

func (r *grpcRemote) compact(ctx context.Context, endpoint string) error {
	client, err := r.connect(ctx, endpoint)
	if err != nil {
		return err
	}
	defer client.Close()
	s, err := maintenanceOf(client).Status(ctx, endpoint)
	if err != nil {
		return err
	}
	_, err = pb.NewKVClient(client.ActiveConnection()).Compact(ctx, &pb.CompactionRequest{Revision: s.Header.GetRevision(), Physical: true})
	if err = rpctypes.Error(err); errors.Is(err, rpctypes.ErrCompacted) {
		return nil
	}
	return err
}

func (r *grpcRemote) defragment(ctx context.Context, endpoint string) error {
	client, err := r.connect(ctx, endpoint)
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = pb.NewMaintenanceClient(client.ActiveConnection()).Defragment(ctx, &pb.DefragmentRequest{})
	return rpctypes.Error(err)
}

func (r *grpcRemote) disarm(ctx context.Context, endpoint string, id uint64) error {
	client, err := r.connect(ctx, endpoint)
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = pb.NewMaintenanceClient(client.ActiveConnection()).Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, MemberID: id, Alarm: pb.AlarmType_NOSPACE})
	return rpctypes.Error(err)
}

// trimmed drops the space that printed protobuf messages, alarms, end with.
func trimmed(texts []string) []string {
	var out []string
	for _, text := range texts {
		out = append(out, strings.TrimSpace(text))
	}
	return out
}
