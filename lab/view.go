package lab

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"

	"k8slab/config"
	"k8slab/lab/etcd"
	"k8slab/lab/host"
	"k8slab/lab/kube"
)

// view is the cluster as its administrator sees it: through the API server, and through etcd.
type view struct {
	kube   *kube.Client
	etcd   *etcd.Client
	from   config.Node // whose credentials these are
	config []byte      // admin.conf
}

func (v *view) close() {
	v.kube.Close()
	_ = v.etcd.Close()
}

// openView reads the administrator's credentials from a control plane that has joined. They stay in memory, but for the kubeconfig.
func (l *Lab) openView(ctx context.Context, from config.Node, controlPlanes []config.Node) (*view, error) {
	const pki = "/etc/kubernetes/pki/"
	files := []string{"/etc/kubernetes/admin.conf", pki + "etcd/ca.crt", pki + "apiserver-etcd-client.crt", pki + "apiserver-etcd-client.key"}
	contents, errs := make([]string, len(files)), make([]error, len(files))
	var wg sync.WaitGroup
	for i, path := range files {
		wg.Go(func() { contents[i], errs[i] = l.nodes[from.Name].Read(ctx, "cat", path) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	config, err := kube.FromNode([]byte(contents[0]))
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", from.Name, files[0], err)
	}
	v := &view{from: from, config: config}
	if v.kube, err = kube.New(v.config, l.dialCluster, l.mutated); err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(controlPlanes, l.isRestored); i >= 0 { // the others may still serve the cluster that was replaced
		controlPlanes = controlPlanes[i : i+1]
	}
	endpoints := []string{}
	for _, n := range controlPlanes {
		endpoints = append(endpoints, "https://"+net.JoinHostPort(n.IP.String(), "2379"))
	}
	v.etcd, err = etcd.New(etcd.Config{
		Endpoints: endpoints, CA: []byte(contents[1]), Cert: []byte(contents[2]), Key: []byte(contents[3]),
		Dial: l.dialCluster, Mutated: l.mutated, Patience: l.Patience(),
	})
	return v, err
}

// saveKubeconfig writes the administrator's kubeconfig for this computer: to the virtual IP, or where that is in a namespace of the lab,
// to the port that leads there.
func (l *Lab) saveKubeconfig(v *view) error {
	server, name := "https://"+l.endpoint(), ""
	if l.host.Own {
		dir := l.state.path("libvirt")
		server, name = fmt.Sprintf("https://127.0.0.1:%d", host.ForwardPort(dir)), l.cluster.Network.VirtualIP.String()
		if err := host.Forward(dir, l.endpoint()); err != nil {
			return err
		}
	}
	text, err := kube.WithServer(v.config, server, name)
	if err != nil {
		return err
	}
	return l.state.write("kubeconfig", text)
}
