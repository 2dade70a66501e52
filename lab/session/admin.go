package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/etcd"
	"k8slab/lab/host"
	"k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/kubefile"
)

// Admin is the cluster as its administrator sees it: through the API server, and through etcd.
type Admin struct {
	Kube   *kube.Client
	Etcd   *etcd.Client
	From   config.Node // whose credentials these are
	Config []byte      // admin.conf
}

// Close closes every connection.
func (v *Admin) Close() {
	v.Kube.Close()
	_ = v.Etcd.Close()
}

// adminConf is the administrator's kubeconfig on every control plane.
const adminConf = "/etc/kubernetes/admin.conf"

// OpenAdmin reads the administrator's credentials from a control plane that has joined. They stay in memory.
func (s *Session) OpenAdmin(ctx context.Context, from config.Node, controlPlanes []config.Node) (*Admin, error) {
	return s.OpenAdminWith(ctx, from, controlPlanes, "")
}

// OpenAdminWith is OpenAdmin with another kubeconfig, if it is not "". What etcd asks for is read from the control plane.
func (s *Session) OpenAdminWith(ctx context.Context, from config.Node, controlPlanes []config.Node, kubeconfig string) (*Admin, error) {
	access, files, err := s.credentials(ctx, from, kubeconfig == "")
	if err != nil {
		return nil, err
	}
	kubeconfig = cmp.Or(kubeconfig, files[adminConf])
	config, err := kube.FromNode([]byte(kubeconfig))
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", from.Name, adminConf, err)
	}
	v := &Admin{From: from, Config: config}
	if v.Kube, err = kube.New(v.Config, s.DialCluster, s.Mutated); err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(controlPlanes, s.IsRestored); i >= 0 { // the others may still serve the cluster that was replaced
		controlPlanes = controlPlanes[i : i+1]
	}
	v.Etcd, err = etcd.New(etcd.Config{
		Endpoints: access.endpoints(controlPlanes), CA: []byte(files[access.ca]), Cert: []byte(files[access.cert]), Key: []byte(files[access.key]),
		Dial: s.DialCluster, Mutated: s.Mutated, Patience: s.TimeScale(),
	})
	return v, err
}

// OwnAPI opens the API server of a control plane itself, whoever has the virtual IP. The kubeconfig is an administrator's.
func (s *Session) OwnAPI(kubeconfig []byte, n config.Node) (*kube.Client, error) {
	own, err := kube.WithServer(kubeconfig, "https://"+net.JoinHostPort(n.IP.String(), "6443"), "")
	if err != nil {
		return nil, err
	}
	return kube.New(own, s.DialCluster, s.Mutated)
}

// etcdAccess is how a control plane's API server reaches etcd.
type etcdAccess struct {
	external      []string // URLs, where etcd is not the control planes' own
	ca, cert, key string   // paths
}

// credentials reads what kubeadm makes on a control plane, or what the manifest names on machines that labctl did not make.
func (s *Session) credentials(ctx context.Context, from config.Node, withKubeconfig bool) (etcdAccess, map[string]string, error) {
	const pki = "/etc/kubernetes/pki/"
	a := etcdAccess{ca: pki + "etcd/ca.crt", cert: pki + "apiserver-etcd-client.crt", key: pki + "apiserver-etcd-client.key"}
	wanted := []string{a.ca, a.cert, a.key}
	if withKubeconfig {
		wanted = append(wanted, adminConf)
	}
	if !s.Cluster.OverSSH() {
		files, err := s.files(ctx, from, wanted)
		return a, files, err
	}
	manifest := path.Join(ManifestDir, "kube-apiserver.yaml")
	files, err := s.files(ctx, from, append(wanted, manifest))
	if err != nil && Status(err) < 0 {
		return a, nil, err
	}
	a.external = join.ExternalEtcd(files[manifest])
	for i, flag := range []string{"etcd-cafile", "etcd-certfile", "etcd-keyfile"} {
		wanted[i] = cmp.Or(join.PodFlag(files[manifest], flag), wanted[i])
	}
	a.ca, a.cert, a.key = wanted[0], wanted[1], wanted[2]
	if slices.ContainsFunc(wanted, func(file string) bool { return files[file] == "" }) { // the manifest itself may be missing
		files, err = s.files(ctx, from, wanted)
		return a, files, err
	}
	return a, files, nil
}

// files reads files of a node with one command: over SSH, each command costs a session and sudo. Of several, it has those that are there, and
// an *ExitError that names the others.
func (s *Session) files(ctx context.Context, from config.Node, paths []string) (map[string]string, error) {
	out, err := s.Nodes[from.Name].Read(ctx, append([]string{"tail", "-v", "-n", "+1"}, paths...)...)
	files := map[string]string{}
	for part := range strings.SplitSeq("\n"+out, "\n==> ") {
		if name, text, is := strings.Cut(part, " <==\n"); is {
			files[name] = text
		}
	}
	return files, err
}

// endpoints are the URLs of the members.
func (a etcdAccess) endpoints(controlPlanes []config.Node) []string {
	if a.external != nil {
		return a.external
	}
	all := []string{}
	for _, n := range controlPlanes {
		all = append(all, "https://"+net.JoinHostPort(n.IP.String(), "2379"))
	}
	return all
}

// SaveKubeconfig writes the administrator's kubeconfig for this computer, and renews it where a person has merged it into another. Its server
// is the virtual IP; if that is in the lab's own network namespace, it is the local port that is forwarded there.
func (s *Session) SaveKubeconfig(ctx context.Context, v *Admin) error {
	server, name := "https://"+s.Endpoint(), ""
	if s.Host != nil && s.Host.Own {
		dir := DaemonDir(s.Lab)
		server, name = fmt.Sprintf("https://127.0.0.1:%d", host.ForwardPort(dir)), s.Cluster.Network.VirtualIP.String()
		if err := host.Forward(dir, s.Endpoint()); err != nil {
			return err
		}
	}
	text, err := kube.WithServer(v.Config, server, name)
	if err != nil {
		return err
	}
	if err := s.Write("kubeconfig", text); err != nil {
		return err
	}
	if err := kubefile.Renew(ctx, s.Lab, text); err != nil { // of another's file, without which the lab works
		_ = s.Events.Start("", "merged kubeconfig", 0).End(err)
	}
	return nil
}

// Documents are what the cluster's own documents must say.
func (s *Session) Documents() kube.Want {
	w := kube.Want{
		Version: s.Cluster.Kubernetes.Version, Endpoint: s.Endpoint(), Servers: []string{"https://" + s.Endpoint()},
		PodSubnet: written(s.Cluster.Network.PodSubnet), ServiceSubnet: written(s.Cluster.Network.ServiceSubnet),
	}
	for _, n := range s.EveryControlPlane() {
		w.Servers = append(w.Servers, "https://"+net.JoinHostPort(n.IP.String(), "6443"))
	}
	return w
}

// written is the range, "" for none.
func written(p netip.Prefix) string {
	if !p.IsValid() {
		return ""
	}
	return p.String()
}

// AnyAdmin opens the cluster through the first control plane that answers and has joined.
func (s *Session) AnyAdmin(ctx context.Context) (*Admin, error) {
	var errs []error
	cps := s.RestoredFirst(s.Cluster.ControlPlanes())
	for _, n := range cps {
		one, cancel := s.Within(ctx, 4*time.Second)
		v, err := s.OpenAdmin(one, n, cps)
		cancel()
		if err == nil {
			return v, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}
