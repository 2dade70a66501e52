package join

import (
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"k8slab/lab/symptom"
)

func TestEnableCRI(t *testing.T) {
	tests := []struct{ name, in, want string }{ // want "" is unchanged
		{"alone", "disabled_plugins = [\"cri\"]\nversion = 2\n", "version = 2\n"},
		{"with a comment", "disabled_plugins = [\"cri\"] # Docker's\nversion = 2\n", "disabled_plugins = [] # Docker's\nversion = 2\n"},
		{"first of two", `disabled_plugins = ["cri", "btrfs"]`, `disabled_plugins = ["btrfs"]`},
		{"last of two", `disabled_plugins = ['btrfs', 'cri']`, `disabled_plugins = ['btrfs']`},
		{"by its long names", `disabled_plugins = ["io.containerd.cri.v1.runtime", "io.containerd.cri.v1.images", "io.containerd.grpc.v1.cri"]`, "disabled_plugins = []"},
		{"over several lines", "# keep\ndisabled_plugins = [\n  \"cri\",\n  \"zfs\",\n]\n[grpc]\n  uid = 0\n", "# keep\ndisabled_plugins = [\n  \n  \"zfs\",\n]\n[grpc]\n  uid = 0\n"},
		{"not there", "version = 3\n", ""},
		{"another plugin", `disabled_plugins = ["io.containerd.internal.v1.cri-like"]`, ""},
		{"only in a comment", "# disabled_plugins = [\"cri\"]\nversion = 3\n", ""},
		{"in another table", "version = 3\n[plugins.x]\ndisabled_plugins = [\"cri\"]\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, changed := enableCRI(tt.in)
			want := tt.want
			if want == "" {
				want = tt.in
			}
			if got != want || changed != (tt.want != "") {
				t.Errorf("got %q, %t, want %q", got, changed, want)
			}
			if again, changed := enableCRI(got); changed {
				t.Errorf("and once more to %q", again)
			}
		})
	}
}

func TestDisableSwapLines(t *testing.T) {
	in := "# swap was on sda2\n/dev/sda1 / ext4 defaults 0 1\n/swapfile none swap sw 0 0\nUUID=1 none\tswap\tdefaults 0 0\n/dev/sdb /swap ext4 defaults 0 2\n"
	want := "# swap was on sda2\n/dev/sda1 / ext4 defaults 0 1\n# off for kubelet: /swapfile none swap sw 0 0\n# off for kubelet: UUID=1 none\tswap\tdefaults 0 0\n/dev/sdb /swap ext4 defaults 0 2\n"
	got, changed := disableSwapLines(in)
	if got != want || !changed {
		t.Errorf("got %t\n%s", changed, got)
	}
	if again, changed := disableSwapLines(got); changed || again != got {
		t.Errorf("and once more to\n%s", again)
	}
}

func TestCountRange(t *testing.T) {
	for list, want := range map[string]int{"0": 1, "0-3": 4, "0-1,4,6-7": 5} {
		if got, err := countRange(list); got != want || err != nil {
			t.Errorf("%q: %d, %v", list, got, err)
		}
	}
	for _, list := range []string{"", "a", "3-1", "0-", "0,,1"} {
		if got, err := countRange(list); err == nil {
			t.Errorf("%q: %d", list, got)
		}
	}
}

func TestParseUnits(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "units.txt"))
	if err != nil {
		t.Fatal(err)
	}
	found := ParseUnits(string(text))
	kubelet, containerd := found["kubelet.service"], found["containerd.service"]
	if kubelet["DropInPaths"] != packagedDropIn || kubelet.active() || kubelet.masked() || kubelet.absent() {
		t.Errorf("kubelet: %v", kubelet)
	}
	if !containerd.active() || containerd.state() != "active (running)" {
		t.Errorf("containerd: %v", containerd)
	}
	f := newFakeMachine(t)
	f.write("/etc/default/kubelet", "# more\nexport KUBELET_EXTRA_ARGS=\"--v=2\"\n")
	want := map[string]string{
		"KUBELET_KUBECONFIG_ARGS": "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf",
		"KUBELET_CONFIG_ARGS":     "--config=/var/lib/kubelet/config.yaml", "KUBELET_EXTRA_ARGS": "--v=2",
	}
	if got := f.environment(kubelet); !maps.Equal(got, want) {
		t.Errorf("environment %q", got)
	}
}

func TestHasKubeconfig(t *testing.T) {
	tests := []struct {
		name, exec, env, file string
		want                  bool
	}{
		{"kubeadm's variable", "/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS", `"KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/a --kubeconfig=/b"`, "", true},
		{"in braces", "/usr/bin/kubelet ${KUBELET_KUBECONFIG_ARGS}", "KUBELET_KUBECONFIG_ARGS=--kubeconfig=/b", "", true},
		{"plain", "/usr/bin/kubelet --kubeconfig /b", "", "", true},
		{"variable of a file", "/usr/bin/kubelet $KUBELET_EXTRA_ARGS", "", "KUBELET_EXTRA_ARGS=--kubeconfig=/b", true},
		{"bootstrap alone", "/usr/bin/kubelet --bootstrap-kubeconfig=/a", "", "", false},
		{"variable without value", "/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS", "", "", false},
		{"variable that is not used", "/usr/bin/kubelet", "KUBELET_KUBECONFIG_ARGS=--kubeconfig=/b", "", false},
		{"emptied", "/usr/bin/kubelet --kubeconfig=", "", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFakeMachine(t)
			f.write("/etc/default/kubelet", tt.file)
			u := unit{"ExecStart": "{ path=/usr/bin/kubelet ; argv[]=" + tt.exec + " ; ignore_errors=no }", "Environment": tt.env, "EnvironmentFiles": "/etc/default/kubelet (ignore_errors=yes)"}
			if got := f.hasKubeconfig(u); got != tt.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestLocalAddresses(t *testing.T) {
	if got := localV4(fibTrie); !slices.Equal(got, []netip.Addr{netip.MustParseAddr("10.30.0.21"), netip.MustParseAddr("127.0.0.1")}) {
		t.Errorf("got %v", got)
	}
	table := "fe80000000000000505400fffe123456 02 40 20 80     eth0\n00000000000000000000000000000001 01 80 10 80       lo\nbroken\n"
	if got := localV6(table); !slices.Equal(got, []netip.Addr{netip.MustParseAddr("fe80::5054:ff:fe12:3456"), netip.MustParseAddr("::1")}) {
		t.Errorf("got %v", got)
	}
}

func TestListeners(t *testing.T) {
	f := newFakeMachine(t)
	f.listen(10250, 77, "kubelet")
	f.listen(6443, 78, "kube-apiserver")
	f.listen(80, 79, "nginx")
	f.write("/proc/net/tcp", tcpHeading+
		"   0: 00000000:094B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 5 1 0 100 0 0 10 0\n"+ // of a process that cannot be seen
		"   1: 0100007F:280B 0100007F:0016 01 00000000:00000000 00:00000000 00000000     0        0 6 1 0 100 0 0 10 0\n") // a connection
	want := []listener{{2379, "", 0}, {6443, "kube-apiserver", 78}, {10250, "kubelet", 77}}
	if got := f.listeners([]int{2379, 6443, 10250, 10251}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestJudgeLatencies(t *testing.T) {
	series := func(n int, usual, worst time.Duration) []time.Duration {
		return append(slices.Repeat([]time.Duration{usual}, n), worst)
	}
	tests := []struct {
		name    string
		samples []time.Duration
		want    Result
		symptom symptom.ID
	}{
		{"fast", series(60, time.Millisecond, 2*time.Millisecond), OK, ""},
		{"one slow write of many", series(200, time.Millisecond, 500*time.Millisecond), OK, ""},
		{"slow at times", series(20, time.Millisecond, 50*time.Millisecond), Warn, symptom.EtcdSlow},
		{"one very slow write", series(20, time.Millisecond, time.Second), Warn, symptom.EtcdSlow},
		{"slower than a heartbeat", series(5, 150*time.Millisecond, 200*time.Millisecond), Blocked, symptom.EtcdSlow},
		{"nothing measured", nil, Warn, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := judgeLatencies(defaultEtcd, tt.samples); got.Result != tt.want || got.Symptom != tt.symptom {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// The measurement ends in time, on a slow disk too, and leaves nothing behind.
func TestSyncLatencies(t *testing.T) {
	dir := t.TempDir()
	clock := time.Now()
	slow := func() time.Time { clock = clock.Add(200 * time.Millisecond); return clock }
	samples, err := syncLatencies(t.Context(), dir, slow)
	if err != nil || len(samples) < syncFewest || len(samples) > 2*syncFewest {
		t.Errorf("%d samples, %v", len(samples), err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("left %v", entries)
	}
	if _, err := syncLatencies(t.Context(), filepath.Join(dir, "missing"), time.Now); err == nil {
		t.Error("measured a directory that is not there")
	}
}

func TestJudgeSpace(t *testing.T) {
	tests := []struct {
		name    string
		dir     string
		space   Space
		want    Result
		symptom symptom.ID
	}{
		{"room", "/var/lib/kubelet", Space{Bytes: 100, FreeBytes: 50, Inodes: 100, FreeInodes: 50}, OK, ""},
		{"evicting", "/var/lib/kubelet", Space{Bytes: 100, FreeBytes: 9}, Blocked, symptom.DiskFull},
		{"no inodes", "/var/lib/kubelet", Space{Bytes: 100, FreeBytes: 50, Inodes: 100, FreeInodes: 4}, Blocked, symptom.DiskFull},
		{"no inode limit", "/var/lib/kubelet", Space{Bytes: 100, FreeBytes: 50}, OK, ""},
		{"images will go", "/var/lib/containerd", Space{Bytes: 100, FreeBytes: 12}, Warn, symptom.DiskFull},
		{"elsewhere they do not", "/var/lib/kubelet", Space{Bytes: 100, FreeBytes: 12}, OK, ""},
		{"no size", "/var/lib/kubelet", Space{}, Warn, symptom.DiskFull},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := judgeSpace(tt.dir, tt.space, tt.dir == "/var/lib/containerd"); got.Result != tt.want || got.Symptom != tt.symptom {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestJudgeClock(t *testing.T) {
	for offset, want := range map[time.Duration]Result{
		0: OK, 29 * time.Second: OK, -29 * time.Second: OK, 31 * time.Second: Warn, -2 * time.Minute: Warn, 6 * time.Minute: Blocked, -24 * time.Hour: Blocked,
	} {
		if got := judgeClock(offset); got.Result != want {
			t.Errorf("%s: %+v", offset, got)
		}
	}
}

func TestCapturedHosts(t *testing.T) {
	hosts := []string{"10.30.0.10", "api.example.com", "fd00::10"}
	tests := []struct {
		name string
		env  map[string]string
		want []string
	}{
		{"none", nil, nil},
		{"for https", map[string]string{"HTTPS_PROXY": "http://p:1"}, hosts},
		{"in lower case", map[string]string{"https_proxy": "p:1"}, hosts},
		{"for http only", map[string]string{"HTTP_PROXY": "http://p:1"}, nil},
		{"by network and domain", map[string]string{"HTTPS_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8,.example.com,fd00::/8"}, nil},
		{"by a wildcard that Go does not know", map[string]string{"HTTPS_PROXY": "http://p:1", "NO_PROXY": "10.30.*,example.com"}, []string{"10.30.0.10", "fd00::10"}},
		{"everything", map[string]string{"HTTPS_PROXY": "http://p:1", "no_proxy": "*"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := capturedHosts(tt.env, hosts); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// The version that the linker wrote spares an emulated machine the start of a large program.
func TestModuleVersion(t *testing.T) {
	kubernetes := func(version string) debug.Module { return debug.Module{Path: "k8s.io/kubernetes", Version: version} }
	built := kubernetes("v1.36.3")
	replaced := kubernetes("v1.36.3")
	replaced.Replace = &debug.Module{Path: "./fork"}
	tests := []struct {
		name string
		info debug.BuildInfo
		want string
	}{
		{"as a tool of another module", debug.BuildInfo{Main: debug.Module{Path: "image"}, Deps: []*debug.Module{{Path: "k8s.io/api"}, &built}}, "v1.36.3"},
		{"as its own module", debug.BuildInfo{Main: kubernetes("v1.35.4")}, "v1.35.4"},
		{"from a changed tree", debug.BuildInfo{Main: kubernetes("v1.35.4+dirty")}, ""},
		{"from a tree without a version", debug.BuildInfo{Main: kubernetes("(devel)")}, ""},
		{"of a pre-release", debug.BuildInfo{Main: kubernetes("v1.37.0-alpha.1")}, ""},
		{"of a fork", debug.BuildInfo{Deps: []*debug.Module{&replaced}}, ""},
		{"of something else", debug.BuildInfo{Main: debug.Module{Path: "image"}}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, ok := moduleVersion(&tt.info); got.text != tt.want && ok || ok != (tt.want != "") {
				t.Errorf("got %s, %t", got, ok)
			}
		})
	}
	self, err := os.Executable() // a Go program without Kubernetes, whose version must be asked for
	if got, ok := builtVersion(self); ok || err != nil {
		t.Errorf("this test has version %s, %v", got, err)
	}
}

func TestMatching(t *testing.T) {
	images := []string{"example.com/pause:3.10", "localhost:5000/a/kube-proxy:v1.36.3", "kube-proxy", "example.com/not-pause:1"}
	if got := matching(images, "pause", ""); !slices.Equal(got, images[:1]) {
		t.Errorf("pause: %q", got)
	}
	if got := matching(images, "kube-proxy", "v1.36.3"); len(got) != 1 || !strings.HasPrefix(got[0], "localhost:5000") {
		t.Errorf("kube-proxy: %q", got)
	}
}
