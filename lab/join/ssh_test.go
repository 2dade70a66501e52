package join

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"k8slab/lab/command"
	"k8slab/lab/symptom"
)

var self = Identity{Machine: testMachineID, UUID: testUUID}

// repaired is what a login did about a cause.
type repaired struct {
	again  bool
	err    error
	job    *Job
	resets int
}

// repair lets a login on the control plane act on the cause.
func (c *fakeControlPlane) repair(cause symptom.ID, self Identity, deleted func() bool) (r repaired) {
	t := c.t.(*testing.T)
	t.Helper()
	l := Login{Host: "root@cp1", Run: c.run, BeforeDelete: func(context.Context) error {
		r.resets++
		if deleted() {
			t.Error("the reset comes after the deletion")
		}
		return nil
	}}
	config, target := commandConfig(t, workerCommand+" --control-plane --certificate-key "+testKey+" --apiserver-advertise-address 10.30.0.21", Environment{})
	r.job = &Job{Config: config, Target: target, Node: "w1"}
	r.again, r.err = l.Repair(t.Context(), r.job, failedWith(cause), self)
	if r.err != nil && strings.Contains(r.err.Error(), "0123456789abcdef ") {
		t.Errorf("a secret: %v", r.err)
	}
	for _, line := range c.lines() {
		rest, begins := strings.CutPrefix(line, "ssh -o BatchMode=yes -o ConnectTimeout=10 ")
		if !begins || !strings.Contains(" "+rest+" ", " -- root@cp1 ") || strings.Contains(line, testToken) || strings.Contains(line, testKey) {
			t.Errorf("ran %q", line)
		}
	}
	return r
}

// says tells whether the error is the one that is wanted, none for "".
func (r repaired) says(want string) bool {
	return r.again == (want == "") && (r.err == nil) == (want == "") && (r.err == nil || strings.Contains(r.err.Error(), want))
}

func newControlPlane(t testing.TB) *fakeControlPlane {
	return &fakeControlPlane{t: t, answers: map[string]string{}, listens: map[string]string{}}
}

func TestLoginGetsCredentials(t *testing.T) {
	newToken, newKey := "zzzzzz.9999999999999999", strings.Repeat("ab", 32)
	tests := []struct {
		name    string
		cause   symptom.ID
		answers map[string]string
		again   bool
		says    string // of the error
		did     string // a part of a command
		check   func(*Job) bool
	}{
		{"nothing to be done", symptom.CACertHashMismatch, nil, false, "", "", nil},
		{"it may pass", symptom.EtcdSlow, nil, true, "", "", nil},
		{"a new token", symptom.TokenExpiredOrInvalid, map[string]string{"kubeadm token create": newToken + "\n"}, true, "", "kubeadm token create",
			func(j *Job) bool { return j.Target.Token == newToken }},
		{"what is no token", symptom.TokenExpiredOrInvalid, map[string]string{"kubeadm token create": "hello\n"}, false, "did not print a token", "",
			func(j *Job) bool { return j.Target.Token == testToken }},
		{"certificates", symptom.CertificateKeyExpired, map[string]string{"upload-certs": "[upload-certs] Storing the certificates\n[upload-certs] Using certificate key:\n" + newKey + "\n"},
			true, "", "kubeadm init phase upload-certs --upload-certs", func(j *Job) bool { return j.Target.CertificateKey == newKey }},
		{"a command that fails", symptom.TokenExpiredOrInvalid, nil, false, "on the control plane: exit status 1", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newControlPlane(t)
			c.answers = tt.answers
			r := c.repair(tt.cause, self, nil)
			if r.again != tt.again || (r.err == nil) != (tt.says == "") || r.err != nil && !strings.Contains(r.err.Error(), tt.says) {
				t.Errorf("again %t, %v", r.again, r.err)
			}
			if !c.did(tt.did) && tt.did != "" || tt.check != nil && !tt.check(r.job) {
				t.Errorf("%q, %+v", c.lines(), r.job.Target)
			}
		})
	}
}

// kubeadm makes cluster-info again, and a token that nobody asked for, which goes. A configuration is not kubeadm's to guess.
func TestLoginRestoresWhatJoinsNeed(t *testing.T) {
	for lacks, says := range map[string]string{"cluster-info": "", "kubeadm-config": "kube-system/kubeadm-config is missing; run on a control plane: kubeadm init phase"} {
		api, c := &adminAPI{t: t, lacks: lacks}, newControlPlane(t)
		api.serve(c)
		c.answers["kubeadm init phase bootstrap-token"] = "[bootstrap-token] Using token: zzzzzz.9999999999999999\n"
		c.ran = nil
		run := c.run
		l := Login{Host: "root@cp1", Run: func(cmd command.Command, ctx context.Context) (string, error) {
			out, err := run(cmd, ctx)
			if strings.Contains(strings.Join(cmd.Argv, " "), "bootstrap-token") {
				api.mu.Lock()
				api.lacks = ""
				api.mu.Unlock()
			}
			return out, err
		}}
		again, err := l.Repair(t.Context(), &Job{Node: "w1"}, failedWith(symptom.JoinConfigMissing), self)
		if again != (says == "") || (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: again %t, %v", lacks, again, err)
		}
		if ran := c.did("init phase bootstrap-token"); ran != (says == "") || ran != slices.Equal(api.lost, []string{"bootstrap-token-zzzzzz"}) {
			t.Errorf("%s: ran %q, lost %q", lacks, c.lines(), api.lost)
		}
	}
}

func TestLoginDeletesOnlyThisMachinesNode(t *testing.T) {
	node := func(machineID, uuid string) map[string]any {
		return map[string]any{"machineID": machineID, "systemUUID": uuid}
	}
	const other, cloned = "ffffffffffffffffffffffffffffffff", "c10e0000-2f4e-4c53-9a55-0d6f3c1e2b7a"
	const alive = "belongs to a machine with this one's machine-id and another system UUID, " + cloned + ", which is alive: it renewed its Lease "
	tests := []struct {
		name string
		api  *adminAPI
		self Identity
		says string // of the refusal
	}{
		{"its own", &adminAPI{node: node(testMachineID, strings.ToUpper(testUUID)), renewed: time.Second}, self, ""},
		{"its own, and its firmware has no UUID", &adminAPI{node: node(testMachineID, testUUID), renewed: time.Second}, Identity{Machine: testMachineID}, ""},
		{"a clone's that is alive", &adminAPI{node: node(testMachineID, cloned), renewed: time.Second}, self, alive},
		{"a clone's that is gone", &adminAPI{node: node(testMachineID, cloned), renewed: time.Minute}, self, ""},
		{"a clone's without a Lease", &adminAPI{node: node(testMachineID, cloned)}, self, ""},
		{"a clone's, and its Lease cannot be read", &adminAPI{node: node(testMachineID, cloned), forbidden: true}, self, "get lease of node w1"},
		{"another's that is alive", &adminAPI{node: node(other, cloned), renewed: time.Second}, self, "the Node w1 is another machine's (machine-id " + other},
		{"another's that seems gone", &adminAPI{node: node(other, cloned), renewed: time.Hour}, self, "or if that machine is gone: kubectl delete node w1"},
		{"nobody knows whose", &adminAPI{node: node("", "")}, Identity{}, "another machine's"},
		{"none any more", &adminAPI{}, self, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			api, c := tt.api, newControlPlane(t)
			api.t = t
			api.serve(c)
			r := c.repair(symptom.NodeNameExists, tt.self, api.isDeleted)
			want := tt.says == "" && api.node != nil
			if !r.says(tt.says) || api.isDeleted() != want || (r.resets == 1) != want {
				t.Errorf("again %t, %v; deleted %t, %d resets", r.again, r.err, api.isDeleted(), r.resets)
			}
		})
	}
}

func TestLoginRemovesOnlyThisMachinesLearner(t *testing.T) {
	voter := func(id uint64, name, ip string) *pb.Member {
		return &pb.Member{ID: id, Name: name, PeerURLs: []string{"https://" + ip + ":2380"}, ClientURLs: []string{"https://" + ip + ":2379"}}
	}
	learner := func(id uint64, ip string) *pb.Member {
		return &pb.Member{ID: id, PeerURLs: []string{"https://" + ip + ":2380"}, IsLearner: true}
	}
	cp1, own := voter(1, "cp1", "10.30.0.11"), learner(255, "10.30.0.21")
	tests := []struct {
		name    string
		members []*pb.Member
		sticky  bool
		removed bool
		says    string // of the refusal
	}{
		{"its own", []*pb.Member{cp1, own}, false, true, ""},
		{"its own, which comes back", []*pb.Member{cp1, own}, true, true, "is there again"},
		{"another's", []*pb.Member{cp1, learner(255, "192.0.2.42")}, false, false, "the learner in the way, ff at [https://192.0.2.42:2380], is another machine's"},
		{"its own voter", []*pb.Member{cp1, voter(255, "w1", "10.30.0.21")}, false, false, "as voter ff"},
		{"none any more", []*pb.Member{cp1}, false, false, ""},
		{"its own, without a quorum", []*pb.Member{cp1, voter(2, "cp2", "10.30.0.12"), voter(3, "cp3", "10.30.0.13"), own}, false, false, "1 of 3 voters are healthy"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, c := &adminEtcd{members: tt.members, sticky: tt.sticky}, newControlPlane(t)
			e.serve(c)
			r := c.repair(symptom.EtcdTooManyLearners, self, nil)
			if !r.says(tt.says) || r.job.MemberRemoved != (tt.says == "") || slices.Equal(e.removed, []uint64{255}) != tt.removed {
				t.Errorf("again %t, %v; removed %v, %t", r.again, r.err, e.removed, r.job.MemberRemoved)
			}
		})
	}
}

// What ssh says is the cause when a tunnel does not come about.
func TestLoginSaysWhyThereIsNoTunnel(t *testing.T) {
	const refused = "on the control plane: exit status 255: channel 0: open failed: connect failed: Connection refused"
	api, e, c := &adminAPI{t: t}, &adminEtcd{}, newControlPlane(t)
	api.serve(c)
	e.serve(c)
	clear(c.listens)
	for _, cause := range []symptom.ID{symptom.NodeNameExists, symptom.EtcdTooManyLearners} {
		if r := c.repair(cause, self, api.isDeleted); !r.says(refused) {
			t.Errorf("%s: again %t, %v", cause, r.again, r.err)
		}
	}
}

// Without a login nothing is done, and the command to run is said.
func TestNoLoginNoRights(t *testing.T) {
	for cause, byHand := range map[symptom.ID]string{
		symptom.TokenExpiredOrInvalid: "kubeadm token create --print-join-command",
		symptom.CertificateKeyExpired: "kubeadm init phase upload-certs --upload-certs",
		symptom.NodeNameExists:        "kubectl delete node w1",
		symptom.EtcdTooManyLearners:   "etcdctl --cacert=/etc/kubernetes/pki/etcd/ca.crt --cert=/etc/kubernetes/pki/etcd/server.crt --key=/etc/kubernetes/pki/etcd/server.key member list",
	} {
		l := Login{Run: func(c command.Command, _ context.Context) (string, error) {
			t.Errorf("it runs %q", c.Argv)
			return "", nil
		}}
		again, err := l.Repair(t.Context(), &Job{Node: "w1"}, failedWith(cause), self)
		if again || err == nil || !strings.Contains(err.Error(), byHand) || !strings.Contains(err.Error(), "--control-plane-ssh") {
			t.Errorf("%s: %t, %v", cause, again, err)
		}
	}
}

func TestLoginForm(t *testing.T) {
	for host, ok := range map[string]bool{"root@10.30.0.10": true, "cp1": true, "": true, "-oProxyCommand=x": false, "root@cp1 reboot": false, "a@b@c": false, "root@-x": false} {
		if err := (Login{Host: host}).Check(); (err == nil) != ok {
			t.Errorf("%q: %v", host, err)
		}
	}
}

// A file that was read in part may be a key.
func TestLoginKeepsOutputOutOfErrors(t *testing.T) {
	l := Login{Host: "cp1", Run: func(c command.Command, ctx context.Context) (string, error) {
		c.Argv = []string{"sh", "-c", "echo $((6 * 7)) bytes of a key; echo the reason >&2; exit 1"}
		return c.Run(ctx)
	}}
	_, err := l.command(t.Context(), "cat", pkiDir+"/apiserver-etcd-client.key")
	if err == nil || strings.Contains(err.Error(), "42 bytes") || !strings.Contains(err.Error(), "the reason") {
		t.Errorf("%v", err)
	}
}
