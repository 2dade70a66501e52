package join

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8slab/lab/etcd"
)

// ResetOptions of a Reset.
type ResetOptions struct {
	// MemberRemoved says that somebody removed this machine's etcd member from the cluster, so that its data may be deleted.
	MemberRemoved bool
	CRISocket     string // "" is kubeadm's own choice
	Report        func(string)
}

// ResetReport says what a Reset did, in order.
type ResetReport struct {
	Did   []string `json:"did"`
	Clean bool     `json:"clean"` // nothing of a join is left
}

// RefusedError is a Reset that would have destroyed what nobody could bring back. It has changed nothing.
type RefusedError struct {
	Why  string
	Next string // what to do, with exact commands
}

func (e *RefusedError) Error() string { return "reset refused: " + e.Why + "; next: " + e.Next }

// resetBudget bounds kubeadm reset, which asks an API server that may be gone.
const resetBudget = 4 * time.Minute

// resetFiles are what a join leaves that kubeadm reset may leave as well: when it is missing, or fails halfway. Never the CNI directory,
// whose loss ends containerd, and never the runtime's own state. /var/lib/kubelet/pods has mounts and is kubeadm's to clean.
var resetFiles = []string{
	joinedMark, InitMark,
	bootstrapConf, kubeletConf, "/etc/kubernetes/admin.conf", "/etc/kubernetes/super-admin.conf",
	"/etc/kubernetes/controller-manager.conf", "/etc/kubernetes/scheduler.conf",
	kubeletConfig, instanceConfig, kubeletFlags, "/var/lib/kubelet/pki",
	"/var/lib/kubelet/cpu_manager_state", "/var/lib/kubelet/memory_manager_state",
	"/var/lib/cni/networks", "/var/lib/cni/flannel", "/run/flannel",
}

// Reset undoes what an init or a join did, in growing steps: the etcd member leaves its cluster while the cluster still knows it, kubeadm
// reset while the Node still exists, then what that left. It refuses to delete the data of an etcd member that is, or may be, still in its
// cluster. Running it again is safe.
func Reset(ctx context.Context, m Machine, o ResetOptions) (ResetReport, error) {
	r := &resetRun{m: m, o: o, etcd: func(endpoints ...string) (membership, error) { return m.etcdClient(endpoints...) }}
	return r.run(ctx)
}

func (r *resetRun) run(ctx context.Context) (ResetReport, error) {
	m := r.m
	r.data = m.etcdDir()
	if err := r.leaveEtcd(ctx); err != nil {
		return r.report, err
	}
	err := m.sweepSecrets()
	// From here on the machine is no member, even if a later step fails.
	err = errors.Join(err, remove(m.Path(joinedMark)))
	r.kubeadm(ctx)
	err = errors.Join(err, r.stopKubelet(ctx), r.files(), r.links(ctx), m.removePlaceholder())
	r.report.Clean = err == nil && !m.dirty(Target{})
	return r.report, err
}

// membership is what a reset asks of the etcd cluster.
type membership interface {
	etcd.Membership
	Close() error
}

type resetRun struct {
	m      Machine
	o      ResetOptions
	etcd   func(endpoints ...string) (membership, error)
	data   string // the directory of etcd's data, which its manifest says as long as it is there
	report ResetReport
}

func (r *resetRun) did(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.report.Did = append(r.report.Did, text)
	if r.o.Report != nil {
		r.o.Report(text)
	}
}

// leaveEtcd takes the machine's member out of the etcd cluster, so that its data may go: kubeadm reset deletes the data even when it could
// not remove the member. A member that never started has no data, and nothing is lost when it cannot be asked for.
func (r *resetRun) leaveEtcd(ctx context.Context) error {
	data := r.m.Exists(r.m.etcdData())
	if r.o.MemberRemoved || !data && !r.m.Exists(etcdManifest) {
		return nil
	}
	err := r.removeMember(ctx)
	var refused *RefusedError
	if err == nil || data || errors.As(err, &refused) {
		return err
	}
	r.did("its etcd member never started; whether it is in the cluster could not be asked: %v", err)
	return nil
}

func (r *resetRun) removeMember(ctx context.Context) error {
	peer, endpoints := r.m.etcdPeers()
	if peer == "" {
		return r.unknown(fmt.Errorf("there is no %s that says which", etcdManifest))
	}
	client, err := r.etcd(endpoints...)
	if err != nil {
		return r.unknown(err)
	}
	defer client.Close()
	removed, err := etcd.Dismiss(ctx, client, peer, func(etcd.Member) error { return nil })
	if removed != nil {
		r.did("removed etcd member %s from the cluster", *removed)
	}
	var quorum *etcd.QuorumError
	if errors.As(err, &quorum) {
		return &RefusedError{Why: quorum.Error(), Next: "bring the other members back, then run this again; the last member's data is the cluster"}
	}
	if err != nil {
		return r.unknown(err)
	}
	return nil
}

// unknown refuses to go on where the cluster may still count on the data.
func (r *resetRun) unknown(err error) error {
	if !r.m.Exists(r.m.etcdData()) {
		return err
	}
	return &RefusedError{
		Why:  fmt.Sprintf("this machine has the data of an etcd member (%s), and that it has left its cluster cannot be known: %v", r.m.etcdData(), err),
		Next: "on a healthy control plane remove this machine's etcd member, if that cluster lives; then here: labnode reset --member-removed",
	}
}

var (
	etcdPeerFlag    = regexp.MustCompile(`--initial-advertise-peer-urls=(\S+)`)
	etcdClusterFlag = regexp.MustCompile(`--initial-cluster=(\S+)`)
)

// etcdPeers reads the peer URL of the machine's member out of its manifest, and where the cluster can be asked: at those that it joined,
// and last at itself.
func (m Machine) etcdPeers() (peer string, endpoints []string) {
	text, _ := m.Read(etcdManifest)
	found := etcdPeerFlag.FindStringSubmatch(text)
	if found == nil {
		return "", nil
	}
	peer = found[1]
	if found = etcdClusterFlag.FindStringSubmatch(text); found != nil {
		for _, entry := range strings.Split(found[1], ",") {
			_, other, _ := strings.Cut(entry, "=")
			u, err := url.Parse(other)
			if err == nil && other != peer && u.Hostname() != "" {
				endpoints = append(endpoints, "https://"+net.JoinHostPort(u.Hostname(), "2379"))
			}
		}
	}
	return peer, append(endpoints, localEtcd)
}

// kubeadm runs kubeadm reset, which unmounts what pods mounted and removes their containers. Its failure is no reason to stop: what it left
// is what the next steps are for.
func (r *resetRun) kubeadm(ctx context.Context) {
	program := r.m.Find("kubeadm")
	if program == "" {
		r.did("kubeadm is not installed: labnode cleans up in its place, except for the mounts and containers of pods")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, resetBudget)
	defer cancel()
	err := r.m.writeJSON(kubeadmConfig, resetConfiguration(r.o.CRISocket))
	if err == nil {
		_, err = r.m.Run(ctx, program, "reset", "--config", r.m.Path(kubeadmConfig))
	}
	if err = errors.Join(err, remove(r.m.Path(kubeadmConfig))); err != nil {
		r.did("kubeadm reset failed: %v", err)
		return
	}
	r.did("kubeadm reset")
}

// resetConfiguration is kubeadm's document of that name, as JSON. A reset reads the cluster's configuration for etcd's directory alone. On a
// control plane whose join has failed it would ask a minute for the pod of an API server that there is not.
func resetConfiguration(socket string) any {
	c := map[string]any{"apiVersion": configAPI, "kind": "ResetConfiguration", "force": true, "timeouts": map[string]string{"kubernetesAPICall": "5s"}}
	if socket != "" {
		c["criSocket"] = socket
	}
	return c
}

func (r *resetRun) stopKubelet(ctx context.Context) error {
	_, err := r.m.Run(ctx, "systemctl", "stop", "kubelet.service")
	if err != nil {
		return fmt.Errorf("stop kubelet: %w", err)
	}
	_, _ = r.m.Run(ctx, "systemctl", "reset-failed", "kubelet.service") // it need not have failed
	return nil
}

func (r *resetRun) files() error {
	files := slices.Clone(resetFiles)
	for _, dir := range []string{manifestsDir, pkiDir, r.data} {
		for _, name := range r.m.List(dir) {
			files = append(files, dir+"/"+name)
		}
	}
	var errs []error
	for _, file := range files {
		if !r.m.Exists(file) {
			continue
		}
		if err := os.RemoveAll(r.m.Path(file)); err != nil {
			errs = append(errs, err)
			continue
		}
		r.did("removed %s", file)
	}
	return errors.Join(errs...)
}

func (r *resetRun) links(ctx context.Context) error {
	var errs []error
	for _, link := range leftLinks {
		if !r.m.Exists(linkDir + link) {
			continue
		}
		if _, err := r.m.Run(ctx, "ip", "link", "delete", link); err != nil && r.m.Exists(linkDir+link) {
			errs = append(errs, fmt.Errorf("remove link %s: %w", link, err))
			continue
		}
		r.did("removed link %s", link)
	}
	return errors.Join(errs...)
}
