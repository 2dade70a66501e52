package validate

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"

	"k8slab/lab/kube"
)

// How many minor versions a component may be behind the oldest API server; none may be ahead of it
// (https://kubernetes.io/releases/version-skew-policy). The kubelet's three hold for API servers of 1.28 and later, before it was two.
var mayLag = map[string]uint{"kubelet": 3, "kube-controller-manager": 1, "kube-scheduler": 1}

// running is a component that runs, with its version.
type running struct {
	what    string // a key of mayLag, or kube-apiserver
	where   string
	version *version.Version
}

func (r running) String() string { return fmt.Sprintf("%s on %s is v%s", r.what, r.where, r.version) }

func (c *Cluster) skew(ctx context.Context) (Finding, error) {
	all, err := c.versions(ctx)
	if err != nil {
		return Finding{}, err
	}
	oldest, newest := all[0], all[0] // an API server
	for _, r := range all {
		if r.what == "kube-apiserver" && r.version.LessThan(oldest.version) {
			oldest = r
		}
		if r.what == "kube-apiserver" && newest.version.LessThan(r.version) {
			newest = r
		}
	}
	var t tally
	if newest.version.Minor() > oldest.version.Minor()+1 {
		t.faults = append(t.faults, fmt.Sprintf("%s and %s: API servers may be one minor version apart", oldest, newest))
	}
	for _, r := range all {
		if fault := skewed(r, oldest.version); fault != "" {
			t.faults = append(t.faults, fault)
		}
	}
	t.good = []string{fmt.Sprintf("the oldest API server is v%s, and every other version that was read is compatible with it", oldest.version)}
	return t.finding("upgrade the control planes first, then the Nodes, one minor version at a time: kubeadm upgrade"), nil
}

// skewed says what is wrong with a component's version compared to the oldest API server, "" when nothing is.
func skewed(r running, api *version.Version) string {
	lag, judged := mayLag[r.what]
	if r.what == "kubelet" && api.Minor() < 28 {
		lag = 2
	}
	switch {
	case !judged:
		return ""
	case r.version.Major() != api.Major() || r.version.Minor() > api.Minor():
		return fmt.Sprintf("%s, which is newer than the oldest API server, v%s", r, api)
	case r.version.Minor()+lag < api.Minor():
		return fmt.Sprintf("%s, more than %d minor versions behind the oldest API server, v%s", r, lag, api)
	}
	return ""
}

// versions lists the API server that answers, and every component whose version can be seen: kubelets' from their Nodes, others' from the
// tags of the control planes' images.
func (c *Cluster) versions(ctx context.Context) ([]running, error) {
	info, err := c.Kube.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask the API server for its version: %w", err)
	}
	server, err := version.ParseGeneric(info.GitVersion)
	if err != nil {
		return nil, fmt.Errorf("read the API server's version: %w", err)
	}
	all := []running{{"kube-apiserver", "the control plane that answers", server}}
	nodes, err := c.nodes(ctx)
	if err != nil {
		return nil, err
	}
	add := func(what, where, text string) {
		if v, err := version.ParseGeneric(text); err == nil { // a tag can be anything
			all = append(all, running{what, where, v})
		}
	}
	for _, n := range nodes {
		add("kubelet", n.Name, n.Status.NodeInfo.KubeletVersion)
	}
	cp, err := c.controlPlane(ctx)
	if err != nil {
		return nil, err
	}
	for _, component := range staticPods[:3] { // etcd has versions of its own
		for _, node := range cp.nodes {
			if pod := cp.pods[component][node]; pod != nil {
				add(component, node, kube.ImageVersion(pod))
			}
		}
	}
	return all, nil
}
