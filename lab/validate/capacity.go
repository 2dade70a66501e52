package validate

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// CapacityChecks check whether the cluster has room for one more Node, with this number of CPUs and MiB of memory (0 for unknown), and
// whether pods wait for one.
func (c *Cluster) CapacityChecks(cpus, memory int) []Check {
	return []Check{
		check(AreaCluster, "the pod network has room for one more Node", c.podNetworkRoom),
		check(AreaCluster, "no pod waits for resources", func(ctx context.Context) (Finding, error) { return c.noneWaits(ctx, cpus, memory) }),
	}
}

// podNetworkRoom counts the pod networks that kube-controller-manager can still give to Nodes.
func (c *Cluster) podNetworkRoom(ctx context.Context) (Finding, error) {
	flags, err := c.controllerFlags(ctx)
	if err != nil {
		return Finding{}, err
	}
	if flags == nil {
		return absent("kube-controller-manager cannot be seen, so what it hands out is not known"), nil
	}
	if flags["allocate-node-cidrs"] != "true" {
		return absent("kube-controller-manager hands out no pod networks (--allocate-node-cidrs): the pod network does so itself"), nil
	}
	subnets := flags["cluster-cidr"]
	if subnets == "" {
		if subnets, err = c.podSubnet(ctx); err != nil {
			return Finding{}, err
		}
	}
	nodes, err := c.nodes(ctx)
	if err != nil {
		return Finding{}, err
	}
	var t tally
	for subnet := range strings.SplitSeq(subnets, ",") {
		given, err := netip.ParsePrefix(strings.TrimSpace(subnet))
		if err != nil {
			return Finding{}, fmt.Errorf("read the cluster's pod network %q: %w", subnets, err)
		}
		left, of := room(given, maskSize(flags, given), nodes)
		line := fmt.Sprintf("%s: %d of %d networks for Nodes are left", given, left, of)
		if left > 0 {
			t.good = append(t.good, line)
		} else {
			t.faults = append(t.faults, line)
		}
	}
	return t.finding("take away Nodes that are gone (kubectl delete node), or give the cluster a larger pod network: a Node without one gets no pods"), nil
}

// maskSize is the prefix length of a Node's network within the given one. kube-controller-manager's defaults are 24 and 64.
func maskSize(flags map[string]string, given netip.Prefix) int {
	family, size := "ipv4", 24
	if given.Addr().Is6() {
		family, size = "ipv6", 64
	}
	for _, flag := range []string{"node-cidr-mask-size-" + family, "node-cidr-mask-size"} {
		if n, err := strconv.Atoi(flags[flag]); err == nil {
			return n
		}
	}
	return size
}

// room counts the networks of that size within the given one, and those that no Node has.
func room(given netip.Prefix, size int, nodes []corev1.Node) (left, of int) {
	of = 1 << min(max(0, size-given.Bits()), 30)
	left = of
	for _, n := range nodes {
		for _, cidr := range n.Spec.PodCIDRs {
			if p, err := netip.ParsePrefix(cidr); err == nil && given.Contains(p.Addr()) {
				left--
			}
		}
	}
	return max(0, left), of
}

// controllerFlags are the flags of a kube-controller-manager that runs as kubeadm's static pod; nil when there is none.
func (c *Cluster) controllerFlags(ctx context.Context) (map[string]string, error) {
	cp, err := c.controlPlane(ctx)
	if err != nil {
		return nil, err
	}
	for _, pod := range cp.pods["kube-controller-manager"] {
		flags := map[string]string{}
		for _, container := range pod.Spec.Containers {
			for _, arg := range slices.Concat(container.Command, container.Args) {
				if flag, is := strings.CutPrefix(arg, "--"); is {
					name, value, _ := strings.Cut(flag, "=")
					flags[name] = value
				}
			}
		}
		return flags, nil
	}
	return nil, nil
}

// podSubnet is the pod subnet in kubeadm's configuration.
func (c *Cluster) podSubnet(ctx context.Context) (string, error) {
	m, err := c.Kube.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "kubeadm-config", metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("get configmap kube-system/kubeadm-config: %w", err)
	}
	var config struct {
		Networking struct {
			PodSubnet string `json:"podSubnet"`
		} `json:"networking"`
	}
	if err == nil {
		err = yaml.Unmarshal([]byte(m.Data["ClusterConfiguration"]), &config)
	}
	if err != nil || config.Networking.PodSubnet == "" {
		return "", fmt.Errorf("kube-controller-manager has no --cluster-cidr, and ConfigMap kube-system/kubeadm-config names no podSubnet: no Node gets a pod network")
	}
	return config.Networking.PodSubnet, nil
}

// noneWaits reports pods for which no Node has room, and separately those that no Node suits.
func (c *Cluster) noneWaits(ctx context.Context, cpus, memory int) (Finding, error) {
	list, err := c.Kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Pending"})
	if err != nil {
		return Finding{}, fmt.Errorf("list pending pods: %w", err)
	}
	var cpu, mem resource.Quantity
	var waiting, unfit []string
	for _, p := range list.Items {
		why := unschedulable(&p)
		line := fmt.Sprintf("%s/%s: %s", p.Namespace, p.Name, why)
		switch {
		case strings.Contains(why, "Insufficient "), strings.Contains(why, "Too many pods"):
			waiting = append(waiting, line)
			cpu.Add(requested(&p, corev1.ResourceCPU))
			mem.Add(requested(&p, corev1.ResourceMemory))
		case why != "":
			unfit = append(unfit, line)
		}
	}
	detail := "no pod is pending for want of a Node"
	if len(unfit) > 0 {
		detail = "pods that fit no Node, whatever its size: " + few(unfit)
	}
	if len(waiting) == 0 {
		return pass("%s", detail), nil
	}
	asked := fmt.Sprintf("%d pods wait for room and ask for %g CPUs and %d MiB of memory in all", len(waiting), cpu.AsApproximateFloat64(), mem.Value()>>20)
	if cpus > 0 && memory > 0 {
		asked += fmt.Sprintf("; the new Node has %d CPUs and %d MiB", cpus, memory)
	}
	return warn("the new Node may be full at once; see what asks for so much: kubectl describe nodes", "%s: %s", asked, few(waiting)), nil
}

// unschedulable says why the scheduler cannot place the pod, "" if it can.
func unschedulable(p *corev1.Pod) string {
	for _, cond := range p.Status.Conditions {
		if cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionFalse && cond.Reason == corev1.PodReasonUnschedulable {
			return cond.Message
		}
	}
	return ""
}

// requested is what the pod requests: the sum of its containers, or an init container's request if that is larger.
func requested(p *corev1.Pod, name corev1.ResourceName) resource.Quantity {
	var sum resource.Quantity
	for _, container := range p.Spec.Containers {
		sum.Add(container.Resources.Requests[name])
	}
	for _, container := range p.Spec.InitContainers {
		if q := container.Resources.Requests[name]; sum.Cmp(q) < 0 {
			sum = q
		}
	}
	return sum
}
