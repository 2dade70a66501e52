package validate

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// csi is what the cluster records about CSI drivers.
type csi struct {
	on         map[string][]string            // driver → Nodes whose kubelet has registered it
	drivers    map[string]storagev1.CSIDriver // by name
	classes    map[string]string              // StorageClass → driver
	capacities []storagev1.CSIStorageCapacity
}

func (c *Cluster) csi(ctx context.Context) (s csi, err error) {
	storage := c.Kube.StorageV1()
	s = csi{on: map[string][]string{}, drivers: map[string]storagev1.CSIDriver{}, classes: map[string]string{}}
	nodes, err := storage.CSINodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, fmt.Errorf("list csinodes: %w", err)
	}
	for _, n := range nodes.Items {
		for _, d := range n.Spec.Drivers {
			s.on[d.Name] = append(s.on[d.Name], n.Name)
		}
	}
	drivers, err := storage.CSIDrivers().List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, fmt.Errorf("list csidrivers: %w", err)
	}
	for _, d := range drivers.Items {
		s.drivers[d.Name] = d
	}
	classes, err := storage.StorageClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, fmt.Errorf("list storageclasses: %w", err)
	}
	for _, class := range classes.Items {
		s.classes[class.Name] = class.Provisioner
	}
	capacities, err := storage.CSIStorageCapacities("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, fmt.Errorf("list csistoragecapacities: %w", err)
	}
	s.capacities = capacities.Items
	return s, nil
}

const csiNext = "look at the driver's DaemonSet: its pod on the Node registers the driver with the kubelet (kubectl get csinodes; journalctl -u kubelet)"

func (c *Cluster) csiRegistered(ctx context.Context, node string) (Finding, error) {
	tested, err := c.tested(ctx, node)
	if err != nil {
		return Finding{}, err
	}
	all, err := c.nodes(ctx)
	if err != nil {
		return Finding{}, err
	}
	s, err := c.csi(ctx)
	if err != nil {
		return Finding{}, err
	}
	if len(s.on) == 0 {
		if len(s.drivers) == 0 {
			return absent("the cluster has no CSI driver"), nil
		}
		return warn(csiNext, "no Node has registered a driver, though there are CSIDriver objects: %s", few(slices.Sorted(maps.Keys(s.drivers)))), nil
	}
	var t tally
	for _, n := range tested {
		for _, driver := range slices.Sorted(maps.Keys(s.on)) {
			s.judge(&t, driver, &n, all)
		}
	}
	if len(t.faults)+len(t.warnings)+len(t.good) == 0 {
		return absent("%s takes no ordinary pods, and no driver is installed there", where(node)), nil
	}
	return t.finding(csiNext), nil
}

// judge returns the findings of a driver on a Node: none where a taint keeps ordinary pods away. A driver that several Nodes lack may be
// meant for only some of them.
func (s csi) judge(t *tally, driver string, n *corev1.Node, all []corev1.Node) {
	if !slices.Contains(s.on[driver], n.Name) {
		line := fmt.Sprintf("%s: the kubelet has not registered %s, as it has on %s", n.Name, driver, few(s.on[driver]))
		others := slices.ContainsFunc(all, func(o corev1.Node) bool {
			return o.Name != n.Name && takesPods(&o) && !slices.Contains(s.on[driver], o.Name)
		})
		switch {
		case !takesPods(n):
		case others:
			t.warnings = append(t.warnings, line+"; other Nodes lack it too")
		default:
			t.faults = append(t.faults, line)
		}
		return
	}
	tracks := s.drivers[driver].Spec.StorageCapacity
	if tracks == nil || !*tracks {
		t.good = append(t.good, fmt.Sprintf("%s: %s, which publishes no capacity", n.Name, driver))
		return
	}
	if free := s.capacity(driver, n); free > 0 {
		t.good = append(t.good, fmt.Sprintf("%s: %s, %s free", n.Name, driver, gib(free)))
	} else {
		t.faults = append(t.faults, fmt.Sprintf("%s: %s is registered, but publishes no capacity for the Node", n.Name, driver))
	}
}

// capacity is the largest capacity for volumes on the Node that a class of the driver has, in bytes.
func (s csi) capacity(driver string, n *corev1.Node) (most int64) {
	for _, c := range s.capacities {
		selector, err := metav1.LabelSelectorAsSelector(c.NodeTopology)
		if err == nil && c.Capacity != nil && s.classes[c.StorageClassName] == driver && selector.Matches(labels.Set(n.Labels)) {
			most = max(most, c.Capacity.Value())
		}
	}
	return most
}
