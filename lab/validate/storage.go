package validate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// StorageChecks check whether the cluster's storage systems use the named Node, or all with "", and have capacity there. They also check
// that a claim of the default class is bound, written there and read back.
func (c *Cluster) StorageChecks(node string) []Check {
	on := func(look func(ctx context.Context, node string) (Finding, error)) func(context.Context) (Finding, error) {
		return func(ctx context.Context) (Finding, error) { return look(ctx, node) }
	}
	return []Check{
		check(AreaStorage, "CSI drivers are registered on "+where(node), on(c.csiRegistered)),
		check(AreaStorage, "Longhorn has the disks of "+where(node), on(c.longhornReady)),
		check(AreaStorage, "local-path-provisioner serves "+where(node), on(c.localPathReady)),
		try(AreaStorage, "a claim is written and read on "+where(node), on(c.claimWorks)),
	}
}

const (
	localPath = "local-path-provisioner"
	// localPathRest stands in its configuration for the Nodes that are not listed.
	localPathRest = "DEFAULT_PATH_FOR_NON_LISTED_NODES"
)

// localPathConfig is config.json of local-path-provisioner's ConfigMap.
type localPathConfig struct {
	NodePathMap []struct {
		Node  string   `json:"node"`
		Paths []string `json:"paths"`
	} `json:"nodePathMap"`
	SharedPath string `json:"sharedFileSystemPath"`
}

// pathOn is the directory for volumes on the Node, "" when it gets none.
func (p localPathConfig) pathOn(node string) string {
	rest := p.SharedPath
	for _, entry := range p.NodePathMap {
		path := ""
		if len(entry.Paths) > 0 {
			path = entry.Paths[0]
		}
		switch entry.Node {
		case node:
			return path // an entry without paths keeps volumes away
		case localPathRest:
			rest = path
		}
	}
	return rest
}

func (c *Cluster) localPathReady(ctx context.Context, node string) (Finding, error) {
	nodes, err := c.tested(ctx, node)
	if err != nil {
		return Finding{}, err
	}
	list, err := c.Kube.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return Finding{}, fmt.Errorf("list deployments: %w", err)
	}
	i := slices.IndexFunc(list.Items, func(d appsv1.Deployment) bool { return d.Name == localPath })
	if i < 0 {
		return absent("no namespace has a Deployment %s", localPath), nil
	}
	d := &list.Items[i]
	next := fmt.Sprintf("see kubectl -n %s logs deploy/%s, and the paths in config.json of its ConfigMap", d.Namespace, d.Name)
	if line, ready := replicas(d); !ready {
		return fail(next, "%s", line), nil
	}
	config, err := c.localPathConfig(ctx, d)
	if err != nil {
		return Finding{}, err
	}
	var t tally
	for _, n := range nodes {
		size := n.Status.Allocatable[corev1.ResourceEphemeralStorage]
		switch path := config.pathOn(n.Name); {
		case path == "":
			t.faults = append(t.faults, n.Name+": its ConfigMap has no path for volumes of the Node")
		case size.IsZero():
			t.faults = append(t.faults, n.Name+": the kubelet reports no ephemeral-storage that could be allocated")
		default:
			t.good = append(t.good, fmt.Sprintf("%s: %s, on a disk with %s", n.Name, path, gib(size.Value())))
		}
	}
	return t.finding(next), nil
}

func (c *Cluster) localPathConfig(ctx context.Context, d *appsv1.Deployment) (config localPathConfig, err error) {
	name := "local-path-config"
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.ConfigMap != nil {
			name = v.ConfigMap.Name
		}
	}
	m, err := c.Kube.CoreV1().ConfigMaps(d.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		err = json.Unmarshal([]byte(m.Data["config.json"]), &config)
	}
	if err != nil {
		err = fmt.Errorf("read config.json of configmap %s/%s: %w", d.Namespace, name, err)
	}
	return config, err
}

func gib(bytes int64) string { return resource.NewQuantity(bytes>>30<<30, resource.BinarySI).String() }

const longhornNamespace = "longhorn-system"

var longhornNodes = schema.GroupVersionResource{Group: "longhorn.io", Version: "v1beta2", Resource: "nodes"}

// longhornNode is what is needed of Longhorn's record of a Node (nodes.longhorn.io, v1beta2).
type longhornNode struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		AllowScheduling bool `json:"allowScheduling"`
	} `json:"spec"`
	Status struct {
		Conditions []longhornCondition     `json:"conditions"`
		DiskStatus map[string]longhornDisk `json:"diskStatus"`
	} `json:"status"`
}

type longhornDisk struct {
	Path             string              `json:"diskPath"`
	StorageMaximum   int64               `json:"storageMaximum"`   // bytes
	StorageAvailable int64               `json:"storageAvailable"` // bytes
	Conditions       []longhornCondition `json:"conditions"`
}

type longhornCondition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// unmet lists which of Ready and Schedulable do not hold, and why.
func unmet(conditions []longhornCondition) (faults []string) {
	for _, want := range []string{"Ready", "Schedulable"} {
		i := slices.IndexFunc(conditions, func(c longhornCondition) bool { return c.Type == want })
		switch {
		case i < 0:
			faults = append(faults, "not "+want+": the condition is not reported")
		case conditions[i].Status != "True":
			faults = append(faults, fmt.Sprintf("not %s: %s: %s", want, conditions[i].Reason, conditions[i].Message))
		}
	}
	return faults
}

const longhornNext = "look at longhorn-manager on the Node and at its disks: kubectl -n longhorn-system get nodes.longhorn.io -o yaml"

func (c *Cluster) longhornReady(ctx context.Context, node string) (Finding, error) {
	tested, err := c.tested(ctx, node)
	if err != nil {
		return Finding{}, err
	}
	records, served, err := c.longhorn(ctx)
	if err != nil {
		return Finding{}, err
	}
	if !served {
		return absent("the cluster has no Longhorn: the API server does not know nodes.longhorn.io"), nil
	}
	var t tally
	for _, n := range tested {
		record, known := records[n.Name]
		switch {
		case known:
			record.judge(&t)
		case takesPods(&n):
			t.faults = append(t.faults, n.Name+": Longhorn has no record of it, so longhorn-manager has not run there")
		}
	}
	if len(t.faults)+len(t.warnings)+len(t.good) == 0 {
		return absent("%s takes no ordinary pods, and Longhorn is not installed there", where(node)), nil
	}
	return t.finding(longhornNext), nil
}

func (n longhornNode) judge(t *tally) {
	name := n.Metadata.Name
	if !n.Spec.AllowScheduling {
		t.warnings = append(t.warnings, name+": its administrator lets Longhorn place nothing there (allowScheduling)")
		return
	}
	faults := unmet(n.Status.Conditions)
	var most, free int64
	for _, id := range slices.Sorted(maps.Keys(n.Status.DiskStatus)) {
		disk := n.Status.DiskStatus[id]
		most, free = most+disk.StorageMaximum, free+disk.StorageAvailable
		for _, fault := range unmet(disk.Conditions) {
			faults = append(faults, fmt.Sprintf("disk %s (%s) is %s", id, disk.Path, fault))
		}
	}
	if most == 0 {
		faults = append(faults, fmt.Sprintf("%d disks, without capacity", len(n.Status.DiskStatus)))
	}
	for _, fault := range faults {
		t.faults = append(t.faults, name+": "+fault)
	}
	if len(faults) == 0 {
		t.good = append(t.good, fmt.Sprintf("%s: %d disks, %s of %s free", name, len(n.Status.DiskStatus), gib(free), gib(most)))
	}
}

// longhorn reads Longhorn's records of Nodes, by name.
func (c *Cluster) longhorn(ctx context.Context) (records map[string]longhornNode, served bool, err error) {
	list, err := c.Dynamic.Resource(longhornNodes).Namespace(longhornNamespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("list nodes.longhorn.io: %w", err)
	}
	records = map[string]longhornNode{}
	for _, item := range list.Items {
		var n longhornNode
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &n); err != nil {
			return nil, true, fmt.Errorf("read nodes.longhorn.io %s: %w", item.GetName(), err)
		}
		records[item.GetName()] = n
	}
	return records, true, nil
}
