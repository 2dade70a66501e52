package join

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"k8slab/lab/etcd"
)

// fakeEtcd is an etcd cluster's membership.
type fakeEtcd struct {
	members []etcd.Member
	err     error // of asking
	refuse  error // of removing
	asked   []string
	sticky  bool // what is removed stays
}

func (f *fakeEtcd) Members(context.Context) ([]etcd.Member, error) {
	return slices.Clone(f.members), f.err
}

func (f *fakeEtcd) Remove(_ context.Context, id uint64) error {
	if f.refuse == nil && !f.sticky {
		f.members = slices.DeleteFunc(f.members, func(m etcd.Member) bool { return m.ID == id })
	}
	return f.refuse
}

func (f *fakeEtcd) Close() error { return nil }

const etcdYAML = `
    - --initial-advertise-peer-urls=https://10.30.0.12:2380
    - --initial-cluster=cp1=https://10.30.0.11:2380,cp2=https://10.30.0.12:2380
`

// joinedMachine has what a control plane's join leaves.
func joinedMachine(t *testing.T) *fakeMachine {
	f := newFakeMachine(t)
	for _, file := range []string{joinedMark, kubeletConf, kubeletConfig, "/etc/kubernetes/admin.conf", apiManifest, clusterCA, pkiDir + "/etcd/server.key",
		defaultEtcd + "/member/wal/0.wal", "/var/lib/cni/networks/cbr0/10.244.1.2", "/run/flannel/subnet.env", "/sys/class/net/cni0/address"} {
		f.write(file, "x")
	}
	f.write(etcdManifest, etcdYAML)
	f.answer("/usr/bin/kubeadm reset", "")
	f.answer("systemctl stop kubelet.service", "")
	f.answer("systemctl reset-failed kubelet.service", "")
	f.does("ip link delete cni0", func() (string, error) { return "", os.RemoveAll(f.Path("/sys/class/net/cni0")) })
	return f
}

func (f *fakeMachine) reset(o ResetOptions, cluster *fakeEtcd) (ResetReport, error) {
	r := &resetRun{m: f.Machine, o: o, etcd: func(endpoints ...string) (membership, error) {
		cluster.asked = endpoints
		return cluster, nil
	}}
	return r.run(context.Background())
}

var (
	cp1 = etcd.Member{ID: 1, Name: "cp1", PeerURLs: []string{"https://10.30.0.11:2380"}, Started: true}
	cp2 = etcd.Member{ID: 2, Name: "cp2", PeerURLs: []string{"https://10.30.0.12:2380"}, Started: true}
)

func TestResetCleansInGrowingSteps(t *testing.T) {
	f := joinedMachine(t)
	f.write("/run/containerd/io.containerd.runtime.v2.task/k8s.io/a/state", "live")
	f.write("/var/lib/containerd/x", "live")
	cluster := &fakeEtcd{members: []etcd.Member{cp1, cp2}}
	report, err := f.reset(ResetOptions{}, cluster)
	if err != nil || !report.Clean {
		t.Fatalf("%+v, %v", report, err)
	}
	if len(cluster.members) != 1 || !slices.Equal(cluster.asked, []string{"https://10.30.0.11:2379", localEtcd}) {
		t.Errorf("members %v, asked at %v", cluster.members, cluster.asked)
	}
	if !strings.Contains(report.Did[0], "removed etcd member cp2") || report.Did[1] != "kubeadm reset" {
		t.Errorf("the order is %q", report.Did)
	}
	if f.dirty(Target{}) || f.Exists(joinedMark) || f.Exists(defaultEtcd+"/member") || f.Exists("/run/flannel") || f.Exists(kubeletConfig) {
		t.Error("something is left")
	}
	for _, kept := range []string{realConf, cniConfigs, cniPlugins + "/bridge", "/run/containerd/io.containerd.runtime.v2.task/k8s.io/a/state", "/var/lib/containerd/x", pkiDir} {
		if !f.Exists(kept) {
			t.Errorf("%s is gone", kept)
		}
	}
	again, err := f.reset(ResetOptions{}, &fakeEtcd{err: errors.New("not asked")})
	if err != nil || !again.Clean {
		t.Errorf("again: %+v, %v", again, err)
	}
}

// The data of a member that is, or may be, in its cluster stays, and nothing else is touched either.
func TestResetRefuses(t *testing.T) {
	tests := []struct {
		name    string
		arrange func(*fakeMachine, *fakeEtcd)
		says    string
	}{
		{"whoever could say does not answer", func(_ *fakeMachine, c *fakeEtcd) { c.err = errors.New("connection refused") }, "--member-removed"},
		{"the quorum would be lost", func(_ *fakeMachine, c *fakeEtcd) {
			c.refuse = &etcd.QuorumError{Member: cp2, Voters: 2, Healthy: 1, VotersLeft: 1}
		}, "refused"},
		{"nothing says which member it is", func(f *fakeMachine, _ *fakeEtcd) { f.remove(etcdManifest) }, "--member-removed"},
		{"it does not go", func(_ *fakeMachine, c *fakeEtcd) { c.sticky = true }, "--member-removed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := joinedMachine(t)
			cluster := &fakeEtcd{members: []etcd.Member{cp1, cp2}}
			tt.arrange(f, cluster)
			before := f.digest()
			_, err := f.reset(ResetOptions{}, cluster)
			var refused *RefusedError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v", err)
			}
			if f.digest() != before || len(f.changed()) > 0 {
				t.Errorf("it changed something: %q", f.changed())
			}
		})
	}
}

func TestResetTakesTheWordOfWhoRemovedTheMember(t *testing.T) {
	f, told := joinedMachine(t), ""
	f.does("/usr/bin/kubeadm reset --config "+f.Path(kubeadmConfig), func() (string, error) {
		told, _ = f.Read(kubeadmConfig)
		return "", nil
	})
	report, err := f.reset(ResetOptions{MemberRemoved: true, CRISocket: "unix:///run/containerd/containerd.sock"}, &fakeEtcd{err: errors.New("not asked")})
	if err != nil || !report.Clean || f.Exists(defaultEtcd+"/member") || f.Exists(kubeadmConfig) {
		t.Errorf("%+v, %v", report, err)
	}
	for _, want := range []string{`"force": true`, `"criSocket": "unix:///run/containerd/containerd.sock"`, `"kubernetesAPICall": "5s"`} {
		if !strings.Contains(told, want) {
			t.Errorf("kubeadm is told %s, without %s", told, want)
		}
	}
}

// A learner that was announced and never started has no data; it is taken out when that is possible, and is no reason to refuse.
func TestResetOfALearnerThatNeverStarted(t *testing.T) {
	f := joinedMachine(t)
	f.remove(defaultEtcd + "/member")
	cluster := &fakeEtcd{members: []etcd.Member{cp1, {ID: 2, PeerURLs: cp2.PeerURLs, Learner: true}}}
	if _, err := f.reset(ResetOptions{}, cluster); err != nil || len(cluster.members) != 1 {
		t.Errorf("%v, %v", cluster.members, err)
	}
	f = joinedMachine(t)
	f.remove(defaultEtcd + "/member")
	if report, err := f.reset(ResetOptions{}, &fakeEtcd{err: errors.New("connection refused")}); err != nil || !report.Clean {
		t.Errorf("%+v, %v", report, err)
	}
}

// kubeadm's failure leaves the work to the later steps, and a kubelet that does not stop is said.
func TestResetGoesOnWithoutKubeadm(t *testing.T) {
	f := joinedMachine(t)
	f.does("/usr/bin/kubeadm reset", func() (string, error) { return "", errors.New("exit status 1") })
	if report, err := f.reset(ResetOptions{MemberRemoved: true}, nil); err != nil || !report.Clean || !strings.Contains(report.Did[0], "kubeadm reset failed") {
		t.Errorf("%+v, %v", report, err)
	}
	f = joinedMachine(t)
	f.remove("/usr/bin/kubeadm")
	f.does("systemctl stop kubelet.service", func() (string, error) { return "", errors.New("it hangs") })
	if report, err := f.reset(ResetOptions{MemberRemoved: true}, nil); err == nil || report.Clean {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestDirty(t *testing.T) {
	f := newFakeMachine(t)
	if f.dirty(Target{}) {
		t.Error("a fresh machine is dirty")
	}
	f.write(clusterCA, "x")
	if !f.dirty(Target{}) || f.dirty(Target{ControlPlane: true}) {
		t.Error("certificates alone are leftovers on a worker only")
	}
	f.write("/sys/class/net/cni0/address", "x")
	if !f.dirty(Target{ControlPlane: true}) {
		t.Error("a reset that was killed before it took the links away has come to its end")
	}
	f.remove("/sys/class/net/cni0")
	f.write(manifestsDir+"/.hidden.yaml", "x")
	if f.dirty(Target{ControlPlane: true}) {
		t.Error("a hidden file counts")
	}
	f.write(etcdManifest, "x")
	if !f.dirty(Target{ControlPlane: true}) {
		t.Error("a manifest does not count")
	}
}

// The second attempt is not refused for what the first one left, and the first is not given the right to clean up.
func TestCleaningIsForLaterAttempts(t *testing.T) {
	for number, want := range map[int]bool{1: false, 2: true} {
		s := newScenery(t, false, "exit 1")
		s.write(manifestsDir+"/kube-scheduler.yaml", "x")
		s.answer("/usr/bin/kubeadm reset", "")
		s.answer("systemctl reset-failed kubelet.service", "")
		s.job.Number = number
		s.engine.Attempt(t.Context(), s.job)
		if got := !s.Exists(manifestsDir + "/kube-scheduler.yaml"); got != want {
			t.Errorf("attempt %d: cleaned is %t", number, got)
		}
	}
}

func TestCleaningThatIsRefusedEndsTheAttempt(t *testing.T) {
	s := newScenery(t, true, "exit 0")
	s.write(defaultEtcd+"/member", "x")
	s.job.Number = 2
	o := s.engine.Attempt(t.Context(), s.job)
	if o.Phase != PhasePrepare || o.Symptom == "" || !strings.Contains(o.Hint, "--member-removed") || !s.missing("args") || !s.Exists(defaultEtcd+"/member") {
		t.Errorf("%+v", o)
	}
}
