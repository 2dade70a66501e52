package fact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8slab/lab/inventory"
	"k8slab/lab/join"
)

// machine is a directory in a machine's place; systemd does not answer there, and the runtime is not there.
func machine(t *testing.T, files map[string]string) join.Machine {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := join.Local()
	m.Root = root
	m.Run = func(_ context.Context, argv ...string) (string, error) {
		return "", fmt.Errorf("%s: no such program", argv[0])
	}
	m.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED }
	return m
}

func noJournal(context.Context, io.Writer, ...string) error { return errors.New("no journal") }

func TestCollectOnAMachineThatHasNothing(t *testing.T) {
	m := machine(t, map[string]string{
		"proc/meminfo":                               "MemTotal:  2000 kB\nMemAvailable: 1000 kB\n",
		"run/flannel/subnet.env":                     "FLANNEL_SUBNET=10.244.3.1/24\n",
		"etc/cni/net.d/10-flannel.conflist":          `{"plugins":[{"type":"flannel"},{"type":"portmap"}]}`,
		"etc/kubernetes/manifests/etcd.yaml":         "    - --initial-advertise-peer-urls=https://192.0.2.13:2380\n",
		"var/log/pods/kube-system_etcd_1/etcd/0.log": "old\n",
		"var/log/pods/kube-system_etcd_1/etcd/2.log": "2026-03-01T12:00:00Z stderr F --token abcdef.0123456789abcdef\n",
		"var/lib/k8slab/join/kubeadm.log":            "== attempt 1\n",
	})
	before := listing(t, m.Root)
	began := time.Now()
	n := collect(t.Context(), m, Options{Role: "control-plane", Peers: []Peer{{"cp1", "control-plane", "192.0.2.11"}}}, noJournal)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %s", took)
	}
	if n.Memory.Total != 2000<<10 || n.SubnetEnv["FLANNEL_SUBNET"] != "10.244.3.1/24" || !slices.Equal(n.Network, []string{"flannel", "portmap"}) ||
		n.PeerURL != "https://192.0.2.13:2380" {
		t.Errorf("%+v", n)
	}
	for _, what := range []string{"facts", "units", "texts"} {
		if n.Errors[what] == "" {
			t.Errorf("nothing says why %s is missing: %v", what, n.Errors)
		}
	}
	if len(n.Dials) != 5 || n.Dials[0].Result != "refused" {
		t.Errorf("%+v", n.Dials)
	}
	var etcd, kubeadm string
	for _, text := range n.Texts {
		switch text.Name {
		case "etcd":
			etcd = text.Text
		case "kubeadm":
			kubeadm = text.Text
		}
	}
	if !strings.Contains(etcd, "abcdef.***") || strings.Contains(etcd, "0123456789abcdef") || kubeadm == "" {
		t.Errorf("%+v", n.Texts)
	}
	if listing(t, m.Root) != before {
		t.Error("it changed the machine")
	}
}

func listing(t *testing.T, root string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		fmt.Fprintln(&all, path, info.Size(), info.ModTime())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func TestCollectEndsThoughAProgramHangs(t *testing.T) {
	m := machine(t, nil)
	m.Run = func(ctx context.Context, _ ...string) (string, error) {
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
	began := time.Now()
	n := Collect(t.Context(), m, Options{Role: "worker"})
	if took := time.Since(began); took > nodeLimit+time.Second || n.Errors["units"] == "" {
		t.Errorf("%s %v", took, n.Errors)
	}
}

func TestTargets(t *testing.T) {
	peers := []Peer{{"cp2", "control-plane", ""}, {"w1", "worker", ""}}
	ports := func(role string) (all []string) {
		for _, t := range targets(role, peers, true) {
			all = append(all, fmt.Sprintf("%s:%d/%s", t.peer.Name, t.port, t.proto))
		}
		return all
	}
	if got := ports("worker"); !slices.Equal(got, []string{"cp2:6443/tcp", "cp2:8472/udp", "w1:8472/udp"}) {
		t.Error(got)
	}
	want := []string{"cp2:6443/tcp", "cp2:2379/tcp", "cp2:2380/tcp", "cp2:10250/tcp", "cp2:8472/udp", "w1:10250/tcp", "w1:8472/udp"}
	if got := ports("control-plane"); !slices.Equal(got, want) {
		t.Error(got)
	}
}

func TestDialsForReal(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{m: join.Local()}
	open, closed := tcp.Addr().(*net.TCPAddr).Port, udp.LocalAddr().(*net.UDPAddr).Port
	dial := func(port int, proto string) string {
		return c.dial(t.Context(), target{Peer{IP: "127.0.0.1"}, port, proto}).Result
	}
	if got := []string{dial(open, "tcp"), dial(closed, "udp")}; !slices.Equal(got, []string{"open", "unknown"}) {
		t.Error(got)
	}
	tcp.Close()
	udp.Close()
	if got := []string{dial(open, "tcp"), dial(closed, "udp")}; !slices.Equal(got, []string{"refused", "refused"}) {
		t.Error(got)
	}
}

// A diagnosis of what is wrong now reads a unit's journal since its start, or of about ten minutes. That of kubeadm is of one series of attempts.
func TestRecentJournals(t *testing.T) {
	for _, recent := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			m := machine(t, nil)
			started := m.Now().Add(-time.Minute)
			m.Run = func(_ context.Context, argv ...string) (string, error) {
				if argv[0] != "systemctl" {
					return "", errors.New("not here")
				}
				return fmt.Sprintf("Id=kubelet.service\nActiveState=active\nExecMainStartTimestamp=@%d\n\nId=containerd.service\nActiveState=active\n", started.Unix()), nil
			}
			var mu sync.Mutex
			read := map[string]string{}
			collect(t.Context(), m, Options{Recent: recent}, func(_ context.Context, _ io.Writer, argv ...string) error {
				mu.Lock()
				defer mu.Unlock()
				for i, arg := range argv {
					if unit, is := strings.CutPrefix(arg, "--unit="); is {
						read[unit] = strings.Join(argv[i+1:], " ")
					}
				}
				return nil
			})
			since := func(at time.Time) string { return fmt.Sprintf("--since=@%d", at.Unix()) }
			want := map[string]string{"kubelet.service": since(started.Add(-2 * time.Second)), "containerd.service": since(m.Now().Add(-Recent - time.Second)), "k8slab-kubeadm.service": ""}
			for unit, from := range want {
				if !recent {
					from = ""
				}
				if got, is := read[unit]; !is || got != from {
					t.Errorf("recent %t: the journal of %s is read (%t) with %q, wanted %q", recent, unit, is, got, from)
				}
			}
		})
	}
}

// Who is asked again gets more time for each answer.
func TestPatience(t *testing.T) {
	for patience, late := range map[int]bool{0: true, 1: true, 2: false} {
		synctest.Test(t, func(t *testing.T) {
			m := machine(t, nil)
			m.Run = func(ctx context.Context, argv ...string) (string, error) {
				select {
				case <-time.After(5 * time.Second):
					return "Id=kubelet.service\nActiveState=active\n", nil
				case <-ctx.Done():
					return "", context.Cause(ctx)
				}
			}
			n := collect(t.Context(), m, Options{Patience: patience}, noJournal)
			if (n.Errors["units"] != "") != late || (n.Units["kubelet"].Active == "active") == late {
				t.Errorf("patience %d: %q, %+v", patience, n.Errors["units"], n.Units)
			}
		})
	}
}

// Lost dials prove nothing on a link that loses packets: one of all that is answered is enough.
func TestSilentDialIsTriedAgain(t *testing.T) {
	var tries atomic.Int32
	c := &collector{m: join.Local(), o: Options{Role: "worker", Peers: []Peer{{"cp1", "control-plane", "192.0.2.11"}}}}
	c.m.Dial = func(_ context.Context, network, _ string) (net.Conn, error) {
		if network == "tcp" && tries.Add(1) > moreDials {
			ours, _ := net.Pipe()
			return ours, nil
		}
		return nil, os.ErrDeadlineExceeded
	}
	if err := c.dials(t.Context()); err != nil || c.node.Dials[0].Result != "open" || tries.Load() != 1+moreDials {
		t.Errorf("%v, %d tries: %+v", err, tries.Load(), c.node.Dials)
	}
}

const etcdMetrics = `# HELP etcd_disk_wal_fsync_duration_seconds The latency distributions of fsync called by WAL.
# TYPE etcd_disk_wal_fsync_duration_seconds histogram
etcd_disk_wal_fsync_duration_seconds_bucket{le="0.001"} %d
etcd_disk_wal_fsync_duration_seconds_bucket{le="0.128"} %d
etcd_disk_wal_fsync_duration_seconds_bucket{le="8.192"} %d
etcd_disk_wal_fsync_duration_seconds_bucket{le="+Inf"} %d
# HELP etcd_server_leader_changes_seen_total The number of leader changes seen.
# TYPE etcd_server_leader_changes_seen_total counter
etcd_server_leader_changes_seen_total 3
`

func TestEtcdDisk(t *testing.T) {
	read := func(counts ...any) *metrics {
		return readMetrics(strings.NewReader(fmt.Sprintf(etcdMetrics, counts...)))
	}
	c := &collector{}
	c.etcdDisk(read(1000, 1000, 1000, 1000), read(1000, 1003, 1004, 1004))
	if e := c.node.Etcd; e.FsyncP99 != 0.001 || e.RecentSyncs != 4 || e.RecentMedian != 0.128 || e.LeaderChanges != 3 {
		t.Errorf("%+v", e)
	}
	c = &collector{}
	c.etcdDisk(nil, read(0, 0, 0, 10))
	if e := c.node.Etcd; e.FsyncP99 != 8.192 || e.RecentSyncs != 0 {
		t.Errorf("%+v", e)
	}
	c = &collector{}
	c.etcdDisk(nil, nil)
	if c.node.Etcd != nil {
		t.Error("measured where nothing was")
	}
}

func TestTailKeepsWholeLines(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"short", "a\nb\n", "a\nb\n"},
		{"long", strings.Repeat("x", 9) + "\nsecond\n", "second\n"},
		{"one line", strings.Repeat("x", 50), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			end := &tail{limit: 10}
			for _, b := range []byte(tt.in) {
				_, _ = end.Write([]byte{b})
			}
			if end.String() != tt.want {
				t.Errorf("%q", end.String())
			}
			file := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(file, []byte(tt.in), 0o600); err != nil {
				t.Fatal(err)
			}
			if text, err := tailOf(file, 10); text != tt.want || err != nil {
				t.Errorf("%q %v", text, err)
			}
		})
	}
	if text, err := tailOf(filepath.Join(t.TempDir(), "absent"), 10); text != "" || err != nil {
		t.Error(text, err)
	}
}

func TestLatestLog(t *testing.T) {
	if got := latest([]string{"0.log", "10.log", "9.log", "11.log.20260301", "x.log"}); got != "10.log" {
		t.Error(got)
	}
}

func TestTunnelEnds(t *testing.T) {
	const table = "Iface\tDestination\tGateway \tFlags\neth0\t00000000\t0100E70A\t0003\nflannel.1\t0000E80A\t0000E80A\t0003\ncni0\t0001E80A\t00000000\t0001\nflannel.1\tx\n"
	if got := tunnelEnds(table); !slices.Equal(got, []string{"10.232.0.0"}) {
		t.Error(got)
	}
}

// An etcd whose writes take seconds gets time to end two.
func TestSlowWritesAreWaitedFor(t *testing.T) {
	for _, tt := range []struct {
		name        string
		early, late string // what it has measured before, and from the third look on
		looks       int32
	}{
		{"slow", fmt.Sprintf(etcdMetrics, 9, 9, 9, 10), fmt.Sprintf(etcdMetrics, 9, 9, 9, 12), 3},
		{"fast", fmt.Sprintf(etcdMetrics, 10, 10, 10, 10), fmt.Sprintf(etcdMetrics, 12, 12, 12, 12), 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var looks atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if looks.Add(1) < 3 {
					_, _ = io.WriteString(w, tt.early)
					return
				}
				_, _ = io.WriteString(w, tt.late)
			}))
			defer server.Close()
			c := &collector{m: machine(t, map[string]string{"/etc/kubernetes/manifests/etcd.yaml": ""}), patience: 1}
			c.m.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
			}
			early := c.etcdMetrics(t.Context())
			late := c.laterMetrics(t.Context(), early)
			if looks.Load() != tt.looks || late == nil {
				t.Errorf("%d looks, not %d: %+v", looks.Load(), tt.looks, late)
			}
		})
	}
}

// A machine with a list tells which of its files are not as its image made them; one without has none to compare.
func TestFilesOfAMachine(t *testing.T) {
	m := machine(t, map[string]string{"usr/sbin/runc": "the runc"})
	if n := collect(t.Context(), m, Options{}, noJournal); len(n.Files) > 0 || n.Errors["files"] != "" {
		t.Errorf("without a list: %+v, %s", n.Files, n.Errors["files"])
	}
	files, err := inventory.Make(m.Root, []string{"usr"}, func(string) (string, bool) { return "containerd", true })
	if err != nil {
		t.Fatal(err)
	}
	if err := (inventory.List{Files: files}).Write(m.Root); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(m.Path("/usr/sbin/runc"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n := collect(t.Context(), m, Options{}, noJournal)
	if len(n.Files) != 1 || n.Files[0].Path != "/usr/sbin/runc" || n.Files[0].Component != "containerd" {
		t.Errorf("%+v, %s", n.Files, n.Errors["files"])
	}
	if err := os.WriteFile(m.Path(inventory.Path), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := collect(t.Context(), m, Options{}, noJournal); n.Errors["files"] == "" {
		t.Error("nothing says that the list cannot be read")
	}
}

func TestRemembered(t *testing.T) {
	ran := 0
	run := remembered(func(_ context.Context, argv ...string) (string, error) {
		if ran++; ran == 1 {
			return "", errors.New("it failed")
		}
		return argv[0], nil
	})
	for i, want := range []string{"", "nft", "nft", "ip"} {
		program := "nft"
		if i == 3 {
			program = "ip"
		}
		if text, err := run(t.Context(), program); text != want || (err == nil) != (i > 0) {
			t.Errorf("%d: %q, %v", i, text, err)
		}
	}
	if ran != 3 {
		t.Errorf("%d programs ran, want 3: one failed, and two are different", ran)
	}
}
