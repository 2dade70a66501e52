package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"k8slab/config"
	"k8slab/lab/etcd"
	"k8slab/lab/host"
	"k8slab/lab/kube"
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
	const pki = "/etc/kubernetes/pki/"
	files := []string{pki + "etcd/ca.crt", pki + "apiserver-etcd-client.crt", pki + "apiserver-etcd-client.key"}
	if kubeconfig == "" {
		files = append(files, adminConf)
	}
	contents, errs := make([]string, len(files)), make([]error, len(files))
	var wg sync.WaitGroup
	for i, path := range files {
		wg.Go(func() { contents[i], errs[i] = s.Nodes[from.Name].Read(ctx, "cat", path) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	if kubeconfig == "" {
		kubeconfig = contents[len(files)-1]
	}
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
	endpoints := []string{}
	for _, n := range controlPlanes {
		endpoints = append(endpoints, "https://"+net.JoinHostPort(n.IP.String(), "2379"))
	}
	v.Etcd, err = etcd.New(etcd.Config{
		Endpoints: endpoints, CA: []byte(contents[0]), Cert: []byte(contents[1]), Key: []byte(contents[2]),
		Dial: s.DialCluster, Mutated: s.Mutated, Patience: s.TimeScale(),
	})
	return v, err
}

// SaveKubeconfig writes the administrator's kubeconfig for this computer. Its server is the virtual IP; if that is in the lab's own network
// namespace, it is the local port that is forwarded there.
func (s *Session) SaveKubeconfig(v *Admin) error {
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
	return s.Write("kubeconfig", text)
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
