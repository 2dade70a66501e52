package join

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"k8slab/lab/command"
)

// tunnelVariable makes the test's own program carry a connection to the address in it, as ssh -W does.
const tunnelVariable = "K8SLAB_TEST_TUNNEL"

func TestMain(m *testing.M) {
	if to := os.Getenv(tunnelVariable); to != "" {
		os.Exit(carry(to))
	}
	os.Exit(m.Run())
}

func carry(to string) int {
	conn, err := net.Dial("tcp", to)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 255
	}
	go func() {
		_, _ = io.Copy(conn, os.Stdin)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(os.Stdout, conn)
	return 0
}

// fakeControlPlane answers what comes over SSH, and leads to its API server and its etcd.
type fakeControlPlane struct {
	t       testing.TB
	answers map[string]string // by part of the command
	listens map[string]string // where what the control plane can dial really listens

	mu  sync.Mutex
	ran []string
}

func (c *fakeControlPlane) run(cmd command.Command, ctx context.Context) (string, error) {
	line := strings.Join(cmd.Argv, " ")
	c.mu.Lock()
	c.ran = append(c.ran, line)
	c.mu.Unlock()
	if i := slices.Index(cmd.Argv, "-W"); i >= 0 {
		to := c.listens[cmd.Argv[i+1]]
		if to == "" {
			_, _ = cmd.Stdin.Read(make([]byte, 1)) // it is not told at once
			return "", errors.New("exit status 255: channel 0: open failed: connect failed: Connection refused")
		}
		cmd.Argv, cmd.Env = []string{os.Args[0]}, []string{tunnelVariable + "=" + to}
		return cmd.Run(ctx)
	}
	for part, answer := range c.answers {
		if strings.Contains(line, part) {
			_, err := io.WriteString(cmd.Stdout, answer)
			return "", err
		}
	}
	return "", errors.New("exit status 1: " + testToken + " is no command")
}

// lines are the commands so far. A tunnel that was closed may still be about to begin.
func (c *fakeControlPlane) lines() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ran)
}

func (c *fakeControlPlane) did(part string) bool {
	return slices.ContainsFunc(c.lines(), func(line string) bool { return strings.Contains(line, part) })
}

// adminAPI is what the API server of the control plane knows of the Node w1.
type adminAPI struct {
	t         testing.TB
	node      map[string]any // its nodeInfo; nil: there is no Node
	renewed   time.Duration  // ago; 0: there is no Lease
	forbidden bool           // to read the Lease
	rejects   string         // what admission says of every Node, "" for nothing
	lacks     string         // the ConfigMap that joins need and that is not there

	mu      sync.Mutex
	deleted bool
	lost    []string // the Secrets that were deleted
}

func (a *adminAPI) isDeleted() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.deleted
}

// serve makes the control plane's admin.conf and API server.
func (a *adminAPI) serve(c *fakeControlPlane) {
	ca, key := newCA(a.t)
	server := httptest.NewUnstartedServer(a)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{leaf(a.t, ca, key, clusterShape{})}}
	server.StartTLS()
	a.t.Cleanup(server.Close)
	c.listens[testEndpoint] = server.Listener.Addr().String()
	config, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "admin",
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": "https://" + testEndpoint, "certificate-authority-data": pemOf(ca.Raw)}}},
		"contexts": []any{map[string]any{"name": "admin", "context": map[string]any{"cluster": "c", "user": "u"}}},
		"users":    []any{map[string]any{"name": "u", "user": map[string]any{"token": "of-the-administrator"}}},
	})
	if err != nil {
		a.t.Fatal(err)
	}
	c.answers["cat /etc/kubernetes/admin.conf"] = string(config)
}

// side answers what is asked of joins. The caller has the lock.
func (a *adminAPI) side(w http.ResponseWriter, r *http.Request) bool {
	base := path.Base(r.URL.Path)
	switch {
	case base == "subjectaccessreviews":
		_ = json.NewEncoder(w).Encode(map[string]any{"spec": map[string]any{}, "status": map[string]any{"allowed": true}})
	case strings.Contains(r.URL.Path, "/configmaps/") && base != a.lacks:
		_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{"kubeconfig": "kind: Config\nclusters: [{name: x, cluster: {}}]",
			"ClusterConfiguration": "kind: ClusterConfiguration", "kubelet": "kind: KubeletConfiguration"}})
	case base == "certificatesigningrequests", base == "secrets", strings.HasSuffix(base, "webhookconfigurations"):
		_ = json.NewEncoder(w).Encode(map[string]any{"items": []any{map[string]any{"metadata": map[string]any{"name": "bootstrap-token-abcdef"}}}})
	case r.Method == http.MethodPost && base == "nodes" && a.rejects != "":
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 400, "message": a.rejects})
	case r.Method == http.MethodPost && base == "nodes":
		_ = json.NewEncoder(w).Encode(map[string]any{})
	case r.Method == http.MethodDelete && strings.HasPrefix(base, "bootstrap-token-"):
		a.lost = append(a.lost, base)
		_ = json.NewEncoder(w).Encode(map[string]any{})
	default:
		return false
	}
	return true
}

func pemOf(certificate []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
}

func (a *adminAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch request := r.Method + " " + r.URL.Path; {
	case r.Header.Get("Authorization") != "Bearer of-the-administrator":
		refuseWith(w, http.StatusUnauthorized)
	case request == "GET /api/v1/nodes/w1" && a.node != nil:
		_ = json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]any{"name": "w1"}, "status": map[string]any{"nodeInfo": a.node}})
	case request == "GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/w1" && a.forbidden:
		refuseWith(w, http.StatusForbidden)
	case request == "GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/w1" && a.renewed != 0:
		_ = json.NewEncoder(w).Encode(map[string]any{"spec": map[string]any{"renewTime": time.Now().Add(-a.renewed).Format("2006-01-02T15:04:05.000000Z07:00")}})
	case request == "DELETE /api/v1/nodes/w1" && a.node != nil:
		a.deleted = true
		_ = json.NewEncoder(w).Encode(map[string]any{})
	case a.side(w, r):
	case r.Method == http.MethodGet:
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404})
	default:
		a.t.Errorf("unexpected request %s", request)
	}
}

// adminEtcd is the etcd member of the control plane, whose ID is 1, over mutual TLS.
type adminEtcd struct {
	pb.UnimplementedClusterServer
	pb.UnimplementedMaintenanceServer
	sticky bool // what is removed stays

	mu      sync.Mutex
	members []*pb.Member
	removed []uint64
}

func (e *adminEtcd) MemberList(context.Context, *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return &pb.MemberListResponse{Members: slices.Clone(e.members)}, nil
}

func (e *adminEtcd) MemberRemove(_ context.Context, r *pb.MemberRemoveRequest) (*pb.MemberRemoveResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.removed = append(e.removed, r.ID)
	if !e.sticky {
		e.members = slices.DeleteFunc(e.members, func(m *pb.Member) bool { return m.ID == r.ID })
	}
	return &pb.MemberRemoveResponse{}, nil
}

func (e *adminEtcd) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{Header: &pb.ResponseHeader{MemberId: 1}, Leader: 1}, nil
}

// serve makes the control plane's certificates for etcd, and its member.
func (e *adminEtcd) serve(c *fakeControlPlane) {
	ca, key := newCA(c.t)
	pair := leaf(c.t, ca, key, clusterShape{addresses: []net.IP{net.ParseIP("127.0.0.1"), net.ParseIP("10.30.0.11")}})
	private, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		c.t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(ca)
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert,
	})))
	pb.RegisterClusterServer(server, e)
	pb.RegisterMaintenanceServer(server, e)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	c.t.Cleanup(server.Stop)
	c.listens["127.0.0.1:2379"], c.listens["10.30.0.11:2379"] = listener.Addr().String(), listener.Addr().String()
	c.answers["cat "+pkiDir+"/etcd/ca.crt"] = string(pemOf(ca.Raw))
	c.answers["cat "+pkiDir+"/apiserver-etcd-client.crt"] = string(pemOf(pair.Certificate[0]))
	c.answers["cat "+pkiDir+"/apiserver-etcd-client.key"] = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}
