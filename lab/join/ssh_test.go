package join

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8slab/lab/symptom"
)

// controlPlane answers what comes over SSH.
type fakeControlPlane struct {
	answers map[string]string // by part of the command
	ran     []string
}

func (c *fakeControlPlane) run(_ context.Context, argv ...string) (string, error) {
	line := strings.Join(argv, " ")
	c.ran = append(c.ran, line)
	for part, answer := range c.answers {
		if strings.Contains(line, part) {
			return answer, nil
		}
	}
	return "", errors.New("exit status 1: " + testToken + " is no command")
}

func (c *fakeControlPlane) did(part string) bool {
	return slices.ContainsFunc(c.ran, func(line string) bool { return strings.Contains(line, part) })
}

const (
	ourNode   = `{"status":{"nodeInfo":{"machineID":"` + testMachineID + `"}}}`
	otherNode = `{"status":{"nodeInfo":{"machineID":"ffffffffffffffffffffffffffffffff"}}}`
	members   = `{"members":[{"ID":1,"name":"cp1","peerURLs":["https://10.30.0.11:2380"]}`
)

func TestLoginRepairs(t *testing.T) {
	pods := "pod/etcd-w1\npod/etcd-cp1\n"
	newToken, newKey := "zzzzzz.9999999999999999", strings.Repeat("ab", 32)
	tests := []struct {
		name    string
		cause   symptom.ID
		answers map[string]string
		again   bool
		says    string // of the error
		did     string // part of a command that changes something
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
		{"our own Node", symptom.NodeNameExists, map[string]string{"get node w1": ourNode, "delete node w1": ""}, true, "", "delete node w1", nil},
		{"another machine's Node", symptom.NodeNameExists, map[string]string{"get node w1": otherNode}, false, "another machine's", "", nil},
		{"no Node any more", symptom.NodeNameExists, map[string]string{"get node w1": ""}, true, "", "", nil},
		{"a command that fails", symptom.NodeNameExists, nil, false, "on the control plane: exit status 1", "", nil},
		{"our own learner", symptom.EtcdTooManyLearners, map[string]string{"get pods": pods, "member remove": "",
			"member list": members + `,{"ID":255,"peerURLs":["https://10.30.0.21:2380"],"isLearner":true}]}`}, false, "is there again", "exec etcd-cp1 -- etcdctl", nil},
		{"another's learner", symptom.EtcdTooManyLearners, map[string]string{"get pods": pods, "member list": members + `,{"ID":255,"peerURLs":["https://192.0.2.42:2380"],"isLearner":true}]}`},
			false, "another machine's", "", nil},
		{"our own voter", symptom.EtcdStaleMember, map[string]string{"get pods": pods, "member list": members + `,{"ID":255,"name":"w1","peerURLs":["https://10.30.0.21:2380"]}]}`},
			false, "as voter ff", "", nil},
		{"nothing in the way any more", symptom.EtcdTooManyLearners, map[string]string{"get pods": pods, "member list": members + `]}`}, true, "", "",
			func(j *Job) bool { return j.MemberRemoved }},
		{"no etcd to ask", symptom.EtcdTooManyLearners, map[string]string{"get pods": "pod/etcd-w1\n"}, false, "no etcd pod", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &fakeControlPlane{answers: tt.answers}
			resets := 0
			l := Login{Host: "root@cp1", Run: c.run, BeforeDelete: func(context.Context) error {
				resets++
				if c.did("delete") {
					t.Error("reset comes after the deletion")
				}
				return nil
			}}
			config, target := commandConfig(t, workerCommand+" --control-plane --certificate-key "+testKey+" --apiserver-advertise-address 10.30.0.21", Environment{})
			job := &Job{Config: config, Target: target, Node: "w1"}
			again, err := l.Repair(t.Context(), job, failedWith(tt.cause), testMachineID)
			if again != tt.again || (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("again %t, %v", again, err)
			}
			if err != nil && strings.Contains(err.Error(), "0123456789abcdef ") {
				t.Errorf("a secret: %v", err)
			}
			if tt.did != "" && !c.did(tt.did) {
				t.Errorf("not done: %q", c.ran)
			}
			for _, change := range []string{"delete", "member remove"} {
				if tt.says != "" && tt.did == "" && c.did(change) {
					t.Errorf("refused, and done all the same: %q", c.ran)
				}
			}
			if (resets == 1) != c.did("delete node") {
				t.Errorf("%d resets", resets)
			}
			if tt.check != nil && !tt.check(job) {
				t.Errorf("%+v", job.Target)
			}
			for _, line := range c.ran {
				if !strings.HasPrefix(line, "ssh -o BatchMode=yes -o ConnectTimeout=10 -- root@cp1 ") || strings.Contains(line, testToken) || strings.Contains(line, testKey) {
					t.Errorf("ran %q", line)
				}
			}
		})
	}
}

func TestOurOwnLearnerIsRemoved(t *testing.T) {
	c := &fakeControlPlane{}
	l := Login{Host: "root@cp1"}
	l.Run = func(ctx context.Context, argv ...string) (string, error) {
		list := members + `,{"ID":18446744073709551615,"peerURLs":["https://10.30.0.21:2380"],"isLearner":true}]}`
		if c.did("member remove ffffffffffffffff") {
			list = members + `]}`
		}
		c.answers = map[string]string{"get pods": "pod/etcd-cp1", "member list": list, "member remove": "Member removed"}
		return c.run(ctx, argv...)
	}
	job := &Job{Node: "cp2", Target: Target{Address: "10.30.0.21"}}
	if again, err := l.Repair(t.Context(), job, failedWith(symptom.EtcdTooManyLearners), testMachineID); !again || err != nil || !job.MemberRemoved {
		t.Errorf("%t, %v: %q", again, err, c.ran)
	}
}

// Without a login nothing is done, and the command to run is said.
func TestNoLoginNoRights(t *testing.T) {
	for cause, command := range map[symptom.ID]string{
		symptom.TokenExpiredOrInvalid: "kubeadm token create --print-join-command",
		symptom.CertificateKeyExpired: "kubeadm init phase upload-certs --upload-certs",
		symptom.NodeNameExists:        "kubectl delete node w1",
		symptom.EtcdTooManyLearners:   "etcdctl",
	} {
		l := Login{Run: func(context.Context, ...string) (string, error) {
			t.Error("it runs something")
			return "", nil
		}}
		again, err := l.Repair(t.Context(), &Job{Node: "w1"}, failedWith(cause), testMachineID)
		if again || err == nil || !strings.Contains(err.Error(), command) || !strings.Contains(err.Error(), "--control-plane-ssh") {
			t.Errorf("%s: %t, %v", cause, again, err)
		}
	}
}

func TestLoginTakesOnlyPlainWords(t *testing.T) {
	for host, ok := range map[string]bool{"root@10.30.0.10": true, "cp1": true, "": true, "-oProxyCommand=x": false, "root@cp1 reboot": false, "a@b@c": false, "root@-x": false} {
		if err := (Login{Host: host}).Check(); (err == nil) != ok {
			t.Errorf("%q: %v", host, err)
		}
	}
	l := Login{Host: "cp1", Run: func(context.Context, ...string) (string, error) {
		t.Error("it was sent")
		return "", nil
	}}
	if _, err := l.command(t.Context(), "kubectl", "delete", "node", "x;reboot"); err == nil {
		t.Error("accepted")
	}
	if err := l.deleteNode(t.Context(), "-all", testMachineID); err == nil {
		t.Error("a flag was taken for a Node")
	}
}
