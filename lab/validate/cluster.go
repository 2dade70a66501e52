package validate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8slab/lab/diagnose"
	"k8slab/lab/diagnose/fact"
	"k8slab/lab/kube"
)

// staticPods are the components that kubeadm runs as static pods of a control plane. Their pods are named COMPONENT-NODE.
var staticPods = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", etcdComponent}

const etcdComponent = "etcd"

// ClusterChecks check the control plane, and what every Node needs of it.
func (c *Cluster) ClusterChecks() []Check {
	return []Check{
		check(AreaCluster, verdict, c.healthy),
		check(AreaCluster, "versions are within the skew policy", c.skew),
	}
}

const verdict = "nothing is wrong that a diagnosis finds"

// healthy is the verdict of a diagnosis.
func (c *Cluster) healthy(ctx context.Context) (Finding, error) {
	look := c.Diagnose
	if look == nil {
		look = c.diagnose
	}
	r, err := look(ctx)
	if err != nil {
		return Finding{}, err
	}
	t := tally{faults: append(r.Problems(), r.Undetermined...), warnings: r.Warnings(), good: []string{"no finding"}}
	if r.Healthy {
		t.faults = nil
	}
	for _, text := range r.Unread {
		t.warnings = append(t.warnings, "not known: "+text)
	}
	f := t.finding(few(r.Hints()))
	if f.Next == "" && f.Status != Passed {
		f.Next = "look again with an administrator's rights, and when the cluster has less to do"
	}
	f.Findings = r.Findings
	return f, nil
}

// distance is how many times the limits of a diagnosis the answers may take of a cluster that is not on this computer.
const distance = 3

// diagnose finds what an API server alone can tell.
func (c *Cluster) diagnose(ctx context.Context) (diagnose.Report, error) {
	facts := diagnose.Collect(ctx, diagnose.Sources{
		Patience: distance * max(1, c.Patience), Since: fact.NoTexts,
		Open: func(context.Context, string) (diagnose.Cluster, error) {
			return diagnose.Cluster{Kube: kube.Of(c.Kube)}, nil
		},
		Prove: func(ctx context.Context, _ diagnose.Cluster) []fact.Organ {
			return diagnose.Measure(ctx, c.conditions(), -1)
		},
	})
	if err := ctx.Err(); err != nil {
		return diagnose.Report{}, context.Cause(ctx)
	}
	return diagnose.NewReport(facts)
}

// conditions are what holds in a healthy cluster of any make.
func (c *Cluster) conditions() []diagnose.Condition {
	return []diagnose.Condition{
		{Organ: "node", Name: "every Node Ready", Check: c.nodesReady},
		{Organ: fact.OrganStaticPods, Name: "control planes run their static pods", Check: c.staticPodsReady},
		{Organ: "CoreDNS", Name: "CoreDNS running", Check: c.coreDNSReady},
		{Organ: "pod network", Name: "kube-proxy ready on every Node", Check: func(ctx context.Context) error {
			f, err := c.kubeProxyReady(ctx, "")
			if err == nil && f.Status == Failed {
				err = errors.New(f.Detail)
			}
			return err
		}},
	}
}

func (c *Cluster) nodesReady(ctx context.Context) error {
	nodes, err := c.nodes(ctx)
	errs := []error{err}
	for _, n := range nodes {
		if err := kube.NodeReady(&n); err != nil {
			errs = append(errs, diagnose.Ailing{Node: n.Name, Err: err})
		}
	}
	return errors.Join(errs...)
}

// controlPlane is what the control planes' static pods are, by component and Node.
type controlPlane struct {
	nodes []string
	pods  map[string]map[string]*corev1.Pod // component → Node
}

func (c *Cluster) controlPlane(ctx context.Context) (cp controlPlane, err error) {
	nodes, err := c.nodes(ctx)
	if err != nil {
		return cp, err
	}
	for _, n := range nodes {
		if _, is := n.Labels[controlPlaneLabel]; is {
			cp.nodes = append(cp.nodes, n.Name)
		}
	}
	list, err := c.Kube.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: "tier=control-plane"})
	if err != nil {
		return cp, fmt.Errorf("list the control planes' pods: %w", err)
	}
	cp.pods = map[string]map[string]*corev1.Pod{}
	for i, p := range list.Items {
		component := p.Labels["component"]
		if p.Name != component+"-"+p.Spec.NodeName {
			continue
		}
		if cp.pods[component] == nil {
			cp.pods[component] = map[string]*corev1.Pod{}
		}
		cp.pods[component][p.Spec.NodeName] = &list.Items[i]
	}
	return cp, nil
}

// young is how old a static pod may be that its kubelet has not reported as ready.
const young = 2 * time.Minute

// staticPodsReady says what kubeadm's control planes do not run; others have no static pods.
func (c *Cluster) staticPodsReady(ctx context.Context) error {
	cp, err := c.controlPlane(ctx)
	if err != nil || len(cp.pods) == 0 {
		return err
	}
	var errs []error
	for _, component := range staticPods {
		if component == etcdComponent && len(cp.pods[component]) == 0 {
			continue // it is outside of the cluster
		}
		for _, node := range cp.nodes {
			switch pod := cp.pods[component][node]; {
			case pod == nil:
				errs = append(errs, diagnose.Ailing{Node: node, Err: errors.New("it runs no " + component)})
			case !kube.PodReady(pod) && time.Since(pod.CreationTimestamp.Time) >= young:
				errs = append(errs, diagnose.Ailing{Node: node, Err: fmt.Errorf("%s is not ready: %s", pod.Name, c.why(ctx, pod))})
			}
		}
	}
	return errors.Join(errs...)
}

// coreDNSReady looks for CoreDNS by the label that every distribution keeps, because clients find it by its Service.
func (c *Cluster) coreDNSReady(ctx context.Context) error {
	list, err := c.Kube.AppsV1().Deployments(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: "k8s-app=kube-dns"})
	if err != nil {
		return fmt.Errorf("list deployments of namespace kube-system: %w", err)
	}
	var errs []error
	for _, d := range list.Items {
		line, ready := replicas(&d)
		if ready {
			continue
		}
		pods, err := c.podsOf(ctx, d.Namespace, d.Spec.Selector)
		if i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return !kube.PodReady(&p) }); i >= 0 {
			line += fmt.Sprintf("; pod %s: %s", pods[i].Name, c.why(ctx, &pods[i]))
		}
		errs = append(errs, errors.New(line), err)
	}
	return errors.Join(errs...)
}

// replicas says how many pods of a Deployment are ready, and whether all are, at least one.
func replicas(d *appsv1.Deployment) (line string, all bool) {
	ready, want, err := kube.DeploymentPods(d)
	if err != nil {
		return err.Error(), false
	}
	return fmt.Sprintf("Deployment %s/%s: %d of %d pods are ready", d.Namespace, d.Name, ready, want), ready > 0 && ready >= want
}

func (c *Cluster) kubeProxyReady(ctx context.Context, node string) (Finding, error) {
	nodes, err := c.tested(ctx, node)
	if err != nil {
		return Finding{}, err
	}
	set, err := c.Kube.AppsV1().DaemonSets(metav1.NamespaceSystem).Get(ctx, "kube-proxy", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return absent("there is no DaemonSet kube-system/kube-proxy: another component does its work"), nil
	}
	if err != nil {
		return Finding{}, fmt.Errorf("get daemonset kube-system/kube-proxy: %w", err)
	}
	t, err := c.readyOn(ctx, []appsv1.DaemonSet{*set}, nodes)
	return t.finding("read its log: kubectl -n kube-system logs -l k8s-app=kube-proxy; Services are not routed on the Node until it runs"), err
}
