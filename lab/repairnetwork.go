package lab

import (
	"context"
	"errors"
	"fmt"

	"k8slab/lab/kube"
	"k8slab/lab/symptom"
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
	if _, answers := r.facts[p.Node]; !known || !answers || p.Deleting || r.has(p.Node) {
		return nil
	}
	switch {
	case p.Phase == "Running" && !p.Ready:
		r.add(Repaired{Node: p.Node, Symptom: string(symptom.NetworkPluginPodsFailing), Evidence: fmt.Sprintf("flannel's pod %s is not ready: %s", p.Name, p.Reason),
			Left: fmt.Sprintf("labctl kubectl -- logs --namespace %s %s", flannelNamespace, p.Name)})
		return nil
	case !p.Ready:
		return nil // it is about to start
	}
	if _, err := n.Read(ctx, "test", "-s", subnetFile); err == nil {
		return nil
	}
	r.add(Repaired{Node: p.Node, Symptom: string(symptom.FlannelSubnetEnvMissing), Evidence: "flannel runs and " + subnetFile + " is gone",
		Did: "delete its pod, which is made anew and writes it"})
	if r.dryRun {
		return nil
	}
	return r.view.kube.DeletePod(ctx, p.Namespace, p.Name)
}
