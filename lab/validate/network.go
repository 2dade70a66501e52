package validate

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/singleflight"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// knownNetworks are the DaemonSets that put Nodes into pod networks, by the names that their makers give them.
var knownNetworks = []string{
	"flannel", "kube-flannel-ds", "kube-flannel", "calico-node", "canal", "cilium", "kindnet", "weave-net", "antrea-agent", "kube-router", "aws-node",
}

// NetworkChecks check the pod network between the named Node and each other one, or with "" between all. They use test pods, one on each
// Node that is Ready, which checks that run at the same time share.
func (c *Cluster) NetworkChecks(node string) []Check {
	var once singleflight.Group
	shared := func(ctx context.Context) (trial, error) {
		t, err, _ := once.Do("", func() (any, error) { return c.try(ctx, node) })
		return t.(trial), err
	}
	all := []Check{
		check(AreaNetwork, "the pod network's agent is ready on "+where(node), func(ctx context.Context) (Finding, error) { return c.agentReady(ctx, node) }),
		check(AreaNetwork, "kube-proxy is ready on "+where(node), func(ctx context.Context) (Finding, error) { return c.kubeProxyReady(ctx, node) }),
		try(AreaNetwork, "test pods start on "+where(node), func(ctx context.Context) (Finding, error) {
			t, err := shared(ctx)
			if err != nil {
				return Finding{}, errors.Join(err, t.removed)
			}
			return t.started(), nil
		}),
	}
	for _, k := range ways {
		all = append(all, try(AreaNetwork, k.holds, func(ctx context.Context) (Finding, error) {
			t, err := shared(ctx)
			if err != nil { // it is the finding about the pods' start
				t.failed = true
			}
			return t.finding(k), nil
		}))
	}
	return all
}

// agentReady checks the DaemonSet that connects Nodes to the pod network.
func (c *Cluster) agentReady(ctx context.Context, node string) (Finding, error) {
	nodes, err := c.tested(ctx, node)
	if err != nil {
		return Finding{}, err
	}
	list, err := c.Kube.AppsV1().DaemonSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return Finding{}, fmt.Errorf("list daemonsets: %w", err)
	}
	agents := slices.DeleteFunc(slices.Clone(list.Items), func(d appsv1.DaemonSet) bool { return !slices.Contains(knownNetworks, d.Name) })
	if len(agents) == 0 {
		agents = slices.DeleteFunc(list.Items, func(d appsv1.DaemonSet) bool { return !installsCNI(&d) })
	}
	if len(agents) == 0 {
		return absent("no DaemonSet is a known pod network or mounts the host's CNI directories: the pod network is not run by one"), nil
	}
	t, err := c.readyOn(ctx, agents, nodes)
	agent := agents[0]
	next := fmt.Sprintf("read its log: kubectl -n %s logs ds/%s; until it runs, pods on the Node get no address or have no network", agent.Namespace, agent.Name)
	t.good = []string{fmt.Sprintf("DaemonSet %s/%s: ready on %s", agent.Namespace, agent.Name, few(t.good))}
	return t.finding(next), err
}

// installsCNI recognises an agent of a pod network by the directories that it mounts.
func installsCNI(d *appsv1.DaemonSet) bool {
	spec := d.Spec.Template.Spec
	if !spec.HostNetwork {
		return false
	}
	for _, v := range spec.Volumes {
		if v.HostPath == nil {
			continue
		}
		dir := path.Clean(v.HostPath.Path) + "/"
		if strings.HasPrefix(dir, "/etc/cni/") || strings.HasPrefix(dir, "/opt/cni/") {
			return true
		}
	}
	return false
}
