package etcd

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// testPKI is one self-signed certificate that serves as CA, server and client.
type testPKI struct{ ca, cert, key []byte }

func newPKI(t *testing.T) testPKI {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.ParseIP("192.0.2.1")},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return testPKI{cert, cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})}
}

// fakeEtcd serves the calls the client makes, over mutual TLS.
type fakeEtcd struct {
	pb.UnimplementedClusterServer
	pb.UnimplementedMaintenanceServer
	linearizable bool
	data         []byte // the snapshot
	broken       error  // after the snapshot
}

// Snapshot sends as etcd does: the database in parts, then the checksum alone.
func (f *fakeEtcd) Snapshot(_ *pb.SnapshotRequest, stream pb.Maintenance_SnapshotServer) error {
	parts := slices.Collect(slices.Chunk(f.data[:max(0, len(f.data)-32)], 32<<10))
	for _, part := range append(parts, f.data[max(0, len(f.data)-32):]) {
		if err := stream.Send(&pb.SnapshotResponse{Blob: part}); err != nil {
			return err
		}
	}
	return f.broken
}

func (f *fakeEtcd) MemberList(_ context.Context, r *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	f.linearizable = r.Linearizable
	return &pb.MemberListResponse{Members: []*pb.Member{
		{ID: 1, Name: "m1", PeerURLs: []string{"https://192.0.2.1:2380"}, ClientURLs: []string{"https://192.0.2.1:2379"}},
		{ID: 2, PeerURLs: []string{"https://192.0.2.2:2380"}, IsLearner: true},
	}}, nil
}

func (f *fakeEtcd) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{Header: &pb.ResponseHeader{MemberId: 1}, Leader: 1, RaftIndex: 9, RaftAppliedIndex: 8,
		RaftTerm: 2, DbSize: 7, Version: "3.6.8", Errors: []string{"memberID:1 alarm:NOSPACE "}}, nil
}

func (f *fakeEtcd) MemberRemove(_ context.Context, r *pb.MemberRemoveRequest) (*pb.MemberRemoveResponse, error) {
	switch r.ID {
	case 2:
		return &pb.MemberRemoveResponse{}, nil
	case 3:
		return nil, rpctypes.ErrGRPCMemberNotFound
	}
	return nil, rpctypes.ErrGRPCUnhealthy
}

// startEtcd serves the fake on a port only the dial function knows.
func startEtcd(t *testing.T, pki testPKI) (*fakeEtcd, DialFunc) {
	t.Helper()
	pair, err := tls.X509KeyPair(pki.cert, pki.key)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(pki.ca)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert})))
	f := &fakeEtcd{}
	pb.RegisterClusterServer(server, f)
	pb.RegisterMaintenanceServer(server, f)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return f, func(ctx context.Context, network, address string) (net.Conn, error) {
		if network != "tcp" || !strings.HasSuffix(address, ":2379") {
			return nil, fmt.Errorf("dialled %s %s", network, address)
		}
		var d net.Dialer
		return d.DialContext(ctx, "tcp", listener.Addr().String())
	}
}

func noDial(context.Context, string, string) (net.Conn, error) { return nil, errOff }

func TestOverTheWire(t *testing.T) {
	pki := newPKI(t)
	server, dial := startEtcd(t, pki)
	c, err := New(Config{Endpoints: []string{"https://192.0.2.1:2379"}, CA: pki.ca, Cert: pki.cert, Key: pki.key, Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	statuses, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !server.linearizable {
		t.Error("the member list was not asked of a quorum")
	}
	if len(statuses) != 2 {
		t.Fatalf("statuses %+v", statuses)
	}
	m1, m2 := statuses[0], statuses[1]
	if !m1.Healthy || !m1.Leader || !m1.Member.Started || m1.RaftIndex != 9 || m1.RaftApplied != 8 || m1.RaftTerm != 2 || m1.DBSize != 7 || m1.Version != "3.6.8" || !slices.Equal(m1.Errors, []string{"memberID:1 alarm:NOSPACE"}) {
		t.Errorf("first member %+v", m1)
	}
	if m2.Healthy || m2.Member.Started || !m2.Member.Learner {
		t.Errorf("second member %+v", m2)
	}
	if !slices.Equal(m1.Alarms, []string{"NOSPACE"}) || len(m2.Alarms) > 0 {
		t.Errorf("alarms %q and %q", m1.Alarms, m2.Alarms)
	}
	if err := c.Remove(t.Context(), 2); err != nil {
		t.Error(err)
	}
	// Without a quorum only a member's own memory can be asked.
	if statuses, err = c.LocalStatus(t.Context()); err != nil || len(statuses) != 2 || server.linearizable {
		t.Errorf("local statuses %+v, error %v, of a quorum: %v", statuses, err, server.linearizable)
	}
}

// An emulated member takes seconds for the handshake alone.
func TestPatience(t *testing.T) {
	pki := newPKI(t)
	_, dial := startEtcd(t, pki)
	for patience, want := range map[int]time.Duration{0: callTimeout, 5: 5 * callTimeout} {
		c, err := New(Config{Endpoints: []string{"https://192.0.2.1:2379"}, CA: pki.ca, Cert: pki.cert, Key: pki.key, Dial: dial, Patience: patience})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx, cancel := c.bound(t.Context())
		defer cancel()
		if deadline, _ := ctx.Deadline(); time.Until(deadline).Round(time.Second) != want {
			t.Errorf("patience %d: a call has %s, want %s", patience, time.Until(deadline), want)
		}
	}
}

func TestSnapshotOverTheWire(t *testing.T) {
	pki := newPKI(t)
	server, dial := startEtcd(t, pki)
	c, err := New(Config{Endpoints: []string{"https://192.0.2.1:2379"}, CA: pki.ca, Cert: pki.cert, Key: pki.key, Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	good := database(300) // several parts
	tests := []struct {
		name   string
		data   []byte
		broken error
		want   string // of the error
	}{
		{"whole", good, nil, ""},
		{"without its checksum", good[:len(good)-32], nil, "are not a snapshot with a checksum"},
		{"cut off", good[:40<<10], nil, "are not a snapshot with a checksum"},
		{"damaged", append([]byte{1}, good[1:]...), nil, "is damaged"},
		{"broken off", good[:512], rpctypes.ErrGRPCStopped, "etcdserver: server stopped"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server.data, server.broken = tt.data, tt.broken
			var out bytes.Buffer
			got, err := c.Snapshot(t.Context(), &out)
			if tt.want == "" {
				if err != nil || got.Size != int64(len(good)) || !bytes.Equal(out.Bytes(), good) {
					t.Errorf("got %+v, %d bytes, error %v", got, out.Len(), err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

func TestWireRemoveErrors(t *testing.T) {
	pki := newPKI(t)
	_, dial := startEtcd(t, pki)
	r, err := newGRPC(Config{Endpoints: []string{"https://192.0.2.1:2379"}, CA: pki.ca, Cert: pki.cert, Key: pki.key, Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.remove(t.Context(), "https://192.0.2.1:2379", 3); !errors.Is(err, errNoMember) {
		t.Errorf("absent member: error %v", err)
	}
	if err := r.remove(t.Context(), "https://192.0.2.1:2379", 4); !errors.Is(err, errUnsettled) {
		t.Errorf("refused removal: error %v", err)
	}
}

// TestWireFailuresKeepTheirCause covers a failed dial and a certificate made for
// another host; neither may end as a timeout.
func TestWireFailuresKeepTheirCause(t *testing.T) {
	pki := newPKI(t)
	_, dial := startEtcd(t, pki)
	tests := []struct {
		endpoint string
		dial     DialFunc
		want     string
	}{
		{"https://192.0.2.1:2379", noDial, errOff.Error()},
		{"https://192.0.2.9:2379", dial, "192.0.2.9"},
		{"unix:///tmp/socket", dial, "is not https"},
	}
	for _, tt := range tests {
		r, err := newGRPC(Config{Endpoints: []string{"https://192.0.2.1:2379"}, CA: pki.ca, Cert: pki.cert, Key: pki.key, Dial: tt.dial})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err = r.members(ctx, tt.endpoint, false)
		if err == nil || !strings.Contains(err.Error(), tt.want) || ctx.Err() != nil {
			t.Errorf("%s: error %v, want %q", tt.endpoint, err, tt.want)
		}
		cancel()
	}
}
