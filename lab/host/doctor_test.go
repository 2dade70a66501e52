package host

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// healthy is a computer that carries anything, and what is different about this one.
func healthy(t *testing.T, files map[string]string) computer {
	t.Helper()
	all := map[string]string{
		"proc/cpuinfo": intelCPU, "dev/kvm": "", "proc/filesystems": overlay, "proc/swaps": "Filename\tType\tSize\tUsed\tPriority\n",
		"proc/sys/kernel/osrelease":              "6.12.0-1-amd64\n",
		"proc/sys/fs/inotify/max_user_instances": "4096\n", "proc/sys/fs/inotify/max_user_watches": "1048576\n",
		"sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n", "sys/module/br_netfilter/": "", "sys/module/vxlan/": "",
		"proc/thread-self/net/route": "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n" +
			"eth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\neth0\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n",
	}
	maps.Copy(all, files)
	fakePrograms(t, map[string]string{"dpkg-query": `for p in "$@"; do echo "$p installed"; done`})
	return computer{
		computerKernel: computerKernel{root: fakeRoot(t, all)},
		look:           func(string) (string, error) { return "/usr/bin/x", nil },
		run: func(_ context.Context, argv ...string) (string, error) {
			if argv[0] == "go" {
				return "go1.99.0\n", nil
			}
			return "-P FORWARD ACCEPT\n", nil
		},
	}
}

var plan = Plan{URI: Containers, Build: true, Network: netip.MustParsePrefix("10.30.0.0/24")}

// bad are the checks of a result.
func bad(checks []Check, r Result) (ids []string) {
	for _, c := range checks {
		if c.Result == r {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

func TestHealthyComputer(t *testing.T) {
	for _, uri := range []string{Containers, VirtualMachines} {
		p := plan
		p.URI, p.Own = uri, true
		for _, c := range healthy(t, nil).examine(t.Context(), p) {
			if c.Result != OK || c.ID == "" || c.Seen == "" {
				t.Errorf("%s: %+v", uri, c)
			}
		}
	}
}

func TestObstacles(t *testing.T) {
	docker := func(_ context.Context, argv ...string) (string, error) {
		if argv[0] == "go" {
			return "go1.99.0\n", nil
		}
		return "-P FORWARD DROP\n-A FORWARD -j DOCKER-USER\n", nil
	}
	route := func(destination, mask string) map[string]string {
		return map[string]string{"proc/thread-self/net/route": "tun0\t" + destination + "\t00000000\t0001\t0\t0\t0\t" + mask + "\t0\t0\t0\n"}
	}
	for _, tt := range []struct {
		name   string
		files  map[string]string
		change func(*computer, *Plan)
		id     string
		result Result
		says   string
	}{
		{name: "a user", change: func(c *computer, _ *Plan) { c.user = 1000 }, id: "root", result: Fails, says: "sudo labctl up"},
		{name: "no go", change: func(c *computer, _ *Plan) {
			c.look = func(p string) (string, error) {
				if p == "go" {
					return "", exec.ErrNotFound
				}
				return p, nil
			}
		}, id: "go", result: Fails, says: "https://go.dev/dl"},
		{name: "Debian 13's go", change: func(c *computer, _ *Plan) {
			c.run = func(context.Context, ...string) (string, error) { return "go1.24.4\n", nil }
		}, id: "go", result: Mends, says: "go1.24.4, older than go1."},
		{name: "an old go that compiles nothing", change: func(c *computer, p *Plan) {
			run := c.run
			c.run = func(ctx context.Context, argv ...string) (string, error) {
				if argv[0] == "go" {
					return "", errors.New("broken")
				}
				return run(ctx, argv...)
			}
			p.Build = false
		}, id: "go", result: OK},
		{name: "a fresh Debian", files: map[string]string{"proc/filesystems": "nodev\ttmpfs\n", "lib/modules/6.12.0-1-amd64/modules.dep": "kernel/fs/overlay.ko.xz:\n"},
			id: "kernel-modules", result: Mends, says: "overlay"},
		{name: "a kernel that was updated", files: map[string]string{"proc/filesystems": "nodev\ttmpfs\n", "lib/modules/6.12.1-1-amd64/modules.dep": "kernel/fs/overlay.ko.xz:\n"},
			id: "kernel-modules", result: Fails, says: "reboot"},
		{name: "Linux' limits", files: map[string]string{"proc/sys/fs/inotify/max_user_instances": "128\n"}, id: "inotify", result: Mends, says: "128, fewer than 1024"},
		{name: "a swap file", files: map[string]string{"proc/swaps": "Filename\tType\n/swap.img\tfile\n"}, id: "swap", result: OK, says: "/swap.img"},
		{name: "zram for virtual machines", files: map[string]string{"proc/swaps": "Filename\tType\n/dev/zram0\tpartition\n"},
			change: func(_ *computer, p *Plan) { p.URI = VirtualMachines }, id: "swap", result: OK, says: "no matter"},
		{name: "no KVM", files: map[string]string{"proc/cpuinfo": "flags\t\t: fpu vme\n"}, change: func(_ *computer, p *Plan) { p.URI = VirtualMachines }, id: "processor", result: Warn, says: "ten times slower"},
		{name: "AppArmor", files: map[string]string{"sys/module/apparmor/parameters/enabled": "Y\n"}, change: func(_ *computer, p *Plan) { p.URI = VirtualMachines },
			id: "apparmor", result: OK, says: "storage pool"},
		{name: "AppArmor and containers", files: map[string]string{"sys/module/apparmor/parameters/enabled": "Y\n"}, id: "apparmor", result: OK},
		{name: "the same network", files: route("00001E0A", "00FFFFFF"), id: "network", result: Fails, says: "10.30.0.0/24 at tun0"},
		{name: "a part of it", files: route("801E1E0A", "80FFFFFF"), id: "network", result: OK},
		{name: "an address in it", files: route("05001E0A", "FFFFFFFF"), id: "network", result: Fails, says: "10.30.0.5/32 at tun0"},
		{name: "a VPN of all of 10.0.0.0/8", files: route("0000000A", "000000FF"), id: "network", result: Warn, says: "a part of 10.0.0.0/8"},
		{name: "a VPN, and a namespace", files: route("00001E0A", "00FFFFFF"), change: func(_ *computer, p *Plan) { p.Own = true }, id: "network", result: OK},
		{name: "Docker", files: map[string]string{"proc/sys/net/bridge/bridge-nf-call-iptables": "1\n"}, change: func(c *computer, _ *Plan) { c.run = docker }, id: "forwarding", result: Warn, says: "DOCKER-USER"},
		{name: "another firewall", files: map[string]string{"proc/sys/net/bridge/bridge-nf-call-iptables": "1\n"}, change: func(c *computer, _ *Plan) {
			c.run = func(_ context.Context, argv ...string) (string, error) {
				if argv[0] == "go" {
					return "go1.99.0\n", nil
				}
				return "-P FORWARD DROP\n", nil
			}
		}, id: "forwarding", result: Warn, says: "--insert FORWARD"},
		{name: "rules that cannot be read", change: func(c *computer, _ *Plan) {
			c.run = func(_ context.Context, argv ...string) (string, error) {
				if argv[0] == "go" {
					return "go1.99.0\n", nil
				}
				return "", errors.New("Permission denied")
			}
		}, id: "forwarding", result: Warn, says: "Permission denied"},
		{name: "a limit that cannot be read", files: map[string]string{"proc/sys/fs/inotify/max_user_watches": "many\n"}, id: "inotify", result: Fails, says: "invalid syntax"},
		{name: "Docker that leaves bridges alone", change: func(c *computer, _ *Plan) { c.run = docker }, id: "forwarding", result: OK},
		{name: "ufw", files: map[string]string{"etc/ufw/ufw.conf": "# on\nENABLED=yes\nLOGLEVEL=low\n"}, id: "firewall", result: Warn, says: "ufw allow from 10.30.0.0/24"},
		{name: "cgroup v2 without memory", files: map[string]string{"sys/fs/cgroup/cgroup.controllers": "cpuset cpu io pids\n"}, id: "cgroups", result: Fails, says: "v2 without memory"},
	} {
		c, p := healthy(t, tt.files), plan
		if tt.change != nil {
			tt.change(&c, &p)
		}
		checks := c.examine(t.Context(), p)
		i := slices.IndexFunc(checks, func(c Check) bool { return c.ID == tt.id })
		got := checks[i]
		if got.Result != tt.result || !strings.Contains(got.Seen+got.Why+got.Do, tt.says) || (got.Result == OK) != (got.Why == "") {
			t.Errorf("%s: %+v", tt.name, got)
		}
		for _, r := range []Result{Fails, Warn, Mends} {
			if others := bad(checks, r); len(others) > 0 && !slices.Equal(others, []string{tt.id}) {
				t.Errorf("%s: also %s: %v", tt.name, r, others)
			}
		}
	}
}

func TestFiveObstaclesAtOnce(t *testing.T) {
	c := healthy(t, map[string]string{"sys/fs/cgroup/cgroup.controllers": "cpuset cpu io pids\n", "proc/filesystems": "nodev\ttmpfs\n",
		"lib/modules/6.12.1-1-amd64/modules.dep": "kernel/fs/overlay.ko.xz:\n"})
	c.user = 1000
	c.look = func(p string) (string, error) { return "", exec.ErrNotFound }
	t.Setenv("PATH", t.TempDir())
	got := bad(c.examine(t.Context(), plan), Fails)
	if want := []string{"root", "packages", "go", "cgroups", "kernel-modules"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
