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

// network brings the pod network's objects back to what the lab deployed, and starts flannel anew on a node where it runs while what it told
// the CNI plugin is gone. The plugins and their configuration each node mends itself.
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
		r.add(Repaired{Symptom: string(symptom.NetworkPluginPodsFailing), Evidence: "flannel or the probe is not deployed as the lab does it",
			Did: "apply their manifest again"})
		if r.dryRun {
			return nil
		}
		return r.view.kube.Apply(ctx, manifest)
	}
	pods, err := r.view.kube.Pods(ctx, flannelNamespace, "app=flannel")
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range pods {
		errs = append(errs, r.flannelOn(ctx, p))
	}
	return errors.Join(errs...)
}

// flannelOn looks after flannel's pod on its node.
func (r *repairing) flannelOn(ctx context.Context, p kube.Pod) error {
	n, known := r.lab.nodes[p.Node]
	if _, answers := r.facts[p.Node]; !known || !answers || !p.Ready || p.Deleting || r.has(p.Node) {
		return nil // one that is not ready may be about to start: if not, a diagnosis names it
	}
	if _, err := n.Read(ctx, "test", "-s", subnetFile); err == nil {
		return nil
	}
	r.add(Repaired{Node: p.Node, Symptom: string(symptom.FlannelSubnetEnvMissing), Evidence: "flannel runs and " + subnetFile + " is gone",
		Did: "delete its pod, which is made anew and writes it"})
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
	return wait.For(ctx, "flannel on "+old.Node+" to start anew", time.Minute, r.lab.pace(), func(ctx context.Context) error {
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
