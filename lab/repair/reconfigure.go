package repair

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/cluster"
	"k8slab/lab/kube"
	"k8slab/lab/session"
	"k8slab/lab/wait"
)

// Reconfigure gives the cluster the options that the run's description of the lab has. It does what kubeadm's documentation says of a cluster
// that is there: kubeadm records them, and makes its files of them again. The nodes have their patches already. was is the description that the
// cluster was made with, and those of attempts that were interrupted: then what reads a file restarts, whether or not this attempt changes it.
// One node after another.
// https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/kubeadm-reconfigure/
func Reconfigure(ctx context.Context, c *cluster.Run, was []*config.Cluster) error {
	r := &reconfiguration{repairRun: &repairRun{Run: c, step: c.Events.Start("", "reconfigure", 0)}, was: was}
	if err := r.step.End(r.record(ctx)); err != nil {
		return fmt.Errorf("record the cluster's options: %w", err)
	}
	for _, n := range append(c.Cluster.ControlPlanes(), c.Cluster.Workers()...) {
		step := c.Events.Start(n.Name, "reconfigure", 0)
		r.step = step
		if err := step.End(r.node(ctx, n)); err != nil {
			return fmt.Errorf("%s: reconfigure: %w\nnext: labctl diagnose; or put the options back in cluster.yaml, and labctl up", n.Name, err)
		}
	}
	return nil
}

type reconfiguration struct {
	*repairRun
	was []*config.Cluster
}

func (r *reconfiguration) again() bool { return len(r.was) > 1 }

// record has kubeadm write its documents into the cluster, and kube-proxy read its own.
func (r *reconfiguration) record(ctx context.Context) error {
	from := r.Admin.From
	text, err := cluster.Described(r.Session, from)
	if err != nil {
		return err
	}
	_, err = session.Feed(ctx, r.Nodes[from.Name], false, strings.NewReader(text), "sh", "-c", kubeadmScript, "sh", "init", "phase", "upload-config", "all")
	if err != nil {
		return err
	}
	manifest, err := r.kubeadm(ctx, from, true, "init", "phase", "addon", kubeProxy.name, "--print-manifest")
	if err != nil {
		return err
	}
	lacking, err := r.Admin.Kube.Lacking(ctx, []byte(manifest))
	if err != nil || len(lacking) == 0 && !r.again() {
		return err
	}
	return r.apply(ctx, kubeProxy, manifest, true)
}

// node gives a node what it has of the options.
func (r *reconfiguration) node(ctx context.Context, n config.Node) error {
	r.step.Progress("every etcd member a healthy voter")
	err := wait.For(ctx, "etcd before "+n.Name+" is reconfigured", r.StabilizeBudget(), r.Pace(), session.ShowWaiting(r.step, r.Admin.Etcd.Healthy))
	if err != nil {
		return err
	}
	phases := []string{"kubelet-start"}
	if n.Role == config.ControlPlane {
		phases = append(phases, "etcd local", "control-plane all")
	}
	made, err := r.made(ctx, n, phases...)
	if err != nil {
		return err
	}
	if n.Role == config.ControlPlane {
		if err := r.newNames(ctx, n); err != nil {
			return err
		}
		if err := r.newManifests(ctx, n, made); err != nil {
			return err
		}
	}
	if err := r.newKubelet(ctx, n, made); err != nil {
		return err
	}
	var was []kube.Marks
	for _, c := range r.was {
		if before, found := c.Node(n.Name); found {
			was = append(was, marks(n.Role, c.OptionsOf(before)))
		}
	}
	return r.Admin.Kube.Mark(ctx, n.Name, marks(n.Role, r.Cluster.OptionsOf(n)), was...)
}

// marks are the labels and taints of a Node that come from the options. A control plane has kubeadm's own taint unless they say otherwise.
func marks(role config.Role, o config.NodeOptions) kube.Marks {
	m := kube.Marks{Labels: o.Labels}
	for _, text := range o.Taints {
		t, _ := config.ParseTaint(text)
		m.Taints = append(m.Taints, kube.Taint(t))
	}
	if role == config.ControlPlane && o.Taints == nil {
		m.Taints = []kube.Taint{{Key: kube.ControlPlaneLabel, Effect: "NoSchedule"}}
	}
	return m
}

// newNames makes the API server's certificate anew, should the names that it is asked for be others now.
func (r *reconfiguration) newNames(ctx context.Context, n config.Node) error {
	if !slices.ContainsFunc(r.was, func(c *config.Cluster) bool { return !reflect.DeepEqual(extraNames(c), extraNames(r.Cluster)) }) {
		return nil
	}
	if err := save(ctx, r.Nodes[n.Name], pkiDir+"apiserver.crt", pkiDir+"apiserver.key"); err != nil {
		return err
	}
	if _, err := r.kubeadm(ctx, n, false, "init", "phase", "certs", "apiserver"); err != nil {
		return err
	}
	return restartPods(ctx, r.Nodes[n.Name], "kube-apiserver")
}

func extraNames(c *config.Cluster) any {
	server, _ := c.Kubernetes.Kubeadm.Cluster["apiServer"].(config.Fragment)
	return server["certSANs"]
}

// newManifests writes the manifests that kubeadm made otherwise now, and waits until their pods work.
func (r *reconfiguration) newManifests(ctx context.Context, n config.Node, made map[string]string) error {
	on := r.Nodes[n.Name]
	var files []string
	for _, p := range staticPods {
		files = append(files, p.file())
	}
	is, err := readFiles(ctx, on, files...)
	if err != nil {
		return err
	}
	old := map[string][]string{} // the IDs of their containers
	var all []string
	for _, p := range staticPods {
		want := made[p.name+".yaml"]
		if !readable(want) || sameManifest(is[p.file()], want) {
			continue
		}
		r.step.Progress("new manifest of %s", p.name)
		if old[p.name], err = running(ctx, on, p.name); err != nil {
			return err
		}
		if err := p.write(ctx, on, is[p.file()], want); err != nil {
			return err
		}
		all = append(all, old[p.name]...)
	}
	if len(old) == 0 {
		return nil
	}
	if err := session.Do(ctx, on, "systemctl", "restart", "kubelet"); err != nil { // it reads the manifests, and begins to end the old pods
		return err
	}
	if err := stop(ctx, on, all); err != nil {
		return err
	}
	err = wait.For(ctx, "the static pods of "+n.Name+" with new manifests", manifestTime, r.Pace(), session.ShowWaiting(r.step, func(ctx context.Context) error {
		for name, ids := range old {
			if now, err := running(ctx, on, name); err != nil || len(now) == 0 || slices.Equal(now, ids) {
				return errors.Join(err, fmt.Errorf("kubelet has not started %s with its new manifest yet", name))
			}
		}
		return nil
	}))
	if err != nil {
		return err
	}
	return r.awaitManifests(ctx, n, "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
}

// newKubelet writes kubelet's files that kubeadm made otherwise now, and restarts it with them.
func (r *reconfiguration) newKubelet(ctx context.Context, n config.Node, made map[string]string) error {
	var files []string
	for name := range kubeletFiles {
		files = append(files, kubeletDir+name)
	}
	on, began, changed := r.Nodes[n.Name], time.Now(), r.again()
	is, err := readFiles(ctx, on, files...)
	if err != nil {
		return err
	}
	for name, sound := range kubeletFiles {
		if !sound(made[name]) || sameText(is[kubeletDir+name], made[name]) {
			continue
		}
		changed = true
		if err := on.Copy(ctx, kubeletDir+name, 0o644, strings.NewReader(made[name])); err != nil {
			return err
		}
	}
	if !changed {
		return nil
	}
	r.step.Progress("kubelet restarts with new settings")
	if err := session.Do(ctx, on, "systemctl", "restart", "kubelet"); err != nil {
		return err
	}
	return r.ReadyAgain(ctx, n, began, r.step)
}
