package repair

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8slab/lab/cluster"
	"k8slab/lab/kube"
	"k8slab/lab/symptom"
)

// addresses gives new addresses to pods whose address is outside their node's network, so that nobody reaches them. They got it from
// another CNI configuration, or before their Node was recreated.
func (r *repairRun) addresses(ctx context.Context) error {
	nodes, err := r.Admin.Kube.Nodes(ctx)
	if err != nil {
		return err
	}
	pods, err := r.Admin.Kube.Pods(ctx, "", "")
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range r.misaddressed(pods, nodes) {
		r.repaired(Repaired{Node: p.Node, Symptom: string(symptom.CNIStaleConfig), Evidence: fmt.Sprintf("pod %s/%s has the address %s, which is not in its node's network", p.Namespace, p.Name, p.IP)},
			"delete its sandbox; kubelet recreates it", "deleted its sandbox; kubelet recreates it")
		if !r.DryRun {
			errs = append(errs, cluster.EndSandboxes(ctx, r.Nodes[p.Node], p))
		}
	}
	return errors.Join(errs...)
}

// misaddressed are the pods that need another address, on nodes that answer and on which nothing is left to repair. On other nodes they
// would get a wrong address again.
func (r *repairRun) misaddressed(pods []kube.Pod, nodes []kube.Node) []kube.Pod {
	return slices.DeleteFunc(pods, func(p kube.Pod) bool {
		answers := r.Answers(p.Node)
		broken := slices.ContainsFunc(r.found, func(f Repaired) bool { return f.Node == p.Node && f.Left != "" })
		return !answers || broken || !slices.ContainsFunc(nodes, p.Misaddressed)
	})
}
