package join

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strings"

	"k8slab/lab/etcd"
	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

// member is a machine that should be in a cluster.
type member struct {
	m    Machine
	t    Target
	name string // the Node's
}

func newMember(m Machine, t Target) *member {
	return &member{m: m, t: t, name: cmp.Or(t.Name, m.nodeName(), m.kubeletName())}
}

// controlPlane tells whether the machine runs an API server.
func (m Machine) controlPlane() bool { return m.Exists(apiManifest) }

// controlPlane tells whether the member is a control plane, or is to be one.
func (w *member) controlPlane() bool { return w.t.ControlPlane || w.m.controlPlane() }

// runsEtcd is false where etcd is external: it is its owner's to check. So it is where the credentials are not in kubeadm's directory.
func (w *member) runsEtcd() bool {
	return w.controlPlane() && w.m.Exists(etcdManifest) && w.m.OtherPKI() == ""
}

func (w *member) askKubelet(ctx context.Context) Check {
	c, err := w.m.kubeletService(ctx, blocked)
	if err != nil { // which says nothing of kubelet: systemd may have had too little time
		return blocked("", "systemctl status kubelet", "%v", err)
	}
	return c
}

// askCluster compares the CA, not the server: a control plane's kubelet talks to its own API server.
func (w *member) askCluster(context.Context) Check {
	text, err := w.m.Read(kubeletConf)
	if err != nil {
		return blocked(symptom.TLSBootstrapTimeout, "journalctl -u kubelet -n 100", "kubelet has no kubeconfig of a cluster: %v", err)
	}
	if len(w.t.CACertHashes) == 0 {
		return ok("kubelet has the kubeconfig of a cluster")
	}
	hash, err := kube.CACertHash([]byte(text))
	if err != nil {
		return blocked("", "labnode reset, then join again", "%s: %v", kubeletConf, err)
	}
	if !slices.ContainsFunc(w.t.CACertHashes, func(pin string) bool { return strings.EqualFold(pin, hash) }) {
		return blocked(symptom.LeftoverState, "labnode reset takes it out of that cluster; then join again",
			"this machine is a member of another cluster: its CA is %s", hash)
	}
	return ok("kubelet has the kubeconfig of this cluster")
}

func (w *member) askRole(context.Context) Check {
	is, want := "worker", "worker"
	if w.m.controlPlane() {
		is = "control plane"
	}
	if w.t.ControlPlane {
		want = "control plane"
	}
	if is != want {
		return blocked(symptom.LeftoverState, "labnode reset takes it out of the cluster; then join again", "it is a %s and should be a %s", is, want)
	}
	return ok("%s", is)
}

func (w *member) kube() (*kube.Client, error) {
	text, err := w.m.Read(kubeletConf)
	if err != nil {
		return nil, err
	}
	return kube.New([]byte(text), w.m.Dial, nil)
}

func (w *member) askNode(ctx context.Context) Check {
	client, err := w.kube()
	if err != nil {
		return blocked("", "journalctl -u kubelet -n 100", "%v", err)
	}
	defer client.Close()
	node, err := client.Node(ctx, w.name)
	if err != nil {
		return blocked(symptom.APIServerUnreachable, "journalctl -u kubelet -n 100", "%v", err)
	}
	return w.judgeNode(node)
}

func (w *member) watchNode(ctx context.Context, see func(Check) bool) error {
	client, err := w.kube()
	if err != nil {
		return err
	}
	defer client.Close()
	return client.WatchNode(ctx, w.name, func(n *kube.Node) bool { return see(w.judgeNode(n)) })
}

func (w *member) judgeNode(n *kube.Node) Check {
	if n == nil {
		return blocked("", "systemctl restart kubelet: a running one never registers again", "the cluster has no Node %s", w.name).because(NodeMissing)
	}
	if id := w.m.Line("/etc/machine-id"); n.MachineID != id {
		return blocked(symptom.NodeNameExists, "kubectl describe node "+w.name, "Node %s is another machine's: its machine-id is %s, this one's is %s", w.name, n.MachineID, id).because(NodeOfOther)
	}
	if !n.Ready {
		cause := symptom.ID("")
		if strings.Contains(n.Reason, "NetworkPluginNotReady") || strings.Contains(n.Reason, "cni") {
			cause = symptom.CNINotInitialized
		}
		return blocked(cause, "kubectl describe node "+w.name, "Node %s is not Ready: %s", w.name, n.Reason).because(NodeNotReady)
	}
	return ok("Node %s is this machine's and Ready", w.name)
}

// askEtcd asks the local member, which answers for a list of members only as a voter in a cluster with a quorum.
func (w *member) askEtcd(ctx context.Context) Check {
	client, err := w.m.etcdClient(localEtcd)
	if err != nil {
		return blocked("", "ls -l /etc/kubernetes/pki/etcd", "%v", err)
	}
	defer client.Close()
	members, err := client.Members(ctx)
	if err != nil {
		return blocked(symptom.EtcdUnreachable, "crictl ps -a --name etcd", "%v", err)
	}
	return w.judgeEtcd(members)
}

func (w *member) judgeEtcd(members []etcd.Member) Check {
	i := slices.IndexFunc(members, func(m etcd.Member) bool { return m.Name == w.name })
	switch {
	case i < 0:
		return blocked(symptom.EtcdMemberMismatch, "labnode reset, then join again", "the etcd cluster has no member %s", w.name)
	case members[i].Learner:
		return blocked(symptom.EtcdLearnerNotInSync, "it must catch up and be promoted", "etcd member %s is a learner", members[i])
	}
	return ok("etcd member %s is a started voter", members[i])
}

// etcdClient has the rights of the machine's own etcd certificate.
func (m Machine) etcdClient(endpoints ...string) (*etcd.Client, error) {
	return etcdClient(etcd.Config{Endpoints: endpoints, Dial: m.Dial, Patience: int(m.Patience())}, "etcd/server", m.Read)
}

// etcdClient has the rights of a certificate in kubeadm's directory, wherever that is read.
func etcdClient(cfg etcd.Config, certificate string, read func(file string) (string, error)) (*etcd.Client, error) {
	for file, into := range map[string]*[]byte{"etcd/ca.crt": &cfg.CA, certificate + ".crt": &cfg.Cert, certificate + ".key": &cfg.Key} {
		text, err := read(pkiDir + "/" + file)
		if err != nil {
			return nil, err
		}
		*into = []byte(text)
	}
	return etcd.New(cfg)
}

// component asks a static pod whether it is healthy, where its manifest says that it listens.
func component(name, port, path string, cause symptom.ID) func(*member, context.Context) Check {
	return func(w *member, ctx context.Context) Check {
		address := net.JoinHostPort(w.m.listens(manifestsDir+"/"+name+".yaml", port))
		if err := w.m.localHealth(ctx, address, path); err != nil {
			return blocked(cause, "crictl ps -a; crictl logs CONTAINER", "%v", err)
		}
		return ok("%s", address+path+" is 200")
	}
}
