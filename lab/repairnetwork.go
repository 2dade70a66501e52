package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8slab/lab/kube"
	"k8slab/lab/symptom"
	"k8slab/lab/wait"
)

const (
	flannelNamespace = "kube-flannel"
	// subnetFile is where flannel tells the node's CNI plugin which addresses are its pods'; it is memory, and nobody writes it twice.
	subnetFile = "/run/flannel/subnet.env"
)

// network brings the pod network's objects back to what the lab deployed, and restarts flannel on a node where it runs while what it told
// the CNI plugin is gone, or is about a Node that was deleted. The plugins and their configuration each node repairs itself.
func (r *repairing) network(ctx context.Context) error {
	manifest, err := r.lab.manifests()
	if err != nil {
		return err
	}
	current, err := r.view.kube.UpToDate(ctx, manifest)
	if err != nil {
		return err
	}
	if !current {
		r.repaired(Repaired{Symptom: string(symptom.NetworkPluginPodsFailing), Evidence: "flannel or the probe is not deployed as the lab does it"},
			"apply their manifest again", "applied their manifest again")
		if r.dryRun {
			return nil
		}
		return r.view.kube.Apply(ctx, manifest)
	}
	pods, err := r.view.kube.Pods(ctx, flannelNamespace, "app=flannel")
	if err != nil {
		return err
	}
	nodes, err := r.view.kube.Nodes(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range pods {
		if n := findNode(nodes, p.Node); n != nil {
			errs = append(errs, r.flannelOn(ctx, p, n.PodCIDR))
		}
	}
	return errors.Join(errs...)
}

// flannelOn looks after flannel's pod on its node, whose pods are to have addresses of the subnet.
func (r *repairing) flannelOn(ctx context.Context, p kube.Pod, subnet string) error {
	n, known := r.lab.nodes[p.Node]
	if _, answers := r.facts[p.Node]; !known || !answers || !p.Ready || p.Deleting || r.has(p.Node) {
		return nil // one that is not ready may be about to start: if not, a diagnosis names it
	}
	text, err := n.Read(ctx, "sh", "-c", "! test -s "+subnetFile+" || cat "+subnetFile)
	if err != nil {
		return err
	}
	switch now := flannelSubnet(text); {
	case text == "":
		r.repaired(Repaired{Node: p.Node, Symptom: string(symptom.FlannelSubnetEnvMissing), Evidence: "flannel runs and " + subnetFile + " is gone"},
			"delete flannel's pod; the new one writes the file", "deleted flannel's pod; the new one wrote the file")
	case now != "" && subnet != "" && now != subnet:
		r.repaired(Repaired{Node: p.Node, Symptom: string(symptom.CNIStaleConfig), Evidence: fmt.Sprintf("flannel uses %s, and the podCIDR of the Node is %s", now, subnet)},
			"restart flannel, and the sandboxes of pods with an old address", "restarted flannel, and the sandboxes of pods with an old address")
		if r.dryRun {
			return nil
		}
		member, _ := r.lab.cluster.Node(p.Node)
		return r.renewNetwork(ctx, member, subnet, r.step)
	default:
		return nil
	}
	if r.dryRun {
		return nil
	}
	if err := r.view.kube.DeletePod(ctx, p.Namespace, p.Name); err != nil {
		return err
	}
	return r.awaitFlannel(ctx, p)
}

// awaitFlannel waits for the pod that follows the old one, and for its word to the plugin.
func (r *repairing) awaitFlannel(ctx context.Context, old kube.Pod) error {
	return wait.For(ctx, "flannel on "+old.Node+" to restart", time.Minute, r.lab.pace(), func(ctx context.Context) error {
		pods, err := r.view.kube.Pods(ctx, flannelNamespace, "app=flannel")
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(pods, func(p kube.Pod) bool { return p.Node == old.Node && p.Name != old.Name && p.Ready }) {
			return fmt.Errorf("no pod has followed %s yet", old.Name)
		}
		_, err = r.lab.nodes[old.Node].Read(ctx, "test", "-s", subnetFile)
		return err
	})
}
