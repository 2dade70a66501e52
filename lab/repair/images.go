package repair

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8slab/config"
	"k8slab/lab/symptom"
)

// images imports the add-ons' container images on members that lost them: no registry could give them back. Those that came with the node
// image are imported by labnode, from the node's own copy.
func (r *repairRun) images(ctx context.Context) error {
	nodes := slices.DeleteFunc(slices.Clone(r.Cluster.Members()), func(n config.Node) bool {
		f := r.Fact(n)
		return !f.Joined || f.Running() || r.leftOn(n.Name) // one whose containerd is left broken takes no images
	})
	lacking, err := r.ImportImages(ctx, nodes)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if refs := lacking[n.Name]; len(refs) > 0 {
			r.repaired(Repaired{Node: n.Name, Symptom: string(symptom.ImagePullFailure),
				Evidence: fmt.Sprintf("containerd does not have %s, which the lab had given it", strings.Join(refs, ", "))},
				"import them", "imported them, and pinned them")
		}
	}
	return nil
}

// leftOn tells whether something is left to a person on the node.
func (r *repairRun) leftOn(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.found, func(f Repaired) bool { return f.Node == name && f.Left != "" })
}
