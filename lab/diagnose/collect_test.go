package diagnose

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"

	"k8slab/lab/diagnose/fact"
	"k8slab/lab/join"
	"k8slab/lab/node"
	"k8slab/lab/symptom"
)

// sshMachines serves machines over real SSH in this process; labnode's answer is the machine's facts.
type sshMachines struct {
	t        testing.TB
	collects func() // what a machine does before it answers; nil is nothing
	key      []byte
	public   []byte
	host     ssh.Signer
	hostLine []byte

	mu    sync.Mutex
	lines []string
}

func newSSHMachines(t testing.TB) *sshMachines {
	t.Helper()
	pair := func() (private, public []byte) {
		private, err := node.GenerateKey()
		if err == nil {
			public, err = node.PublicKey(private)
		}
		if err != nil {
			t.Fatal(err)
		}
		return private, public
	}
	key, public := pair()
	hostKey, hostLine := pair()
	host, err := ssh.ParsePrivateKey(hostKey)
	if err != nil {
		t.Fatal(err)
	}
	return &sshMachines{t: t, key: key, public: public, host: host, hostLine: hostLine}
}

// serve gives the machine an SSH server that answers labnode with facts.
func (s *sshMachines) serve(m *fact.Machine) Machine {
	s.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { listener.Close() })
	answer, err := json.Marshal(m.Inside)
	if err != nil {
		s.t.Fatal(err)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.talk(conn, answer)
		}
	}()
	n, err := node.New(node.Config{Name: m.Name, Address: listener.Addr().String(), User: "root", Key: s.key, HostKey: s.hostLine,
		Mutated: func(what string) error { s.t.Errorf("%s: it changes something: %s", m.Name, what); return nil }})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { n.Close() })
	return Machine{Name: m.Name, Role: m.Role, IP: m.IP, Read: n.Read, State: func(context.Context) (string, error) { return stateRunning, nil }}
}

func (s *sshMachines) talk(conn net.Conn, answer []byte) {
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(ssh.MarshalAuthorizedKey(key), s.public) {
			return nil, errors.New("unknown key")
		}
		return nil, nil
	}}
	config.AddHostKey(s.host)
	server, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	defer server.Close()
	go ssh.DiscardRequests(requests)
	for request := range channels {
		channel, requests, err := request.Accept()
		if err != nil {
			return
		}
		go func() {
			for r := range requests {
				_ = r.Reply(r.Type == "exec", nil)
				if r.Type != "exec" {
					continue
				}
				line := string(r.Payload[4:])
				s.mu.Lock()
				s.lines = append(s.lines, line)
				s.mu.Unlock()
				if strings.Contains(line, "collect") {
					if s.collects != nil {
						s.collects()
					}
					_, _ = channel.Write(answer)
				}
				_, _ = channel.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, 0))
				_ = channel.Close()
			}
		}()
	}
}

func sourcesOf(t testing.TB, f *fact.Facts) (Sources, *sshMachines) {
	t.Helper()
	servers := newSSHMachines(t)
	s := Sources{Lab: f.Lab, Labnode: "/usr/bin/labnode", Endpoint: f.Endpoint,
		Open: func(context.Context, string) (Cluster, error) { return Cluster{}, errors.New("refused") }}
	for i := range f.Machines {
		m := &f.Machines[i]
		s.Machines = append(s.Machines, servers.serve(m))
		s.Peers = append(s.Peers, fact.Peer{Name: m.Name, Role: m.Role, IP: m.IP})
	}
	return s, servers
}

// manyMachines is three control planes and the workers, each with a journal of 100 KiB.
func manyMachines(workers int) fact.Facts {
	f := healthyFacts(workers)
	for i := range f.Machines {
		f.Machines[i].Inside.Time = time.Now()
		journal(&f.Machines[i], "kubelet", time.Minute, strings.Repeat("x ", 50<<10))
	}
	return f
}

// Each machine answers only when all are at work, so that a collector that asks some after others gets no answer.
func TestFiftyMachinesAreAskedAtOnce(t *testing.T) {
	f := manyMachines(47)
	s, servers := sourcesOf(t, &f)
	var arrived atomic.Int32
	all := make(chan struct{})
	servers.collects = func() {
		if int(arrived.Add(1)) == len(f.Machines) {
			close(all)
		}
		select {
		case <-all:
		case <-t.Context().Done():
		}
	}
	for _, m := range Collect(t.Context(), s).Machines {
		if m.Inside == nil || m.State != stateRunning || m.Inside.Facts.Role != m.Role {
			t.Errorf("%s: %s %s %+v", m.Name, m.SSH, m.Labnode, m.Inside)
		}
	}
}

// A machine of the lab takes about a second to collect; real ones do it at the same time, on processors of their own.
func BenchmarkCollect(b *testing.B) {
	for _, machines := range []int{5, 50} {
		b.Run(strconv.Itoa(machines), func(b *testing.B) {
			f := manyMachines(machines - 3)
			s, servers := sourcesOf(b, &f)
			servers.collects = func() { time.Sleep(time.Second) }
			for b.Loop() {
				Collect(b.Context(), s)
			}
		})
	}
}

func TestCollectAsksOnceAndChangesNothing(t *testing.T) {
	f := healthyFacts(1)
	s, servers := sourcesOf(t, &f)
	s.Since = time.Minute
	Collect(t.Context(), s)
	want := "/usr/bin/labnode collect --role worker --endpoint 192.0.2.10:6443 --since 1m0s --peer cp1=control-plane=192.0.2.11 " +
		"--peer cp2=control-plane=192.0.2.12 --peer cp3=control-plane=192.0.2.13"
	servers.mu.Lock()
	defer servers.mu.Unlock()
	if plain := func(line string) bool { return strings.ReplaceAll(line, "'", "") == want }; !slices.ContainsFunc(servers.lines, plain) || len(servers.lines) != 8 {
		t.Errorf("%q", servers.lines)
	}
}

// A machine that is off and an API server that is dead are facts, and cost only their own time.
func TestCollectWithoutAMachineAndWithoutTheAPI(t *testing.T) {
	f := healthyFacts(2)
	for i := range f.Machines {
		f.Machines[i].Inside.Time = time.Now()
	}
	s, _ := sourcesOf(t, &f)
	w2 := &s.Machines[4]
	w2.State = func(context.Context) (string, error) { return "off", nil }
	w2.Read = func(ctx context.Context, _ ...string) (string, error) {
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
	w2.Console = func() string { return "boot\nKernel panic - not syncing\n" }
	began := time.Now()
	got := Collect(t.Context(), s)
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %s", took)
	}
	r, err := NewReport(got)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) < 2 || !slices.Equal(outlined(r.Findings), []want{{id: symptom.MachineNotRunning, node: "w2"}, {id: symptom.APIServerUnreachable}}) {
		t.Errorf("%+v", r.Findings)
	}
	if got.Machines[4].Console == "" || got.Machines[4].SSH == "" || got.API.Error == "" {
		t.Errorf("%+v %+v", got.Machines[4], got.API)
	}
}

func TestLabnodeThatIsTooOld(t *testing.T) {
	f := healthyFacts(0)
	s, _ := sourcesOf(t, &f)
	s.Machines[0].Read = func(_ context.Context, argv ...string) (string, error) {
		if argv[0] == "true" {
			return "", nil
		}
		return "", errors.New(`unknown command "collect"`)
	}
	got := Collect(t.Context(), s)
	if m := got.Machines[0]; m.SSH != "" || !strings.Contains(m.Labnode, "unknown command") {
		t.Errorf("%+v", m)
	}
}

// A connection that breaks under labnode is the machine's way being lost, and nothing of labnode.
func TestConnectionIsLost(t *testing.T) {
	f := healthyFacts(0)
	s, _ := sourcesOf(t, &f)
	lost := fmt.Errorf("%w: EOF", node.ErrLost)
	s.Machines[0].Bring = func(context.Context) error { return lost }
	read := s.Machines[1].Read
	s.Machines[1].Read = func(ctx context.Context, argv ...string) (string, error) {
		if argv[0] == "true" {
			return read(ctx, argv...)
		}
		return "", lost
	}
	got := Collect(t.Context(), s)
	for _, m := range got.Machines[:2] {
		if !strings.Contains(m.SSH, "connection lost") || m.Labnode != "" {
			t.Errorf("%+v", m)
		}
	}
}

// An emulated machine takes longer than the limits.
func TestPatience(t *testing.T) {
	for _, tt := range []struct {
		patience int
		answers  bool
	}{{0, false}, {1, false}, {5, true}} {
		synctest.Test(t, func(t *testing.T) {
			slow := Machine{Name: "cp1", Role: "control-plane", IP: "192.0.2.11",
				State: func(context.Context) (string, error) { return stateRunning, nil },
				Read: func(ctx context.Context, _ ...string) (string, error) {
					select {
					case <-time.After(12 * time.Second):
						return "{}", nil
					case <-ctx.Done():
						return "", context.Cause(ctx)
					}
				},
			}
			got := Collect(t.Context(), Sources{Labnode: "labnode", Machines: []Machine{slow}, Patience: tt.patience}).Machines[0]
			if (got.Inside != nil) != tt.answers {
				t.Errorf("patience %d: %s%s", tt.patience, got.SSH, got.Labnode)
			}
		})
	}
}

// A late answer proves nothing: who gave no other is asked once more and given longer, and nobody else is.
func TestLateAnswersAreAskedForAgain(t *testing.T) {
	node := func(result join.Result, took time.Duration) fact.Node {
		return fact.Node{Checks: []join.Check{{ID: "cri", Result: result, Elapsed: took}}}
	}
	for _, tt := range []struct {
		name          string
		connect       time.Duration // until a command's answer
		first         fact.Node
		looks         int
		connected, ok bool
	}{
		{name: "a healthy machine", first: node(join.OK, 3*time.Second), looks: 1, connected: true, ok: true},
		{name: "a runtime that is dead", first: node(join.Fixable, time.Second), looks: 1, connected: true},
		{name: "a runtime that did not answer in time", first: node(join.Fixable, 2*time.Second), looks: 2, connected: true, ok: true},
		{name: "a question without an answer in time", first: fact.Node{Errors: map[string]string{"units": "late"}, Elapsed: 3.5}, looks: 2, connected: true, ok: true},
		{name: "a question that failed at once", first: fact.Node{Errors: map[string]string{"units": "no systemd"}, Elapsed: 0.5}, looks: 1, connected: true},
		{name: "a cluster that does not answer", first: fact.Node{Checks: []join.Check{{ID: "node", Result: join.Blocked, Elapsed: 3 * time.Second}}}, looks: 1, connected: true},
		{name: "a machine that connects late", connect: 8 * time.Second, looks: 2, first: node(join.OK, 0), connected: true, ok: true},
		{name: "a machine that does not connect", connect: time.Hour, looks: 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			looks := 0
			m := Machine{Name: "w1", State: func(context.Context) (string, error) { return stateRunning, nil },
				Read: func(ctx context.Context, argv ...string) (string, error) {
					if argv[0] == "true" {
						looks++
						select {
						case <-time.After(tt.connect):
							return "", nil
						case <-ctx.Done():
							return "", context.Cause(ctx)
						}
					}
					answer := tt.first
					if longer := strings.Contains(strings.Join(argv, " "), "--patience 2"); longer != (looks == 2) {
						t.Errorf("%s: look %d: %q", tt.name, looks, argv)
					}
					if looks == 2 {
						answer = node(join.OK, time.Second)
					}
					text, err := json.Marshal(answer)
					return string(text), err
				}}
			got := Collect(t.Context(), Sources{Labnode: "labnode", Machines: []Machine{m}}).Machines[0]
			healthy := got.Inside != nil && len(got.Inside.Errors) == 0 && got.Inside.Checks[0].Result == join.OK
			if looks != tt.looks || (got.SSH == "") != tt.connected || healthy != tt.ok {
				t.Errorf("%s: %d looks, SSH %q, %+v", tt.name, looks, got.SSH, got.Inside)
			}
		})
	}
}

// The second question ends before the caller's time does, and the first answer stays.
func TestSecondLookEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := Machine{Name: "w1", State: func(context.Context) (string, error) { return stateRunning, nil },
			Read: func(ctx context.Context, argv ...string) (string, error) {
				switch {
				case argv[0] == "true":
					return "", nil
				case slices.Contains(argv, "--patience"):
					<-ctx.Done()
					return "", context.Cause(ctx)
				}
				time.Sleep(6 * time.Second)
				text, err := json.Marshal(fact.Node{Errors: map[string]string{"units": "late"}, Elapsed: 6})
				return string(text), err
			}}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begun := time.Now()
		got := Collect(ctx, Sources{Labnode: "labnode", Machines: []Machine{m}}).Machines[0]
		if took := time.Since(begun); ctx.Err() != nil || took != 9*time.Second || got.Inside == nil {
			t.Errorf("%s, %v, %+v", took, ctx.Err(), got)
		}
	})
}

// Machines that share processors collect a few at a time, and one that does not answer at all keeps none of them waiting.
func TestMachinesThatShareProcessors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var working, most atomic.Int32
		s := Sources{Labnode: "labnode", AtOnce: 2}
		for i := range 6 {
			s.Machines = append(s.Machines, Machine{Name: strconv.Itoa(i), State: func(context.Context) (string, error) { return stateRunning, nil },
				Read: func(ctx context.Context, argv ...string) (string, error) {
					if argv[0] == "true" {
						if i < 3 {
							<-ctx.Done()
							return "", errors.New("no route")
						}
						return "", nil
					}
					most.Store(max(most.Load(), working.Add(1)))
					time.Sleep(time.Second)
					working.Add(-1)
					return "{}", nil
				}})
		}
		began := time.Now()
		var answered []int
		for i, m := range Collect(t.Context(), s).Machines {
			if m.Inside != nil {
				answered = append(answered, i)
			}
		}
		if took := time.Since(began); most.Load() != 2 || !slices.Equal(answered, []int{3, 4, 5}) || took > 16*time.Second {
			t.Errorf("%d at once, %d answered, %s", most.Load(), answered, took)
		}
	})
}
