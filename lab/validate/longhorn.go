package validate

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

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
