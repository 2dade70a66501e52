package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/etcd"
	"k8slab/lab/kube"
	"k8slab/lab/node"
	"k8slab/lab/wait"
)

// join gets every node into the cluster: control planes one after another, and the workers together beside them.
func (c *forming) join(ctx context.Context) error {
	nodes, err := c.view.kube.Nodes(ctx)
	if err != nil {
		return err
	}
	if nodes, err = c.reregister(ctx, nodes); err != nil {
		return err
	}
	outside := slices.DeleteFunc(c.lab.cluster.Members(), func(n config.Node) bool { return c.isMember(n, nodes) })
	if len(outside) == 0 {
		return nil
	}
	hash, err := kube.CACertHash(c.view.config)
	if err != nil {
		return err
	}
	var controlPlanes, workers []config.Node
	for _, n := range outside {
		if n.Role == config.ControlPlane {
			controlPlanes = append(controlPlanes, n)
		} else {
			workers = append(workers, n)
		}
	}
	failed := make(chan error, 1)
	go func() { failed <- together(workers, func(n config.Node) error { return c.joinNode(ctx, n, hash) }) }()
	var errs []error
	for _, n := range controlPlanes {
		// The next one would meet what this one left: it waits for the repair.
		if err := c.joinNode(ctx, n, hash); err != nil {
			errs = append(errs, err)
			break
		}
	}
	return errors.Join(append(errs, <-failed)...)
}

// reregister starts kubelet again on nodes that joined this cluster and whose Node object somebody deleted: a running kubelet never makes
// it again.
func (c *forming) reregister(ctx context.Context, nodes []kube.Node) ([]kube.Node, error) {
	lost := slices.DeleteFunc(c.lab.cluster.Members(), func(n config.Node) bool { return !c.hasJoined(n) || findNode(nodes, n.Name) != nil })
	if len(lost) == 0 {
		return nodes, nil
	}
	err := together(lost, func(n config.Node) error {
		step := c.lab.events.Start(n.Name, "register again", time.Minute)
		err := c.lab.nodes[n.Name].Run(ctx, node.Command{Argv: []string{"systemctl", "restart", "kubelet"}})
		if err != nil {
			return step.End(err)
		}
		return step.End(wait.For(ctx, n.Name+" to register", time.Minute, c.lab.pace(), func(ctx context.Context) error {
			nodes, err := c.view.kube.Nodes(ctx)
			if err == nil && findNode(nodes, n.Name) == nil {
				err = errors.New("no such Node yet")
			}
			return err
		}))
	})
	if err != nil {
		return nil, err
	}
	return c.view.kube.Nodes(ctx)
}

func findNode(nodes []kube.Node, name string) *kube.Node {
	for i := range nodes {
		if nodes[i].Name == name {
			return &nodes[i]
		}
	}
	return nil
}

// hasJoined tells whether kubeadm finished on the node, for this cluster's CA.
func (c *forming) hasJoined(n config.Node) bool {
	f, reference := c.fact(n), c.fact(c.joinedControlPlanes()[0])
	return f.Joined && f.CA == reference.CA
}

// isMember tells whether the node is in this cluster: it has joined, and its Node is this machine's.
func (c *forming) isMember(n config.Node, nodes []kube.Node) bool {
	k := findNode(nodes, n.Name)
	return c.hasJoined(n) && k != nil && k.MachineID == c.fact(n).Machine
}

func (c *forming) joinNode(ctx context.Context, n config.Node, caHash string) error {
	l := c.lab
	budget := c.joinBudget()
	step := l.events.Start(n.Name, "kubeadm join", budget)
	if err := c.clean(ctx, n); err != nil {
		return step.End(err)
	}
	key := ""
	if n.Role == config.ControlPlane {
		step.Progress("waiting until every etcd member is a healthy voter")
		err := wait.For(ctx, "etcd before "+n.Name+" joins", c.stabilize(), l.pace(), c.view.etcd.Healthy)
		if err != nil {
			return step.End(err)
		}
		if key, err = c.uploadedKey(ctx); err != nil {
			return step.End(err)
		}
	}
	token, err := c.token(ctx, n)
	if err != nil {
		return step.End(err)
	}
	verb := "join"
	if n.Role == config.ControlPlane {
		verb = "join-control-plane"
	}
	err = l.runKubeadm(ctx, n.Name, verb, l.joinDocuments(n, token, caHash, key), budget, step)
	// Deleted also after a failure or Ctrl-C; a killed run's token is deleted by the next one.
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err = errors.Join(err, c.view.kube.DeleteBootstrapToken(after, token))
	if err == nil {
		var f facts
		f, err = readFacts(ctx, l.nodes[n.Name])
		c.setFact(n, f)
	}
	return step.End(err)
}

// clean removes what an earlier life of the node left: on the machine, in etcd, in the API, in this order, because kubeadm's reset needs
// the Node to find the etcd member.
func (c *forming) clean(ctx context.Context, n config.Node) error {
	if joined := c.joinedControlPlanes(); len(joined) == 1 && joined[0].Name == n.Name {
		return fmt.Errorf("%s: it is the only control plane, so it cannot be reset and joined again; `labctl down` and `labctl up` make a new cluster", n.Name)
	}
	if f := c.fact(n); f.Dirty || f.Joined {
		if err := c.lab.reset(ctx, n.Name); err != nil {
			return err
		}
	}
	if n.Role == config.ControlPlane {
		members, err := c.view.etcd.Members(ctx)
		if err != nil {
			return err
		}
		for _, m := range members {
			if ownsPeer(n, m) {
				if err := c.view.etcd.Remove(ctx, m.ID); err != nil {
					return fmt.Errorf("%s: its machine is new, but its earlier etcd member cannot be removed: %w", n.Name, err)
				}
			}
		}
	}
	nodes, err := c.view.kube.Nodes(ctx)
	if err != nil {
		return err
	}
	if findNode(nodes, n.Name) == nil {
		return nil
	}
	return c.view.kube.DeleteNode(ctx, n.Name)
}

// ownsPeer tells whether the etcd member has the node's address.
func ownsPeer(n config.Node, m etcd.Member) bool {
	return slices.ContainsFunc(m.PeerURLs, func(u string) bool { return u == fmt.Sprintf("https://%s:2380", n.IP) })
}

// signBudget bounds the wait for kube-controller-manager to sign a token: it starts its controllers one by one, in an emulated machine for
// over a minute.
const signBudget = 4 * time.Minute

// token makes a bootstrap token for one join attempt and waits until discovery can use it: kubeadm would look again only after 5 s.
func (c *forming) token(ctx context.Context, n config.Node) (string, error) {
	token, err := c.view.kube.CreateBootstrapToken(ctx, tokenTTL, tokenMark+"join of "+n.Name)
	if err != nil {
		return "", err
	}
	err = wait.For(ctx, "the bootstrap token to be signed (kube-controller-manager)", signBudget, c.lab.pace()/4, func(ctx context.Context) error {
		ok, err := c.view.kube.ClusterInfoHasJWS(ctx, token)
		if err == nil && !ok {
			err = errors.New("cluster-info has no signature for it yet")
		}
		return err
	})
	return token, err
}

// uploadedKey is the key of the certificates that are in the cluster for a control plane to fetch: init's own, or a new upload's.
func (c *forming) uploadedKey(ctx context.Context) (string, error) {
	if c.certificateKey != "" {
		return c.certificateKey, nil
	}
	key, err := newCertificateKey()
	if err != nil {
		return "", err
	}
	from := c.joinedControlPlanes()[0]
	text, err := marshalDocuments([]any{object{
		"apiVersion": kubeadmAPI, "kind": "InitConfiguration", "certificateKey": key,
		"localAPIEndpoint": object{"advertiseAddress": from.IP.String()}, "nodeRegistration": c.lab.registration(from),
	}})
	if err != nil {
		return "", err
	}
	n := c.lab.nodes[from.Name]
	if err := n.Copy(ctx, kubeadmConfig, 0o600, strings.NewReader(text)); err != nil {
		return "", err
	}
	err = n.Run(ctx, node.Command{Argv: []string{"kubeadm", "init", "phase", "upload-certs", "--upload-certs", "--skip-certificate-key-print", "--config", kubeadmConfig}})
	err = errors.Join(err, n.Run(context.WithoutCancel(ctx), node.Command{Argv: []string{"rm", "-f", kubeadmConfig}}))
	if err == nil {
		c.certificateKey = key
	}
	return key, err
}
