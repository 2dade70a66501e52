package provision

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8slab/lab/host"
	"k8slab/lab/labtest"
	"k8slab/lab/machine"
	"k8slab/lab/node"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// oneMachine is a machine in memory, with the node on it.
type oneMachine struct {
	session.Machines
	state   machine.State
	maker   machine.Maker
	deleted bool
	err     error // of libvirt

	answers func() error // over SSH
	ran     []string
	copied  string
}

func (m *oneMachine) State(context.Context, string) (machine.State, error) { return m.state, m.err }

func (m *oneMachine) List(context.Context) ([]machine.Machine, error) {
	return []machine.Machine{{Node: "w1", State: m.state, Maker: m.maker}}, m.err
}

func (m *oneMachine) Delete(context.Context, string) error { m.deleted = true; return m.err }

func (m *oneMachine) Name() string { return "w1" }
func (m *oneMachine) Close() error { return nil }

func (m *oneMachine) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("no network")
}

func (m *oneMachine) Copy(context.Context, string, fs.FileMode, io.Reader) error { return m.answers() }

func (m *oneMachine) Read(_ context.Context, argv ...string) (string, error) {
	m.ran = append(m.ran, strings.Join(argv, " "))
	return "", m.answers()
}

func (m *oneMachine) Run(_ context.Context, cmd node.Command) error {
	m.ran = append(m.ran, strings.Join(cmd.Argv, " "))
	if cmd.Stdin != nil {
		text, _ := io.ReadAll(cmd.Stdin)
		m.copied += string(text)
	}
	return m.answers()
}

func (m *oneMachine) in(t *testing.T) *session.Session {
	t.Helper()
	s := labtest.Session(t, labtest.Small)
	s.Machines, s.Nodes["w1"] = m, m
	return s
}

// A machine is waited for while it may come, and not when it has ended, or is another one than it says.
func TestAwaitSSH(t *testing.T) {
	silent := &node.ConnectError{Node: "w1", Address: "10.31.0.21:22", Cause: errors.New("connection refused")}
	stranger := &node.ConnectError{Node: "w1", Address: "10.31.0.21:22", Cause: errors.New("host key mismatch"), Permanent: true}
	tests := []struct {
		name    string
		machine oneMachine
		until   time.Duration // it answers then; 0 for never
		fails   error
		want    string // of the error
		took    time.Duration
	}{
		{"it answers at once", oneMachine{state: machine.Running}, time.Nanosecond, silent, "", time.Second},
		{"it boots", oneMachine{state: machine.Running}, time.Minute, silent, "", 61 * time.Second},
		{"it never answers", oneMachine{state: machine.Running}, 0, silent, "connection refused", machineBudget + time.Second},
		{"it ended while starting", oneMachine{state: machine.Off}, 0, silent, "its machine is off: it ended while starting; see `labctl host exec", time.Second},
		{"libvirt is silent too", oneMachine{state: machine.Off, err: errors.New("no daemon")}, 2 * time.Second, silent, "", 3 * time.Second},
		{"another machine has its address", oneMachine{state: machine.Running}, 0, stranger, "host key mismatch", time.Second},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			tt.machine.answers = func() error {
				if tt.until > 0 && time.Since(begin) >= tt.until-time.Nanosecond {
					return nil
				}
				return tt.fails
			}
			s := tt.machine.in(t)
			err := AwaitSSH(t.Context(), s, labtest.Node(t, s.Lab, "w1"))
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) || time.Since(begin) > tt.took {
				t.Errorf("%s: after %s: %v, want %q", tt.name, time.Since(begin), err, tt.want)
			}
		})
	}
}

// A machine that vagrant made is vagrant's to delete.
func TestDeleteMachine(t *testing.T) {
	broken := errors.New("no daemon")
	tests := []struct {
		name    string
		machine oneMachine
		want    string
		deleted bool
	}{
		{"its own", oneMachine{maker: machine.Labctl}, "", true},
		{"vagrant's", oneMachine{maker: machine.Vagrant}, "vagrant destroy w1, and this again", false},
		{"nobody knows", oneMachine{maker: machine.Labctl, err: broken}, "no daemon", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := Delete(t.Context(), tt.machine.in(t), "w1")
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) || tt.machine.deleted != tt.deleted {
				t.Errorf("%v, deleted %v", err, tt.machine.deleted)
			}
		})
	}
}

// An import that finds no room says where it is; its archive reaches containerd whole and its images stay.
func TestImportArchive(t *testing.T) {
	m := &oneMachine{answers: func() error { return nil }}
	s := m.in(t)
	if err := ImportArchive(t.Context(), s, "w1", strings.NewReader("the archive")); err != nil || m.copied != "the archive" {
		t.Errorf("%v, %q", err, m.copied)
	}
	if !strings.Contains(m.ran[0], "--label io.cri-containerd.pinned=pinned") || !strings.HasPrefix(m.ran[0], "ctr --namespace k8s.io images import") {
		t.Errorf("ran %q", m.ran)
	}
}

// A container has this computer's clock.
func TestSetClock(t *testing.T) {
	for uri, want := range map[string]int{host.Containers: 0, host.VirtualMachines: 2} {
		m := &oneMachine{state: machine.Running, answers: func() error { return nil }}
		s := m.in(t)
		s.URI = uri
		if err := setClock(t.Context(), s, labtest.Node(t, s.Lab, "w1")); err != nil || len(m.ran) != want || want > 0 && !strings.HasPrefix(m.ran[1], "date --utc --set @") {
			t.Errorf("%s: %v, ran %q", uri, err, m.ran)
		}
	}
}

// The lab that starts with this computer is one that was made; looking at it makes none.
func TestAutostartOfNoLab(t *testing.T) {
	l := labtest.Closed(t, labtest.Small)
	_, on := Autostart(t.Context(), l)
	for _, err := range []error{on, NoAutostart(t.Context(), l)} {
		if !errors.Is(err, state.ErrNotUp) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := l.ID(); err != nil {
		t.Fatal(err)
	}
	if _, err := Autostart(t.Context(), l); !errors.Is(err, state.ErrNotUp) { // up would need the cluster.yaml that nobody knows then
		t.Errorf("before its machines are made: %v", err)
	}
}

// What builds an image says what it lacks, before it downloads anything.
func TestImageNeedsLabnode(t *testing.T) {
	s := (&oneMachine{}).in(t)
	_, _, disk := BuildDisk(t.Context(), s)
	_, box := MakeVagrantBox(t.Context(), s)
	_, bundle := For(s).bundle(t.Context())
	for _, err := range []error{disk, box, bundle} {
		if err == nil || !strings.Contains(err.Error(), "no labnode is given") {
			t.Errorf("got %v", err)
		}
	}
	s.Labnode = func(string) (string, error) { return "", errors.New("it does not compile") }
	if _, err := For(s).bundle(t.Context()); err == nil || !strings.Contains(err.Error(), "it does not compile") {
		t.Errorf("got %v", err)
	}
	if boot, err := For(s).Image(t.Context()); err != nil || boot != (machine.Boot{}) {
		t.Errorf("machines that are there need none: %+v, %v", boot, err)
	}
}

// Vagrant's machines are made once: of one that is there nothing is prepared.
func TestPrepareVagrant(t *testing.T) {
	m := &oneMachine{state: machine.Off}
	s := m.in(t)
	if err := PrepareVagrant(t.Context(), s, labtest.Node(t, s.Lab, "w1")); err != nil || !s.Settled() {
		t.Errorf("%v, settled %v", err, s.Settled())
	}
	m.err = errors.New("no daemon")
	if err := PrepareVagrant(t.Context(), s, labtest.Node(t, s.Lab, "w1")); !errors.Is(err, m.err) {
		t.Errorf("got %v", err)
	}
}
