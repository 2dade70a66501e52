package repair

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8slab/lab/cluster"
	"k8slab/lab/health"
	"k8slab/lab/kube"
	"k8slab/lab/session"
	"k8slab/lab/symptom"
	"k8slab/lab/wait"
)

// network applies the pod network's manifest again if its objects differ. It restarts flannel on a node whose subnet.env is missing, or has
// the subnet of a Node that was deleted. CNI plugins and their configuration are repaired by labnode. Only where something fails does it look
// for what others have edited: an administrator may have meant it.
func (r *repairRun) network(ctx context.Context) error {
	if r.Cluster.OverSSH() { // whoever chose the pod network has its manifest
		return errors.Join(r.configured(ctx), r.flannels(ctx))
	}
	manifest, err := health.Manifests(r.Session)
	if err != nil {
		return err
	}
	current, err := r.Admin.Kube.UpToDate(ctx, manifest)
	if err != nil {
		return err
	}
	differs := "flannel or the probe is not deployed as the lab does it"
	if current && len(failures(r.before, nil)) > 0 {
		lacking, err := r.Admin.Kube.Lacking(ctx, manifest)
		if err != nil {
			return err
		}
		current, differs = len(lacking) == 0, differs+": "+strings.Join(lacking, ", ")
	}
	if !current {
		r.repaired(Repaired{Symptom: string(symptom.NetworkPluginPodsFailing), Evidence: differs}, "apply their manifest again", "applied their manifest again")
		if r.DryRun {
			return nil
		}
		return errors.Join(r.Admin.Kube.Apply(ctx, manifest), r.renewFailed(ctx))
	}
	return r.flannels(ctx)
}

// networkPods are the labels of pods of network add-ons that write their node's CNI configuration when they start.
var networkPods = []string{"app in (flannel, kindnet, antrea)", "k8s-app in (flannel, calico-node, canal, cilium, kube-router, kindnet)"}

// configured restarts the network add-on on nodes without a CNI configuration: labctl has none to put there, and the add-on writes it.
func (r *repairRun) configured(ctx context.Context) error {
	lacks := func(node string) bool {
		return slices.ContainsFunc(r.before, func(f symptom.Finding) bool {
			return f.Node == node && f.Symptom == symptom.CNINotInitialized && f.Level == symptom.Fail
		})
	}
	if !slices.ContainsFunc(r.before, func(f symptom.Finding) bool { return f.Node != "" && lacks(f.Node) }) {
		return nil
	}
	var errs []error
	for _, selector := range networkPods {
		pods, err := r.Admin.Kube.Pods(ctx, "", selector)
		errs = append(errs, err)
		for _, p := range pods {
			if !lacks(p.Node) || p.Deleting || !r.takesOver(p.Node, symptom.CNINotInitialized) {
				continue
			}
			r.repaired(Repaired{Node: p.Node, Symptom: string(symptom.CNINotInitialized), Evidence: "the runtime reads no pod network configuration"},
				"delete "+p.Namespace+"/"+p.Name+"; the new pod writes it", "deleted "+p.Namespace+"/"+p.Name+"; the new pod writes it")
			if r.DryRun {
				continue
			}
			err := r.Admin.Kube.DeletePod(ctx, p.Namespace, p.Name)
			if err == nil {
				err = r.awaitPod(ctx, p, selector)
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// awaitPod waits for the pod that follows one of a DaemonSet.
func (r *repairRun) awaitPod(ctx context.Context, old kube.Pod, selector string) error {
	return wait.For(ctx, "the pod after "+old.Name+" on "+old.Node, time.Minute, r.Pace(), func(ctx context.Context) error {
		pods, err := r.Admin.Kube.Pods(ctx, old.Namespace, selector)
		if err == nil && !slices.ContainsFunc(pods, func(p kube.Pod) bool { return p.Node == old.Node && p.Name != old.Name && p.Ready }) {
			err = fmt.Errorf("no pod has followed %s yet", old.Name)
		}
		return err
	})
}

// flannels repairs flannel on each node that runs it.
func (r *repairRun) flannels(ctx context.Context) error {
	pods, err := r.Admin.Kube.Pods(ctx, health.FlannelNamespace, "app=flannel")
	if err != nil {
		return err
	}
	nodes, err := r.Admin.Kube.Nodes(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range pods {
		if n := session.FindNode(nodes, p.Node); n != nil {
			errs = append(errs, r.flannelOn(ctx, p, n.PodCIDR))
		}
	}
	return errors.Join(errs...)
}

// renewFailed deletes flannel's pods that are not ready: one that ended would wait for minutes before it reads what was applied.
func (r *repairRun) renewFailed(ctx context.Context) error {
	pods, err := r.Admin.Kube.Pods(ctx, health.FlannelNamespace, "app=flannel")
	for _, p := range pods {
		if !p.Ready && !p.Deleting {
			err = errors.Join(err, r.Admin.Kube.DeletePod(ctx, p.Namespace, p.Name))
		}
	}
	return err
}

// flannelOn repairs flannel on the node of its pod p. The subnet is the Node's.
func (r *repairRun) flannelOn(ctx context.Context, p kube.Pod, subnet string) error {
	n, known := r.Nodes[p.Node]
	if answers := r.Answers(p.Node); !known || !answers || !p.Ready || p.Deleting || r.has(p.Node) {
		return nil // a pod that is not ready may just be starting; if not, the diagnosis names it
	}
	text, err := n.Read(ctx, "sh", "-c", "! test -s "+health.SubnetFile+" || cat "+health.SubnetFile)
	if err != nil {
		return err
	}
	switch now := cluster.FlannelSubnet(text); {
	case text == "":
		r.repaired(Repaired{Node: p.Node, Symptom: string(symptom.FlannelSubnetEnvMissing), Evidence: "flannel runs and " + health.SubnetFile + " is gone"},
			"delete flannel's pod; the new one writes the file", "deleted flannel's pod; the new one wrote the file")
	case now != "" && subnet != "" && now != subnet:
		r.repaired(Repaired{Node: p.Node, Symptom: string(symptom.CNIStaleConfig), Evidence: fmt.Sprintf("flannel uses %s, and the podCIDR of the Node is %s", now, subnet)},
			"restart flannel, and the sandboxes of pods with an old address", "restarted flannel, and the sandboxes of pods with an old address")
		if r.DryRun {
			return nil
		}
		member, _ := r.Cluster.Node(p.Node)
		return r.RenewNetwork(ctx, member, subnet, r.step)
	default:
		return nil
	}
	if r.DryRun {
		return nil
	}
	if err := r.Admin.Kube.DeletePod(ctx, p.Namespace, p.Name); err != nil {
		return err
	}
	return r.awaitFlannel(ctx, p)
}

// awaitFlannel waits for the new flannel pod, and for the subnet.env that it writes.
func (r *repairRun) awaitFlannel(ctx context.Context, old kube.Pod) error {
	if err := r.awaitPod(ctx, old, "app=flannel"); err != nil {
		return err
	}
	return wait.For(ctx, health.SubnetFile+" of "+old.Node, time.Minute, r.Pace(), func(ctx context.Context) error {
		_, err := r.Nodes[old.Node].Read(ctx, "test", "-s", health.SubnetFile)
		return err
	})
}
