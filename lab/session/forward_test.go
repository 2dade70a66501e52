package session_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"regexp"
	"testing"

	"k8slab/lab/labtest"
	"k8slab/lab/session"
)

// echoing is a node that dials a server of this computer, whatever address it is asked for.
type echoing struct {
	session.Node
	server string
	asked  chan string
}

func (e echoing) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	e.asked <- address
	var d net.Dialer
	return d.DialContext(ctx, network, e.server)
}

const forwardConfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://10.30.0.10:6443"}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
users: [{name: u, user: {token: secret}}]
`

// A forwarded API is a port of the loopback and a private kubeconfig that names it and still checks the server's own name. stop ends all of it,
// open connections too.
func TestForward(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					_, _ = fmt.Fprintln(conn, "heard", lines.Text())
				}
			}()
		}
	}()
	s := labtest.Session(t, labtest.Small)
	asked := make(chan string, 10)
	for _, n := range s.Cluster.Members() {
		s.Nodes[n.Name] = echoing{server: server.Addr().String(), asked: asked}
	}
	t.Setenv("TMPDIR", t.TempDir())
	forwarded, err := session.Forward(t.Context(), s, &session.Admin{Config: []byte(forwardConfig)})
	if err != nil {
		t.Fatal(err)
	}
	file, stop := forwarded.Kubeconfig, forwarded.Stop
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig: %v, %v", info, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`server: (https://127\.0\.0\.1:\d+)\n`).FindSubmatch(text)
	host, _, _ := net.SplitHostPort(s.Endpoint())
	if found == nil || !regexp.MustCompile(`tls-server-name: `+regexp.QuoteMeta(host)+`\n`).Match(text) {
		t.Fatalf("kubeconfig:\n%s", text)
	}
	at, err := url.Parse(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", at.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = fmt.Fprintln(conn, "hello")
	answers := bufio.NewReader(conn)
	if line, err := answers.ReadString('\n'); err != nil || line != "heard hello\n" {
		t.Errorf("%q, %v", line, err)
	}
	if got := <-asked; got != s.Endpoint() {
		t.Errorf("dialed %s, want %s", got, s.Endpoint())
	}
	stop()
	if line, err := answers.ReadString('\n'); err == nil {
		t.Errorf("after stop the connection still says %q", line)
	}
	if _, err := net.Dial("tcp", at.Host); err == nil {
		t.Error("after stop somebody listens")
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("after stop the kubeconfig is there: %v", err)
	}
}

// A client that has said all still gets the answer.
func TestCarryAfterTheLastWord(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		conn, err := server.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		text, _ := io.ReadAll(conn)
		_, _ = fmt.Fprintf(conn, "heard %s", text)
	}()
	s := labtest.Session(t, labtest.Small)
	for _, n := range s.Cluster.Members() {
		s.Nodes[n.Name] = echoing{server: server.Addr().String(), asked: make(chan string, 1)}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Carry(t.Context(), listener, "10.96.0.7:80", nil)()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "all")
	_ = conn.(*net.TCPConn).CloseWrite()
	if answer, err := io.ReadAll(conn); err != nil || string(answer) != "heard all" {
		t.Errorf("%q, %v", answer, err)
	}
}
