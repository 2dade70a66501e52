package join

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8slab/lab/event"
)

// Login does what needs the cluster's administrator through an SSH login on one of its control planes, with the system's ssh: the user's
// own known_hosts and keys, and never a question.
type Login struct {
	Host string // root@HOST; "" is none, and everything is refused with the command to run
	Run  func(ctx context.Context, argv ...string) (string, error)
	// BeforeDelete resets this machine, when its Node was found to be its own: after the Node's deletion kubeadm reset would no longer find
	// what belongs to it.
	BeforeDelete func(ctx context.Context) error
}

var (
	loginForm = regexp.MustCompile(`^(?:[A-Za-z_][A-Za-z0-9_.-]*@)?[A-Za-z0-9][A-Za-z0-9.:-]*$`)
	// plainWord is a word that means itself to any shell: ssh joins its words with spaces and the far side's shell splits them.
	plainWord = regexp.MustCompile(`^[A-Za-z0-9@%+=:,./_-]+$`)
	nodeForm  = regexp.MustCompile(`^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$`)
)

// loginBudget bounds one command on the control plane.
const loginBudget = time.Minute

// Check tells whether the login can be one.
func (l Login) Check() error {
	if l.Host != "" && !loginForm.MatchString(l.Host) {
		return fmt.Errorf("--control-plane-ssh %q: give USER@HOST", l.Host)
	}
	return nil
}

func (l Login) command(ctx context.Context, words ...string) (string, error) {
	for _, word := range words {
		if !plainWord.MatchString(word) {
			return "", errors.New("the command for the control plane has unexpected characters, so it was not sent")
		}
	}
	ctx, cancel := context.WithTimeout(ctx, loginBudget)
	defer cancel()
	out, err := l.Run(ctx, append([]string{"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "--", l.Host}, words...)...)
	if err != nil {
		return "", errors.New("on the control plane: " + event.Redact(err.Error()))
	}
	return out, nil
}

func (l Login) kubectl(ctx context.Context, words ...string) (string, error) {
	return l.command(ctx, append([]string{"kubectl", "--kubeconfig=/etc/kubernetes/admin.conf"}, words...)...)
}

// Repair acts on the cause of a failed attempt, for the next one. It says whether another attempt is of use; its error says what a person
// must do.
func (l Login) Repair(ctx context.Context, job *Job, failed Outcome, machineID string) (again bool, err error) {
	action := Remedy(failed.Symptom)
	switch action {
	case Stop:
		return false, nil
	case Retry, FixLocally:
		return true, nil
	}
	name := job.Node
	if l.Host == "" {
		return false, fmt.Errorf("it needs the cluster's administrator: give --control-plane-ssh root@HOST, or run there: %s", manual(action, name))
	}
	switch action {
	case NewToken:
		err = l.newToken(ctx, job)
	case UploadCertificates:
		err = l.uploadCertificates(ctx, job)
	case DeleteNode:
		err = l.deleteNode(ctx, name, machineID)
	case RemoveLearner:
		err = l.removeLearner(ctx, job)
	}
	return err == nil, err
}

// manual is what a person runs on a control plane instead.
func manual(action Action, name string) string {
	switch action {
	case NewToken:
		return "kubeadm token create --print-join-command"
	case UploadCertificates:
		return "kubeadm init phase upload-certs --upload-certs"
	case DeleteNode:
		return "kubectl delete node " + name + " (if that Node is this machine's)"
	}
	return "kubectl -n kube-system exec etcd-NODE -- etcdctl " + strings.Join(etcdctlFlags, " ") + " member list, and member remove ID for the learner that no join is adding"
}

func (l Login) newToken(ctx context.Context, job *Job) error {
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

func (l Login) uploadCertificates(ctx context.Context, job *Job) error {
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

// deleteNode deletes the Node of this name when it is this machine's. Another machine's is never touched.
func (l Login) deleteNode(ctx context.Context, name, machineID string) error {
	if !nodeForm.MatchString(name) {
		return fmt.Errorf("%q is not a Node's name", name)
	}
	out, err := l.kubectl(ctx, "get", "node", name, "--ignore-not-found", "-o", "json")
	if err != nil || strings.TrimSpace(out) == "" {
		return err
	}
	var node struct {
		Status struct {
			NodeInfo struct {
				MachineID string `json:"machineID"`
			} `json:"nodeInfo"`
		} `json:"status"`
	}
	if err := json.Unmarshal([]byte(out), &node); err != nil {
		return errors.New("the control plane's answer about Node " + name + " is not JSON")
	}
	if their := node.Status.NodeInfo.MachineID; machineID == "" || their != machineID {
		return fmt.Errorf("the Node %s is another machine's (machine-id %s, this one's is %s): join under another name, or if that machine is gone: kubectl delete node %s",
			name, their, machineID, name)
	}
	if err := l.BeforeDelete(ctx); err != nil {
		return err
	}
	_, err = l.kubectl(ctx, "delete", "node", name)
	return err
}

var etcdctlFlags = []string{
	"--cacert=/etc/kubernetes/pki/etcd/ca.crt", "--cert=/etc/kubernetes/pki/etcd/server.crt", "--key=/etc/kubernetes/pki/etcd/server.key",
}

// etcdMember is a member as etcdctl prints it.
type etcdMember struct {
	ID       uint64   `json:"ID"`
	Name     string   `json:"name"`
	PeerURLs []string `json:"peerURLs"`
	Learner  bool     `json:"isLearner"`
}

// removeLearner removes the learner that an earlier attempt of this machine left. Another's may be in the middle of its own join, and a
// voter's removal can cost the quorum: both are refused.
func (l Login) removeLearner(ctx context.Context, job *Job) error {
	if job.Target.Address == "" {
		return errors.New("this machine's own learner cannot be told from another's: give --apiserver-advertise-address; or " + manual(RemoveLearner, ""))
	}
	pod, err := l.etcdPod(ctx, "etcd-"+job.Node)
	if err != nil {
		return err
	}
	mine := "https://" + job.Target.Address + ":2380"
	members, err := l.members(ctx, pod)
	if err != nil {
		return err
	}
	own := slices.IndexFunc(members, func(m etcdMember) bool { return slices.Contains(m.PeerURLs, mine) })
	switch other := slices.IndexFunc(members, func(m etcdMember) bool { return m.Learner }); {
	case own >= 0 && !members[own].Learner:
		return fmt.Errorf("the etcd cluster has this machine as voter %x, without its data: remove it there when the others are healthy: %s",
			members[own].ID, manual(RemoveLearner, ""))
	case own < 0 && other >= 0:
		return fmt.Errorf("the learner in the way, %x at %v, is another machine's, which may be joining now; if it is not, remove it: %s",
			members[other].ID, members[other].PeerURLs, manual(RemoveLearner, ""))
	case own < 0:
		job.MemberRemoved = true
		return nil
	}
	if _, err := l.etcdctl(ctx, pod, "member", "remove", strconv.FormatUint(members[own].ID, 16)); err != nil {
		return err
	}
	members, err = l.members(ctx, pod)
	if err == nil && slices.ContainsFunc(members, func(m etcdMember) bool { return slices.Contains(m.PeerURLs, mine) }) {
		err = errors.New("this machine's learner was removed and is there again")
	}
	job.MemberRemoved = err == nil
	return err
}

// etcdPod finds an etcd that can be asked, not this machine's.
func (l Login) etcdPod(ctx context.Context, own string) (string, error) {
	out, err := l.kubectl(ctx, "-n", "kube-system", "get", "pods", "-l", "component=etcd", "--field-selector=status.phase=Running", "-o", "name")
	if err != nil {
		return "", err
	}
	for _, name := range strings.Fields(out) {
		if pod, ok := strings.CutPrefix(name, "pod/"); ok && pod != own && nodeForm.MatchString(pod) {
			return pod, nil
		}
	}
	return "", errors.New("no etcd pod runs in the cluster")
}

func (l Login) etcdctl(ctx context.Context, pod string, words ...string) (string, error) {
	return l.kubectl(ctx, slices.Concat([]string{"-n", "kube-system", "exec", pod, "--", "etcdctl"}, etcdctlFlags, words)...)
}

func (l Login) members(ctx context.Context, pod string) ([]etcdMember, error) {
	out, err := l.etcdctl(ctx, pod, "member", "list", "-w", "json")
	if err != nil {
		return nil, err
	}
	var list struct {
		Members []etcdMember `json:"members"`
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, errors.New("the control plane's list of etcd members is not JSON")
	}
	return list.Members, nil
}
