package config

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	tests := []struct {
		name, want string // want is a part of the message, "" when accepted
	}{
		{"a", ""},
		{"7", ""},
		{"cp-1", ""},
		{strings.Repeat("a", 20), ""},
		{strings.Repeat("a", 64), "use at most"},
		{"a;rm -rf /", "is not a valid name"},
		{"<x>", "is not a valid name"},
		{"$(id)", "is not a valid name"},
		{"`id`", "is not a valid name"},
		{"../x", "is not a valid name"},
		{"a\nb", "is not a valid name"},
		{"a\n", "is not a valid name"},
		{"a.b", "is not a valid name"},
		{"a_b", "is not a valid name"},
		{"a'b", "is not a valid name"},
		{"é", "is not a valid name"},
		{"A", "is not a valid name"},
		{"-a", "is not a valid name"},
		{"a-", "is not a valid name"},
	}
	for _, tt := range tests {
		files := map[string]string{
			"name":          plane + "name: " + strconv.Quote(tt.name),
			"nodes[0].name": strings.Replace(plane, "cp1", strconv.Quote(tt.name), 1),
		}
		for field, file := range files {
			t.Run(field+" "+tt.name, func(t *testing.T) {
				_, _, err := Parse("f", []byte(file))
				if tt.want == "" {
					if err != nil {
						t.Errorf("got %v, want it accepted", err)
					}
					return
				}
				problems, _ := err.(Problems)
				if len(problems) != 1 || problems[0].Field != field || !strings.Contains(problems[0].Message, tt.want) {
					t.Errorf("got %v, want one problem of %s with %q", err, field, tt.want)
				}
			})
		}
	}
}

func TestNameLength(t *testing.T) {
	runProblemTests(t, []problemTest{
		{"cluster", plane + "name: " + strings.Repeat("a", 21), []string{`2: name: "aaaaaaaaaaaaaaaaaaaaa" has 21 characters; use at most 20`}},
		{"node", strings.Replace(plane, "cp1", strings.Repeat("a", 63), 1), nil},
		{"empty", plane + "name: ''", []string{`2: name: "" is not a valid name: use lowercase letters, digits and inner dashes, at most 20 characters`}},
	})
}

func TestVersion(t *testing.T) {
	tests := []struct {
		name string
		want bool
	}{
		{"v1.36.3", true}, {"v1.0.0", true}, {"v10.20.30", true},
		{"1.36.3", false}, {"v1.36", false}, {"v1.36.3-rc.1", true}, {"v1.36.3\n", false},
		{"v1.036.3", false}, {"v1.36.3.4", false}, {"latest", true}, {"", false}, {"v1.36.3;id", false},
		{"v1.38.0-alpha.2.411+abcdef0123456", true}, {"ci/v1.38.0-alpha.2.411+abcdef0123456", true}, {"v1.36.3-4+0f9e9cfe595fc2-dirty", true},
		{"ci/latest", true}, {"ci/latest-1.37", true}, {"stable-1.36", true}, {"stable-1", true},
		{"ci/v1.36.3", false}, {"ci/", false}, {"ci/../x", false}, {"latest-2.1", false}, {"v1.36.3+", false}, {"v1.36.3-", false}, {"v1.36.3+a/b", false}, {"auto", false},
	}
	for _, tt := range tests {
		_, _, err := Parse("f", []byte(plane+"kubernetes: {version: "+strconv.Quote(tt.name)+"}"))
		if got := err == nil; got != tt.want {
			t.Errorf("%q: accepted %v, want %v (%v)", tt.name, got, tt.want, err)
		}
	}
}

func TestAddons(t *testing.T) {
	const use = "; use flux, git, load-balancer, local-path, metrics-server, node-exporter, prometheus, proxy, registry, sops"
	runProblemTests(t, []problemTest{
		{"none", plane + "addons: []", nil},
		{"null", plane + "addons:", nil},
		{"all", plane + "addons: [sops, registry, prometheus, node-exporter, metrics-server, local-path, load-balancer, git, flux]", nil},
		{"without what it needs", plane + "addons: [sops]", nil},
		{"unknown", plane + "addons: [istio]", []string{`2: addons[0]: "istio" is not an add-on` + use}},
		{"near", plane + "addons: [metric-server]", []string{`2: addons[0]: "metric-server" is not an add-on; did you mean metrics-server?` + use}},
		{"empty name", plane + "addons: [~]", []string{`2: addons[0]: "" is not an add-on` + use}},
		{"no text", plane + "addons: [7]", []string{`2: addons[0]: found the number "7"; use text (in quotes when it looks like a number, date or true/false)`}},
		{"no list", plane + "addons: git", []string{`2: addons: found the text "git"; use a list`}},
		{"every problem", plane + "addons:\n- git\n- istio\n- git\n- istio\n", []string{
			`4: addons[1]: "istio" is not an add-on` + use,
			`5: addons[2]: "git" is already addons[0] on line 3; keep one of them`,
			`6: addons[3]: "istio" is not an add-on` + use,
		}},
	})
}

func TestSource(t *testing.T) {
	const use = "; use auto, release, modules, the absolute path of a directory, or the URL of a release mirror such as https://mirror.example/release"
	const unknown = "is not an HTTP URL"
	const user = "the URL has a user or a password, which would be shown in logs"
	const query = "the URL has a query or a fragment, which would be shown in logs and do not name a directory"
	tests := []struct{ name, want string }{
		{"auto", ""},
		{"release", ""},
		{"modules", ""},
		{"/srv/k8s v1.36", ""},
		{"https://mirror.example/release", ""},
		{"http://10.0.0.1:8080/release/", ""},
		{"http://[fd00::1]/x", ""},
		{"", unknown},
		{"module", unknown},
		{"bin", unknown},
		{"./bin", unknown},
		{"../bin", unknown},
		{"~/bin", unknown},
		{"file:///srv/k8s", unknown},
		{"ftp://mirror.example/release", unknown},
		{"mirror.example/release", unknown},
		{"https://mirror.example/a\nb", unknown},
		{"https://user:secret@far away/", unknown},
		{"user:secret@mirror.example/release", unknown},
		{"https:///release", "the URL has no host"},
		{"https:release", "the URL has no host"},
		{"https://user@mirror.example/release", user},
		{"https://user:secret@mirror.example/release", user},
		{"https://mirror.example/release?token=secret", query},
		{"https://mirror.example/release?", query},
		{"https://mirror.example/release#secret", query},
		{"https://mirror.example/release#", query},
		{"/srv/k8s/", `"/srv/k8s/" is not in its plain form, which is "/srv/k8s"`},
		{"/srv/../k8s", `"/srv/../k8s" is not in its plain form, which is "/k8s"`},
		{"/srv/k8s\n", `"/srv/k8s\n" has control characters`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := tt.want
			if want != "" {
				want = "f:2: kubernetes.source: " + want + use
			}
			got := ""
			if _, _, err := Parse("f", []byte(plane+"kubernetes: {source: "+strconv.Quote(tt.name)+"}")); err != nil {
				got = err.Error()
			}
			if got != want || strings.Contains(got, "secret") {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestBase(t *testing.T) {
	tests := []struct{ name, want string }{
		{"", ""},
		{"/srv/images/debian-12-generic-amd64.qcow2", ""},
		{"/srv/a b, c: d.qcow2", ""},
		{"debian.qcow2", "is not an absolute path"},
		{"./debian.qcow2", "is not an absolute path"},
		{"~/debian.qcow2", "is not an absolute path"},
		{"https://user:secret@mirror.example/debian.qcow2", "is not an absolute path"},
		{"/srv/images/../debian.qcow2", `"/srv/images/../debian.qcow2" is not in its plain form, which is "/srv/debian.qcow2"`},
		{"/srv/images//debian.qcow2", `"/srv/images//debian.qcow2" is not in its plain form, which is "/srv/images/debian.qcow2"`},
		{"/srv/debian.qcow2\n", `"/srv/debian.qcow2\n" has control characters`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := ""
			if tt.want != "" {
				want = "f:2: image.base: " + tt.want + "; use the absolute path of a qcow2 image such as /srv/images/debian-12-generic-amd64.qcow2"
			}
			got := ""
			if _, _, err := Parse("f", []byte(plane+"image: {base: "+strconv.Quote(tt.name)+"}")); err != nil {
				got = err.Error()
			}
			if got != want || strings.Contains(got, "secret") {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestDistribution(t *testing.T) {
	const fetched = `from: "r.example/node@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"`
	tests := []struct{ image, want string }{
		{"distribution: trixie", ""},
		{"distribution: bookworm", ""},
		{"base: /srv/debian.qcow2, distribution: bookworm", ""},
		{"distribution: trixy", `"trixy" is not known; did you mean "trixie"?; use bookworm or trixie`},
		{`distribution: "13"`, `"13" is not known; use bookworm or trixie`},
		{fetched, ""},
		{fetched + ", distribution: trixie", "the image that image.from fetches has a distribution already; keep one of them"},
	}
	for _, tt := range tests {
		want := tt.want
		if want != "" {
			want = "f:2: image.distribution: " + want
		}
		got := ""
		if _, _, err := Parse("f", []byte(plane+"image: {"+tt.image+"}")); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.image, got, want)
		}
	}
}

// What the file says stays, and what is fetched or exists already is not made of anything.
func TestChooseDistribution(t *testing.T) {
	tests := []struct {
		c    Cluster
		want string
	}{
		{Cluster{}, Trixie},
		{Cluster{Image: Image{Base: "/srv/debian.qcow2"}}, Trixie},
		{Cluster{Image: Image{Distribution: Bookworm}}, Bookworm},
		{Cluster{Image: Image{From: "r.example/node@sha256:0"}}, ""},
		{Cluster{Machines: MachinesSSH}, ""},
	}
	for _, tt := range tests {
		if tt.c.ChooseDistribution(Trixie); tt.c.Image.Distribution != tt.want {
			t.Errorf("%+v, want %q", tt.c.Image, tt.want)
		}
	}
}

func TestURI(t *testing.T) {
	const remote = "remote libvirt is out of scope in this version, disks and networks are made on this host"
	const unknown = "is not a libvirt URI that this version knows"
	tests := []struct{ name, want string }{
		{"auto", ""},
		{"qemu:///system", ""},
		{"lxc:///system", ""},
		{"qemu:///session", "is a session libvirt, out of scope in this version: it may not create the network the nodes need"},
		{"qemu+ssh://root@far/system", "has the transport +ssh: " + remote},
		{"qemu+tls://far/system", "has the transport +tls: " + remote},
		{"qemu+tcp://far/system", "has the transport +tcp: " + remote},
		{"qemu://far/system", `has the host part "far": ` + remote},
		{"qemu:///system?socket=/x", "has parameters, which are out of scope in this version"},
		{"xen:///system", unknown},
		{"system", unknown},
		{"", unknown},
		{"qemu:///system\n", unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var want string
			if tt.want != "" {
				want = fmt.Sprintf("f:2: libvirt.uri: %q %s; use auto, qemu:///system or lxc:///system", tt.name, tt.want)
			}
			got := ""
			if _, _, err := Parse("f", []byte(plane+"libvirt: {uri: "+strconv.Quote(tt.name)+"}")); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestNumberProblems(t *testing.T) {
	const r, tu = "2: resources.", "2: tuning."
	runProblemTests(t, []problemTest{
		{"control plane", plane + "resources: {control_plane: {cpus: 0, memory: 1699, disk: 4}}", []string{
			r + "control_plane.cpus: 0 is out of range; use 1 to 256 CPUs",
			r + "control_plane.memory: 1699 is out of range; use 1700 to 1048576 MiB",
			r + "control_plane.disk: 4 is out of range; use 5 to 4096 GiB",
		}},
		{"worker", plane + "resources: {worker: {cpus: -1, memory: 1023, disk: 5000}}", []string{
			r + "worker.cpus: -1 is out of range; use 1 to 256 CPUs",
			r + "worker.memory: 1023 is out of range; use 1024 to 1048576 MiB",
			r + "worker.disk: 5000 is out of range; use 5 to 4096 GiB",
		}},
		{"tuning low", plane + "tuning: {join_max_wait_seconds: 0, cp_join_retry_attempts: 0, cp_join_retry_sleep_seconds: 0, cp_join_retry_max_sleep_seconds: 0}", []string{
			tu + "join_max_wait_seconds: 0 is out of range; use 1 to 86400 seconds",
			tu + "cp_join_retry_attempts: 0 is out of range; use 1 to 100 attempts",
			tu + "cp_join_retry_sleep_seconds: 0 is out of range; use 1 to 86400 seconds",
			tu + "cp_join_retry_max_sleep_seconds: 0 is out of range; use 1 to 86400 seconds",
		}},
		{"tuning high", plane + "tuning: {cp_join_retry_max_total_seconds: 86401, cp_stabilize_timeout_seconds: 86401, worker_join_timeout_seconds: 86401, worker_join_retry_attempts: 101}", []string{
			tu + "cp_join_retry_max_total_seconds: 86401 is out of range; use 1 to 86400 seconds",
			tu + "cp_stabilize_timeout_seconds: 86401 is out of range; use 1 to 86400 seconds",
			tu + "worker_join_timeout_seconds: 86401 is out of range; use 1 to 86400 seconds",
			tu + "worker_join_retry_attempts: 101 is out of range; use 1 to 100 attempts",
		}},
		{"stagger", plane + "tuning: {stagger: node}", []string{tu + `stagger: "node" is not known; use join or machine`}},
		{"sleep order", plane + "tuning: {cp_join_retry_sleep_seconds: 9, cp_join_retry_max_sleep_seconds: 8}", []string{
			tu + "cp_join_retry_max_sleep_seconds: 8 is below tuning.cp_join_retry_sleep_seconds; use at least 9 seconds",
		}},
		{"total below wait", plane + "tuning: {join_max_wait_seconds: 2401}", []string{
			tu + "cp_join_retry_max_total_seconds: 2400 (the default) is below tuning.join_max_wait_seconds; use at least 2401 seconds",
		}},
	})
}
