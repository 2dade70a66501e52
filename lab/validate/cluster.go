package validate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8slab/lab/kube"
	"k8slab/lab/wait"
)

// staticPods are the components that kubeadm runs as static pods of a control plane. Their pods are named COMPONENT-NODE.
var staticPods = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", etcdComponent}

const etcdComponent = "etcd"

// ClusterChecks check the control plane, and what every Node needs of it.
func (c *Cluster) ClusterChecks() []Check {
	return []Check{
		check(AreaCluster, "the API server is ready", c.apiReady),
		check(AreaCluster, "every Node is Ready", c.nodesReady),
		check(AreaCluster, "no Node is under pressure", c.noPressure),
		check(AreaCluster, "control planes run their static pods", c.staticPodsReady),
		check(AreaCluster, "etcd has its quorum and no alarm", c.etcdHealthy),
		check(AreaCluster, "CoreDNS is ready", c.coreDNSReady),
		check(AreaCluster, "kube-proxy is ready on every Node", func(ctx context.Context) (Finding, error) { return c.kubeProxyReady(ctx, "") }),
		check(AreaCluster, "versions are within the skew policy", c.skew),
	}
}

func (c *Cluster) apiReady(ctx context.Context) (Finding, error) {
	reasons, err := kube.Readyz(ctx, c.Kube, "")
	t := tally{faults: reasons, good: []string{"/readyz answered ok"}}
	return t.finding("read the API server's log: kubectl -n kube-system logs -l component=kube-apiserver, or crictl logs on the control plane"), err
}

func (c *Cluster) nodesReady(ctx context.Context) (Finding, error) {
	nodes, err := c.nodes(ctx)
	var t tally
	for _, n := range nodes {
		if err := kube.NodeReady(&n); err != nil {
			t.faults = append(t.faults, err.Error())
		} else {
			t.good = append(t.good, n.Name)
		}
	}
	return t.finding("read the kubelet's journal on the Node: journalctl -u kubelet; in a lab: labctl diagnose"), err
}

// strains are the conditions that are False on a healthy Node.
var strains = []corev1.NodeConditionType{
	corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable,
}

func (c *Cluster) noPressure(ctx context.Context) (Finding, error) {
	nodes, err := c.nodes(ctx)
	var t tally
	for _, n := range nodes {
		count := len(t.faults)
		for _, kind := range strains {
			if cond := kube.NodeCondition(&n, kind); cond.Status == corev1.ConditionTrue {
				t.faults = append(t.faults, fmt.Sprintf("%s: %s: %s", n.Name, kind, cond.Message))
			}
		}
		if len(t.faults) == count {
			t.good = append(t.good, n.Name)
		}
	}
	return t.finding("free memory or disk space on the Node, or fix its pod network; evictions continue until then"), err
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

const (
	// reportBudget is how long a kubelet may take to report a new static pod as ready.
	reportBudget = 30 * time.Second
	young        = 2 * time.Minute
)

// staticPodsReady waits for the report of static pods that have just been made.
func (c *Cluster) staticPodsReady(ctx context.Context) (f Finding, err error) {
	waited := wait.For(ctx, "static pods to be ready", c.patient(reportBudget), settlePace, func(ctx context.Context) error {
		cp, looked := c.controlPlane(ctx)
		if err = looked; err != nil {
			return nil // the finding's error
		}
		f = c.judgeStatic(ctx, cp)
		if f.Status == Failed && cp.starting() {
			return errors.New(f.Detail)
		}
		return nil
	})
	if err == nil && waited != nil && ctx.Err() != nil {
		err = waited
	}
	return f, err
}

// starting tells whether one of the pods is young and not ready.
func (cp controlPlane) starting() bool {
	for _, pods := range cp.pods {
		for _, p := range pods {
			if !kube.PodReady(p) && time.Since(p.CreationTimestamp.Time) < young {
				return true
			}
		}
	}
	return false
}

func (c *Cluster) judgeStatic(ctx context.Context, cp controlPlane) Finding {
	if len(cp.pods) == 0 {
		return absent("no control plane runs its components as kubeadm's static pods")
	}
	var t tally
	for _, component := range staticPods {
		if component == etcdComponent && len(cp.pods[component]) == 0 {
			continue // it is outside of the cluster
		}
		for _, node := range cp.nodes {
			switch pod := cp.pods[component][node]; {
			case pod == nil:
				t.faults = append(t.faults, node+" runs no "+component)
			case !kube.PodReady(pod):
				t.faults = append(t.faults, fmt.Sprintf("%s is not ready: %s", pod.Name, c.why(ctx, pod)))
			}
		}
	}
	t.good = []string{"all are ready on " + strings.Join(cp.nodes, ", ")}
	return t.finding("read the component's log on its control plane: crictl ps -a, crictl logs; and its manifest in /etc/kubernetes/manifests")
}

const etcdNext = "bring the members back before any Node joins; in a lab: labctl etcd members, labctl diagnose"

// etcdHealthy asks Etcd about the members. Without it, it checks etcd's pods and the API server's own connection to etcd.
func (c *Cluster) etcdHealthy(ctx context.Context) (Finding, error) {
	if c.Etcd != nil {
		problems, err := c.Etcd(ctx)
		t := tally{faults: problems, good: []string{"every member is a healthy voter, and there is no alarm"}}
		return t.finding(etcdNext), err
	}
	cp, err := c.controlPlane(ctx)
	if err != nil {
		return Finding{}, err
	}
	reasons, err := kube.Readyz(ctx, c.Kube, "/etcd")
	if err != nil {
		return Finding{}, err
	}
	if len(reasons) > 0 {
		return fail(etcdNext, "the API server cannot use etcd: %s", few(reasons)), nil
	}
	pods := cp.pods[etcdComponent]
	if len(pods) == 0 {
		return pass("the API server can use etcd, which is not in the cluster's pods; alarms are seen with etcd's certificates only"), nil
	}
	var down []string
	for _, p := range pods {
		if !kube.PodReady(p) {
			down = append(down, p.Name+": "+c.why(ctx, p))
		}
	}
	slices.Sort(down)
	up := fmt.Sprintf("%d of %d members' pods are ready", len(pods)-len(down), len(pods))
	if len(down) > 0 {
		return fail(etcdNext, "%s; %s", up, few(down)), nil
	}
	return pass("%s; alarms are seen with etcd's certificates only", up), nil
}

// coreDNSReady looks for CoreDNS by the label that every distribution keeps, because clients find it by its Service.
func (c *Cluster) coreDNSReady(ctx context.Context) (Finding, error) {
	list, err := c.Kube.AppsV1().Deployments(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: "k8s-app=kube-dns"})
	if err != nil {
		return Finding{}, fmt.Errorf("list deployments of namespace kube-system: %w", err)
	}
	if len(list.Items) == 0 {
		return absent("namespace kube-system has no Deployment with the label k8s-app=kube-dns"), nil
	}
	var t tally
	for _, d := range list.Items {
		line, ready := replicas(&d)
		if ready {
			t.good = append(t.good, line)
			continue
		}
		pods, err := c.podsOf(ctx, d.Namespace, d.Spec.Selector)
		if err != nil {
			return Finding{}, err
		}
		if i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return !kube.PodReady(&p) }); i >= 0 {
			line += fmt.Sprintf("; pod %s: %s", pods[i].Name, c.why(ctx, &pods[i]))
		}
		t.faults = append(t.faults, line)
	}
	return t.finding("without it, names of Services do not resolve: kubectl -n kube-system describe pods -l k8s-app=kube-dns"), nil
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
