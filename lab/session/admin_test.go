package session_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8slab/lab/etcd"
	"k8slab/lab/host"
	"k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/labtest"
	"k8slab/lab/machine"
	"k8slab/lab/session"
)

// wired is a node that dials, and reads nothing.
type wired struct {
	session.Node
	name   string
	dialed *[]string
	err    error
	hangs  bool
}

func (w wired) Name() string { return w.name }
func (w wired) Close() error { return nil }

func (w wired) Dial(_ context.Context, _, address string) (net.Conn, error) {
	*w.dialed = append(*w.dialed, w.name+" to "+address)
	if w.err != nil {
		return nil, w.err
	}
	ours, theirs := net.Pipe()
	_ = theirs.Close()
	return ours, nil
}

func (w wired) Read(ctx context.Context, _ ...string) (string, error) {
	if w.hangs {
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
	return "", errors.New(w.name + " does not answer")
}

func wiredLab(t *testing.T) (*session.Session, *[]string) {
	s, dialed := labtest.Session(t, labtest.Three), &[]string{}
	for _, n := range s.Cluster.Members() {
		s.Nodes[n.Name] = wired{name: n.Name, dialed: dialed}
	}
	return s, dialed
}

// A node's own address is dialed on the node, any other through the control planes until one reaches it.
func TestDialCluster(t *testing.T) {
	tests := []struct {
		name, address string
		broken        []string
		want          string
		fails         bool
	}{
		{"a worker's kubelet", "W1:10250", nil, "w1 to W1:10250", false},
		{"the virtual address", "10.30.0.10:6443", nil, "cp1 to 10.30.0.10:6443", false},
		{"a control plane is silent", "10.30.0.10:6443", []string{"cp1", "cp2"}, "cp1 to 10.30.0.10:6443, cp2 to 10.30.0.10:6443, cp3 to 10.30.0.10:6443", false},
		{"all are", "10.30.0.10:6443", []string{"cp1", "cp2", "cp3"}, "cp1 to 10.30.0.10:6443, cp2 to 10.30.0.10:6443, cp3 to 10.30.0.10:6443", true},
		{"no port", "10.30.0.10", nil, "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, dialed := wiredLab(t)
			w1 := labtest.Node(t, s.Lab, "w1").IP.String()
			address, want := strings.ReplaceAll(tt.address, "W1", w1), strings.ReplaceAll(tt.want, "W1", w1)
			for _, name := range tt.broken {
				s.Nodes[name] = wired{name: name, dialed: dialed, err: errors.New("no route from " + name)}
			}
			conn, err := s.DialCluster(t.Context(), "tcp", address)
			if err == nil {
				_ = conn.Close()
			}
			if got := strings.Join(*dialed, ", "); got != want || (err != nil) != tt.fails {
				t.Errorf("dialed %q, %v, want %q", got, err, want)
			}
			for _, name := range tt.broken {
				if tt.fails && !strings.Contains(err.Error(), "no route from "+name) {
					t.Errorf("%v does not say what %s met", err, name)
				}
			}
		})
	}
	// Who has no time left asks nobody else.
	s, dialed := wiredLab(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Nodes["cp1"] = wired{name: "cp1", dialed: dialed, err: context.Canceled}
	if _, err := s.DialCluster(ctx, "tcp", "10.30.0.10:6443"); err == nil || len(*dialed) != 1 {
		t.Errorf("dialed %q, %v", *dialed, err)
	}
}

// Each control plane gets a time of its own, and the error says what each met.
func TestAnyAdminOfSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dialed := wiredLab(t)
		s.Nodes["cp2"] = wired{name: "cp2", dialed: dialed, hangs: true}
		begin := time.Now()
		_, err := s.AnyAdmin(t.Context())
		if err == nil || !strings.Contains(err.Error(), "cp1 does not answer") || !strings.Contains(err.Error(), "no answer within") || !strings.Contains(err.Error(), "cp3 does not answer") {
			t.Errorf("got %v", err)
		}
		if took, want := time.Since(begin), 4*time.Second*time.Duration(s.TimeScale()); took != want {
			t.Errorf("it took %s, want %s", took, want)
		}
	})
}

// A container has no console of its own, and machines that are not libvirt's show none.
func TestConsoleOfNobody(t *testing.T) {
	if s := labtest.Session(t, labtest.Small); s.Console("cp1") != "" {
		t.Error(s.Console("cp1"))
	}
}

// Without a daemon of the lab's own, the kubeconfig leads to the virtual address.
func TestSaveKubeconfig(t *testing.T) {
	s := labtest.Session(t, labtest.Small)
	const admin = `{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: lab, cluster: {server: "https://10.31.0.11:6443"}}],
 contexts: [{name: a, context: {cluster: lab, user: a}}], users: [{name: a, user: {token: secret}}]}`
	config, err := kube.FromNode([]byte(admin))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SaveKubeconfig(t.Context(), &session.Admin{Config: config}); err != nil {
		t.Fatal(err)
	}
	text, err := s.Once("kubeconfig", func() ([]byte, error) { return nil, errors.New("it was not written") })
	if err != nil || !strings.Contains(string(text), "server: https://"+s.Endpoint()) {
		t.Errorf("%v: %s", err, text)
	}
	if err := s.SaveKubeconfig(t.Context(), &session.Admin{Config: []byte("clusters: [")}); err == nil {
		t.Error("saved what is no kubeconfig")
	}
}

func TestLabnodeBinary(t *testing.T) {
	if _, err := (session.Options{}).LabnodeBinary(); err == nil || !strings.Contains(err.Error(), "no labnode is given") {
		t.Errorf("got %v", err)
	}
	if path, err := (session.Options{Labnode: func(string) (string, error) { return "/x/labnode", nil }}).LabnodeBinary(); err != nil || path != "/x/labnode" {
		t.Errorf("got %s, %v", path, err)
	}
}

// The nearest cause is what is in the way, not what is only warned of; no answer is one.
func TestFirstBad(t *testing.T) {
	ok, warn := join.Check{ID: "a", Result: join.OK}, join.Check{ID: "b", Result: join.Warn}
	fixable, blocked := join.Check{ID: "c", Result: join.Fixable}, join.Check{ID: "d", Result: join.Blocked}
	for _, tt := range []struct {
		checks []join.Check
		err    error
		want   join.CheckID
	}{
		{nil, nil, ""},
		{[]join.Check{ok, warn}, nil, ""},
		{[]join.Check{ok, warn, fixable, blocked}, nil, "c"},
		{[]join.Check{blocked, fixable}, nil, "d"},
		{[]join.Check{blocked}, errors.New("lost"), join.CheckLabnode},
	} {
		got := session.FirstBad(tt.checks, tt.err)
		if (got == nil) != (tt.want == "") || got != nil && got.ID != tt.want {
			t.Errorf("%+v, %v: got %+v, want %q", tt.checks, tt.err, got, tt.want)
		}
	}
}

// Names and peers that more than one part of the lab goes by.
func TestNamesAndPeers(t *testing.T) {
	s := labtest.Session(t, labtest.Small)
	if got := session.NamesOf(s.Cluster.Members()); got != "cp1, w1" {
		t.Errorf("got %q", got)
	}
	nodes := []kube.Node{{Name: "cp1"}, {Name: "cp10"}}
	if n := session.FindNode(nodes, "cp10"); n != &nodes[1] || session.FindNode(nodes, "cp") != nil {
		t.Errorf("got %+v", n)
	}
	n := labtest.Node(t, s.Lab, "cp1")
	if url := session.PeerURL(n); url != "https://10.31.0.11:2380" || !session.OwnsPeer(n, etcd.Member{PeerURLs: []string{url}}) {
		t.Errorf("got %s", url)
	}
	id := "6f1d0f5c-2f4e-4c53-9a55-0d6f3c1e2b7a"
	if got := session.CgroupName("lab", id); got != "k8slab-lab-6f1d0f5c" || !strings.HasSuffix(session.Partition(s.Lab, id), map[bool]string{true: "/nodes", false: "k8slab-small-6f1d0f5c"}[session.Scope(s.Lab, id) != ""]) {
		t.Errorf("got %s and %s", got, session.Partition(s.Lab, id))
	}
}

// hung is a libvirt that does not answer.
type hung struct{ session.Machines }

func (hung) State(ctx context.Context, _ string) (machine.State, error) {
	<-ctx.Done()
	return "", context.Cause(ctx)
}

// A daemon that hangs is not waited for longer than its answer from memory may take.
func TestMachineStateOfAHungDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := labtest.Session(t, labtest.Small)
		s.Machines = hung{}
		begin := time.Now()
		if _, err := s.MachineState(t.Context(), "w1"); !errors.Is(err, session.ErrDaemonSilent) || time.Since(begin) != session.DaemonBudget {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
	})
}

// A lab of containers gets a daemon of its own, and one that was made keeps what it has.
func TestOwnDaemon(t *testing.T) {
	l := labtest.Closed(t, labtest.Small)
	if l.URI != host.Containers || !session.OwnDaemon(l) {
		t.Errorf("a new lab of %s has no daemon of its own", l.URI)
	}
	if err := l.Settle(); err != nil {
		t.Fatal(err)
	}
	if session.OwnDaemon(l) {
		t.Error("a lab that was made with the computer's daemon has one of its own")
	}
	if err := l.Write("libvirt/serve.pid", nil); err != nil {
		t.Fatal(err)
	}
	if !session.OwnDaemon(l) {
		t.Error("a lab with the directory of its daemon has none")
	}
}
