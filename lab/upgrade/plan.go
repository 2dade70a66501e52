package upgrade

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8slab/config"
	"k8slab/lab/symptom"
)

// Plan is what an upgrade would do, and what would stop it.
type Plan struct {
	From     string            `json:"from"` // versions of Kubernetes
	To       string            `json:"to"`
	Steps    []Step            `json:"steps"`
	Findings []symptom.Finding `json:"findings"` // with the level fail it would not begin
}

// Step is one thing that it does.
type Step struct {
	Node   string `json:"node,omitempty"`
	Action string `json:"action"`
	Done   bool   `json:"done,omitempty"` // by an upgrade that was interrupted
}

// Blocked names what would keep the upgrade from beginning, nil for nothing.
func (p Plan) Blocked() error {
	var why []string
	for _, f := range p.Findings {
		if text := string(f.Symptom) + on(f.Node); f.Level == symptom.Fail && !slices.Contains(why, text) {
			why = append(why, text)
		}
	}
	if why == nil {
		return nil
	}
	return fmt.Errorf("the upgrade would not begin: %s", strings.Join(why, ", "))
}

// plan changes nothing.
func (u *upgrade) plan(ctx context.Context) (p Plan, err error) {
	o := u.options
	p = Plan{From: u.record.From, To: o.Version}
	if p.Findings, err = u.preflight(ctx); err != nil {
		return p, err
	}
	statuses, err := u.Admin.Etcd.Status(ctx)
	if err != nil {
		return p, err
	}
	via := viaEtcd(statuses, u.release.Etcd)
	add := func(node, action, name string) {
		p.Steps = append(p.Steps, Step{Node: node, Action: action, Done: u.done(name)})
	}
	add("", "save a snapshot of etcd, and the files of every node", stepSave)
	add("", "load the container images of "+o.Version+" into every node that lacks one", "")
	for _, n := range u.Cluster.Members() {
		add(n.Name, "bring kubeadm and kubectl", stepPrograms+n.Name)
	}
	cps := u.Cluster.ControlPlanes()
	if via != "" {
		for _, n := range cps {
			add(n.Name, "etcd "+via+" first, because "+u.release.Etcd+" asks for "+leastBefore37+" or newer", "")
		}
	}
	for i, n := range append(cps, u.Cluster.Workers()...) {
		verb := "kubeadm upgrade node"
		if i == 0 {
			verb = "kubeadm upgrade apply " + o.Version
		}
		if n.Role == config.ControlPlane {
			verb += ", once every other control plane is healthy"
		}
		add(n.Name, verb, stepKubeadm+n.Name)
		add(n.Name, "drain it, replace kubelet, and let pods come back", stepKubelet+n.Name)
	}
	add("", "prove the cluster healthy", "")
	return p, nil
}
