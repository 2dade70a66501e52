package join

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"k8slab/lab/command"
	"k8slab/lab/etcd"
	"k8slab/lab/event"
	"k8slab/lab/kube"
)

// Login does what needs the cluster's administrator through an SSH login on one of its control planes, with the system's ssh: the user's
// own known_hosts and keys, and never a question. The administrator's credentials that it reads there stay in memory.
type Login struct {
	Host string // root@HOST; "" is none, and everything is refused with the command to run
	Run  func(c command.Command, ctx context.Context) (string, error)
	// BeforeDelete resets this machine, when its Node was found to be its own: after the Node's deletion kubeadm reset would no longer find
	// what belongs to it.
	BeforeDelete func(ctx context.Context) error
}

var loginForm = regexp.MustCompile(`^(?:[A-Za-z_][A-Za-z0-9_.-]*@)?[A-Za-z0-9][A-Za-z0-9.:-]*$`)

// loginBudget bounds one command on the control plane.
const loginBudget = time.Minute

// Check tells whether the login can be one.
func (l Login) Check() error {
	if l.Host != "" && !loginForm.MatchString(l.Host) {
		return fmt.Errorf("--control-plane-ssh %q: give USER@HOST", l.Host)
	}
	return nil
}

// ssh runs ssh with the command's options. The words go to the control plane's shell, so that each must mean itself there.
func (l Login) ssh(ctx context.Context, c command.Command, words ...string) error {
	options := append([]string{"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"}, c.Argv...)
	c.Argv = slices.Concat(options, []string{"--", l.Host}, words)
	if _, err := l.Run(c, ctx); err != nil {
		return errors.New("on the control plane: " + event.Redact(err.Error()))
	}
	return nil
}

// command runs a program on the control plane. Its output is in no error: a file that is read there may be a key.
func (l Login) command(ctx context.Context, words ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, loginBudget)
	defer cancel()
	var out bytes.Buffer
	err := l.ssh(ctx, command.Command{Stdout: &out}, words...)
	return out.String(), err
}

// tunnel is a connection that an ssh of its own carries.
type tunnel struct {
	net.Conn
	stop  context.CancelFunc
	ended chan error // how ssh ended, once
}

// dial connects to an address as the control plane sees it. If ssh cannot, the first read says why.
func (l Login) dial(_ context.Context, _, address string) (net.Conn, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "tunnel"), os.NewFile(uintptr(pair[1]), "ssh")
	defer ours.Close() // conn is a copy
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, errors.Join(err, theirs.Close())
	}
	ctx, stop := context.WithCancel(context.Background()) // until Close: the caller's ends with the dialling
	t := &tunnel{Conn: conn, stop: stop, ended: make(chan error, 1)}
	go func() {
		t.ended <- l.ssh(ctx, command.Command{Argv: []string{"-W", address}, Stdin: theirs, Stdout: theirs})
		_ = theirs.Close() // only now does a read fail
	}()
	return t, nil
}

func (t *tunnel) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	if err != nil {
		select {
		case why := <-t.ended:
			err = cmp.Or(why, err)
		default:
		}
	}
	return n, err
}

// Close ends ssh too.
func (t *tunnel) Close() error {
	t.stop()
	return t.Conn.Close()
}

// kube is the API server with the administrator's rights.
func (l Login) kube(ctx context.Context) (*kube.Client, error) {
	text, err := l.command(ctx, "cat", "/etc/kubernetes/admin.conf")
	if err != nil {
		return nil, err
	}
	config, err := kube.FromNode([]byte(text))
	if err != nil {
		return nil, err
	}
	return kube.New(config, l.dial, nil)
}

// etcd is the cluster of the control plane's etcd member, with the API server's rights in it.
func (l Login) etcd(ctx context.Context) (*etcd.Client, error) {
	const patience = 3 // each call begins with an SSH login
	return etcdClient(etcd.Config{Endpoints: []string{localEtcd}, Dial: l.dial, Patience: patience}, "apiserver-etcd-client",
		func(file string) (string, error) { return l.command(ctx, "cat", file) })
}

// right is an action that needs the cluster's administrator.
type right struct {
	byHand string // what a person runs on a control plane instead
	use    func(l Login, ctx context.Context, job *Job, self Identity) error
}

// removeByHand is also the advice about a member that a login must not remove.
const removeByHand = "kubectl -n kube-system exec etcd-NODE -- etcdctl --cacert=/etc/kubernetes/pki/etcd/ca.crt " +
	"--cert=/etc/kubernetes/pki/etcd/server.crt --key=/etc/kubernetes/pki/etcd/server.key member list, " +
	"and member remove ID for the learner that no join is adding"

var rights = map[Action]right{
	NewToken:           {"kubeadm token create --print-join-command", Login.newToken},
	UploadCertificates: {"kubeadm init phase upload-certs --upload-certs", Login.uploadCertificates},
	DeleteNode:         {"kubectl delete node NAME (if that Node is this machine's)", Login.deleteNode},
	RestoreJoins:       {restoreByHand, Login.restoreJoins},
	RemoveLearner:      {removeByHand, Login.removeLearner},
}

// Repair acts on the cause of a failed attempt, for the next one. It says whether another attempt is of use; its error says what a person
// must do.
func (l Login) Repair(ctx context.Context, job *Job, failed Outcome, self Identity) (again bool, err error) {
	action := Remedy(failed.Symptom)
	needed, found := rights[action]
	switch {
	case !found:
		return action != Stop, nil
	case l.Host == "":
		return false, fmt.Errorf("it needs the cluster's administrator: give --control-plane-ssh root@HOST, or run there: %s",
			strings.ReplaceAll(needed.byHand, "NAME", job.Node))
	}
	err = needed.use(l, ctx, job, self)
	return err == nil, err
}

func (l Login) newToken(ctx context.Context, job *Job, _ Identity) error {
	out, err := l.command(ctx, "kubeadm", "token", "create", "--ttl=30m", "--description=k8slab")
	if err != nil {
		return err
	}
	token := strings.TrimSpace(out)
	if !tokenShape.MatchString(token) {
		return errors.New("kubeadm token create on the control plane did not print a token")
	}
	return job.renew(token, "")
}

func (l Login) uploadCertificates(ctx context.Context, job *Job, _ Identity) error {
	out, err := l.command(ctx, "kubeadm", "init", "phase", "upload-certs", "--upload-certs")
	if err != nil {
		return err
	}
	lines := strings.Fields(out)
	if len(lines) == 0 || !keyForm.MatchString(lines[len(lines)-1]) {
		return errors.New("kubeadm init phase upload-certs on the control plane did not print a key")
	}
	return job.renew("", lines[len(lines)-1])
}

// renew gives the next attempt new credentials.
func (j *Job) renew(token, certificateKey string) error {
	j.Config.set(token, certificateKey)
	t, err := j.Config.target()
	if err == nil {
		t.Peers, t.Known = j.Target.Peers, j.Target.Known
		j.Target = t
	}
	return err
}

// deleteNode deletes the Node of this name when it is this machine's. Another machine's is never touched, even if that machine seems gone:
// nobody here knows it.
func (l Login) deleteNode(ctx context.Context, job *Job, self Identity) error {
	name := job.Node
	api, err := l.kube(ctx)
	if err != nil {
		return err
	}
	defer api.Close()
	node, err := api.Node(ctx, name)
	if err != nil || node == nil {
		return err
	}
	if self.Machine == "" || node.MachineID != self.Machine {
		return fmt.Errorf("the Node %s is another machine's (machine-id %s, this one's is %s): join under another name, "+
			"or if that machine is gone: kubectl delete node %s", name, node.MachineID, self.Machine, name)
	}
	renewed, err := api.NodeLeaseRenewed(ctx, name)
	if err != nil {
		return err
	}
	claim := NameClaim{Joiner: self, Node: *node, Renewed: renewed, Now: time.Now(), UUIDs: self.UUID != ""}
	if verdict := JudgeName(claim); !verdict.Delete {
		return errors.New(verdict.Reason)
	}
	if err := l.BeforeDelete(ctx); err != nil {
		return err
	}
	return api.DeleteNode(ctx, name)
}

// removeLearner removes the learner that an earlier attempt of this machine left. Another's may be in the middle of its own join, and a
// voter's removal can cost the quorum: both are refused.
func (l Login) removeLearner(ctx context.Context, job *Job, _ Identity) error {
	if job.Target.Address == "" {
		return errors.New("this machine's own learner cannot be told from another's: give --apiserver-advertise-address; or " + removeByHand)
	}
	client, err := l.etcd(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	removed, err := etcd.Dismiss(ctx, client, "https://"+net.JoinHostPort(job.Target.Address, "2380"), func(m etcd.Member) error {
		if m.Learner {
			return nil
		}
		return fmt.Errorf("the etcd cluster has this machine as voter %x, without its data: remove it there when the others are healthy: %s",
			m.ID, removeByHand)
	})
	if err != nil || removed != nil {
		job.MemberRemoved = err == nil
		return err
	}
	members, err := client.Members(ctx)
	for _, m := range members {
		if m.Learner {
			return fmt.Errorf("the learner in the way, %x at %v, is another machine's, which may be joining now; if it is not, remove it: %s",
				m.ID, m.PeerURLs, removeByHand)
		}
	}
	job.MemberRemoved = err == nil
	return err
}
