package fact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8slab/lab/join"
	"k8slab/lab/symptom"
)

// measured is a machine on which one organ was measured.
func measured(t *testing.T, files map[string]string, measure func(*measurer, context.Context) ([]join.Defect, error)) []join.Defect {
	t.Helper()
	m := machine(t, files)
	m.Space = func(string) (join.Space, error) {
		return join.Space{Bytes: 1 << 30, FreeBytes: 1 << 29, Inodes: 1000, FreeInodes: 500}, nil
	}
	found, err := measure(&measurer{m: m, patience: 1}, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestResolver(t *testing.T) {
	const config = "/var/lib/kubelet/config.yaml"
	for _, tt := range []struct {
		name  string
		files map[string]string
		bad   string
	}{
		{"kubelet's default", map[string]string{config: "kind: x", "/etc/resolv.conf": ""}, ""},
		{"kubelet's default is gone", map[string]string{config: "kind: x"}, "/etc/resolv.conf"},
		{"another", map[string]string{config: "resolvConf: /run/resolv.conf", "/run/resolv.conf": ""}, ""},
		{"another is gone", map[string]string{config: "resolvConf: /run/resolv.conf", "/etc/resolv.conf": ""}, "/run/resolv.conf"},
		{"none for pods", map[string]string{config: `resolvConf: ""`}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found := measured(t, tt.files, (*measurer).resolver)
			if tt.bad == "" && len(found) > 0 || tt.bad != "" && (len(found) != 1 || found[0].Where != tt.bad) {
				t.Errorf("%v", found)
			}
		})
	}
}

func TestFileSystems(t *testing.T) {
	healthy := join.Space{Bytes: 1 << 30, FreeBytes: 1 << 29, Inodes: 1000, FreeInodes: 500}
	for _, tt := range []struct {
		name   string
		change func(*join.Space)
		want   symptom.ID
	}{
		{"healthy", func(*join.Space) {}, ""},
		{"makes inodes as needed", func(s *join.Space) { s.Inodes, s.FreeInodes = 0, 0 }, ""},
		{"has no size", func(s *join.Space) { s.Bytes, s.FreeBytes = 0, 0 }, ""},
		{"no inodes", func(s *join.Space) { s.FreeInodes = 0 }, symptom.DiskFull},
		{"no space", func(s *join.Space) { s.FreeBytes = 4096 }, symptom.DiskFull},
		{"read-only", func(s *join.Space) { s.ReadOnly = true }, symptom.ReadOnlyFilesystem},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := machine(t, map[string]string{"/run/x": "", "/var/log/x": ""})
			m.Space = func(path string) (join.Space, error) {
				s := healthy
				if strings.HasSuffix(path, "/run") {
					tt.change(&s)
				}
				return s, nil
			}
			found, err := (&measurer{m: m}).fileSystems(t.Context())
			if err != nil || tt.want == "" && len(found) > 0 || tt.want != "" && (len(found) != 1 || found[0].Symptom != tt.want || found[0].Where != "/run") {
				t.Errorf("%v %v", found, err)
			}
		})
	}
}

func TestJudgeLinks(t *testing.T) {
	env := map[string]string{"FLANNEL_MTU": "1450", "FLANNEL_SUBNET": "10.244.1.1/24"}
	healthy := []Link{{"cni0", 1450, true, []string{"10.244.1.1/24"}}, {"flannel.1", 1450, true, []string{"10.244.1.0/32", "fe80::1/64"}}, {"eth0", 1500, true, nil}}
	for _, tt := range []struct {
		name   string
		change func([]Link)
		want   string
	}{
		{"healthy", func([]Link) {}, ""},
		{"down", func(l []Link) { l[1].Up = false }, "flannel.1: the link is down"},
		{"another MTU", func(l []Link) { l[1].MTU = 1400 }, "flannel.1: its MTU is 1400, and flannel's is 1450"},
		{"no address", func(l []Link) { l[0].Addresses = []string{"fe80::2/64"} }, "cni0: it has no IPv4 address"},
		{"another link is down", func(l []Link) { l[2].Up = false }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			links := slices.Clone(healthy)
			tt.change(links)
			found := judgeLinks(links, env)
			if tt.want == "" && len(found) > 0 || tt.want != "" && (len(found) != 1 || found[0].String() != tt.want) {
				t.Errorf("%v", found)
			}
		})
	}
	if found := judgeLinks([]Link{{"cni0", 1500, false, nil}}, nil); len(found) > 0 {
		t.Errorf("without flannel: %v", found)
	}
}

const etcdManifest = `apiVersion: v1
kind: Pod
metadata: {name: etcd, namespace: kube-system}
spec:
  containers:
  - name: etcd
    image: example.com/etcd:1
    command: [etcd, --name=cp1]
`

func TestReadManifests(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string // of the only defect
	}{
		{"healthy", map[string]string{"etcd.yaml": etcdManifest}, ""},
		{"none", nil, ""},
		{"a user's", map[string]string{"mine.yaml": strings.ReplaceAll(etcdManifest, "name: etcd", "name: mine")}, ""},
		{"hidden from kubelet", map[string]string{"etcd.yaml": etcdManifest, ".etcd.yaml.swp": "x"}, ""},
		{"cut off", map[string]string{"etcd.yaml": etcdManifest[:60]}, "etcd.yaml: kubelet does not run it"},
		{"no YAML", map[string]string{"etcd.yaml": "\x00\x01"}, "etcd.yaml: kubelet does not run it"},
		{"a field that no Pod has", map[string]string{"etcd.yaml": strings.Replace(etcdManifest, "command", "comand", 1)}, "etcd.yaml: kubelet does not run it"},
		{"another's", map[string]string{"etcd.yaml": strings.ReplaceAll(etcdManifest, "name: etcd", "name: etc")}, "etcd.yaml: it is to be the pod kube-system/etcd"},
		{"a copy", map[string]string{"etcd.yaml": etcdManifest, "etcd.yaml.bak": etcdManifest}, "etcd.yaml.bak: it defines the pod kube-system/etcd, as etcd.yaml does"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{}
			for name, text := range tt.files {
				files[manifestDir+"/"+name] = text
			}
			_, found := (&measurer{m: machine(t, files)}).readManifests()
			if tt.want == "" && len(found) > 0 || tt.want != "" && (len(found) != 1 || !strings.HasPrefix(found[0].String(), manifestDir+"/"+tt.want)) {
				t.Errorf("%v", found)
			}
		})
	}
}

func TestCompareStaticPod(t *testing.T) {
	m := machine(t, map[string]string{manifestDir + "/etcd.yaml": etcdManifest})
	all, _ := (&measurer{m: m}).readManifests()
	runs := join.Process{Pod: "kube-system/etcd-cp1", Container: "etcd", Image: "example.com/etcd:1", Command: []string{"etcd", "--name=cp1"}, Running: true}
	for _, tt := range []struct {
		name   string
		change func(*join.Process)
		want   string
	}{
		{"as written", func(*join.Process) {}, ""},
		{"not told", func(p *join.Process) { p.Image, p.Command = "", nil }, ""},
		{"ended", func(p *join.Process) { p.Running, p.Command = false, []string{"x"} }, ""},
		{"another command", func(p *join.Process) { p.Command = []string{"etcd", "--name=cp9"} }, `in the manifest only: "--name=cp1"; in the running container only: "--name=cp9"`},
		{"another image", func(p *join.Process) { p.Image = "example.com/etcd:2" }, "etcd runs example.com/etcd:2"},
		{"another's pod", func(p *join.Process) { p.Pod = "kube-system/other" }, "kubelet has made no container of it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := runs
			tt.change(&p)
			found := all[0].compare([]join.Process{p})
			if tt.want == "" && len(found) > 0 || tt.want != "" && (len(found) != 1 || !strings.Contains(found[0].Text, tt.want)) {
				t.Errorf("%v", found)
			}
		})
	}
}

// What failed is told with its log lines; what may only be starting is not read, and a machine that joins has no organs.
func TestSettled(t *testing.T) {
	node := func() *Node {
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		return &Node{Time: now, Errors: map[string]string{}, Units: map[string]Unit{"containerd": {Started: now.Add(-time.Hour)}},
			Texts:  []Text{{"containerd", "a\nRunPodSandbox 1\nRunPodSandbox 2\nRunPodSandbox 3\nb\n"}, {"kubelet", "x\n"}},
			Organs: []Organ{{Name: OrganDNS}, {Name: OrganSandbox, Error: "run a sandbox: no"}}}
	}
	n := node()
	settled(n)
	if len(n.Organs) != 2 || n.Organs[0].Name != OrganSandbox || !slices.Equal(n.Organs[0].Lines, []string{"containerd: RunPodSandbox 2", "containerd: RunPodSandbox 3"}) ||
		n.Organs[1].Lines != nil {
		t.Errorf("%+v", n.Organs)
	}
	n = node()
	n.Units["containerd"] = Unit{Started: n.Time.Add(-5 * time.Second)}
	settled(n)
	if len(n.Organs) != 1 || !strings.Contains(n.Errors["organ sandbox"], "containerd has started only 5s ago: run a sandbox: no") {
		t.Errorf("%+v %v", n.Organs, n.Errors)
	}
	n = node()
	n.Units["containerd"] = Unit{Started: n.Time.Add(-5 * time.Second)}
	n.Organs[1].Named = []join.Defect{{Symptom: symptom.ImagePullFailure}}
	if settled(n); len(n.Organs) != 2 {
		t.Errorf("an image that is missing: %v", n.Errors)
	}
	n = node()
	n.Facts.JoinUnit = "active"
	settled(n)
	if n.Organs != nil {
		t.Errorf("%+v", n.Organs)
	}
}

// One late answer proves nothing, nor do two on a busy machine.
func TestLateOrgan(t *testing.T) {
	late := fmt.Errorf("%w: run a sandbox", errLate)
	for _, tt := range []struct {
		name     string
		patience int
		load     string
		err      error
		unread   bool
	}{
		{"late for the first time", 1, "0.10 0.10 0.10 1/100 7\n", late, true},
		{"late again", 2, "0.10 0.10 0.10 1/100 7\n", late, false},
		{"late again, on a busy machine", 2, "900.10 0.10 0.10 1/100 7\n", late, true},
		{"not asked", 2, "0.10 0.10 0.10 1/100 7\n", errors.New("no permission"), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := machine(t, map[string]string{"/etc/kubernetes/kubelet.conf": "", "/proc/loadavg": tt.load})
			w := &measurer{m: m, again: tt.patience > 1}
			o := organ{name: "x", measure: func(*measurer, context.Context) ([]join.Defect, error) { return nil, tt.err }}
			got, err := w.take(t.Context(), o)
			if (err != nil) != tt.unread || !tt.unread && !strings.Contains(got.Error, "no answer in time") {
				t.Errorf("%v %+v", err, got)
			}
		})
	}
}

// Only a member has organs, and an emulated one makes no sandbox.
func TestWhoseOrgans(t *testing.T) {
	for name, want := range map[string]struct {
		files   map[string]string
		members int
	}{
		"no member": {nil, 0},
		"a member":  {map[string]string{"/etc/kubernetes/kubelet.conf": ""}, len(organs)},
		"emulated":  {map[string]string{"/etc/kubernetes/kubelet.conf": "", "/proc/cpuinfo": "model name : QEMU Virtual CPU version 2.5+\n"}, len(organs) - 1},
	} {
		asked := wanted(machine(t, want.files))
		sandbox := slices.ContainsFunc(asked, func(o organ) bool { return o.name == OrganSandbox })
		if len(asked) != want.members || sandbox != (want.members == len(organs)) {
			t.Errorf("%s: %d", name, len(asked))
		}
	}
}

// A member is asked for every organ, beside everything else.
func TestCollectAsksForOrgans(t *testing.T) {
	m := machine(t, map[string]string{"/etc/kubernetes/kubelet.conf": "{}", "/var/lib/kubelet/config.yaml": "", "/etc/resolv.conf": ""})
	n := collect(t.Context(), m, Options{Role: "worker"}, noJournal)
	for _, o := range organs {
		measured := slices.ContainsFunc(n.Organs, func(has Organ) bool { return has.Name == o.name })
		if !measured && n.Errors[o.asked()] == "" && o.name != OrganSandbox { // without a runtime
			t.Errorf("%s was not measured: %+v %v", o.name, n.Organs, n.Errors)
		}
	}
	if n.Errors["certificates"] != "" {
		t.Errorf("%v", n.Errors)
	}
}

// A link that is being made has no address for a moment.
func TestLastingDefects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		late := func(good int) []join.Defect {
			looks = 0
			return lasting(t.Context(), func() []join.Defect {
				if looks++; looks == good {
					return nil
				}
				return []join.Defect{{Where: "cni0"}}
			})
		}
		if found := late(3); len(found) > 0 {
			t.Errorf("after a moment: %v", found)
		}
		if found := late(0); len(found) != 1 || looks < 5 {
			t.Errorf("for good: %v in %d looks", found, looks)
		}
	})
}
