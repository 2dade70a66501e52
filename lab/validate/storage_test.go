package validate

import (
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

const driver = "disk.example"

func csiNode(name string, drivers ...string) *storagev1.CSINode {
	n := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, d := range drivers {
		n.Spec.Drivers = append(n.Spec.Drivers, storagev1.CSINodeDriver{Name: d, NodeID: name})
	}
	return n
}

func storageClass(name, provisioner string, isDefault bool) *storagev1.StorageClass {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner}
	if isDefault {
		class.Annotations = map[string]string{defaultClassAnnotation: "true"}
	}
	return class
}

func TestCSIDrivers(t *testing.T) {
	yes := true
	tracked := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: storagev1.CSIDriverSpec{StorageCapacity: &yes}}
	capacity := func(node, size string) *storagev1.CSIStorageCapacity {
		q := resource.MustParse(size)
		return &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Namespace: "disk", Name: "c-" + node}, StorageClassName: "disk", Capacity: &q,
			NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelHostname: node}}}
	}
	tests := []struct {
		name    string
		node    string
		objects []runtime.Object
		status  Status
		words   []string
	}{
		{"none", "", nil, NotApplicable, []string{"no CSI driver"}},
		{"on all", "", []runtime.Object{csiNode("w1", driver), csiNode("w2", driver)}, Passed, []string{"w1: disk.example, which publishes no capacity", "w2"}},
		{"not on the new one", "w2", []runtime.Object{csiNode("w1", driver), csiNode("w2")}, Failed, []string{"w2: the kubelet has not registered disk.example, as it has on w1"}},
		{"no CSINode yet", "w2", []runtime.Object{csiNode("w1", driver)}, Failed, []string{"w2"}},
		{"not on several", "w2", []runtime.Object{csiNode("w1", driver), csiNode("w2"), node("w3"), csiNode("w3")}, Warned, []string{"other Nodes lack it too"}},
		{"not on a control plane", "cp1", []runtime.Object{csiNode("w1", driver), csiNode("cp1")}, NotApplicable, []string{"cp1 takes no ordinary pods"}},
		{"nowhere", "", []runtime.Object{tracked, csiNode("w1")}, Warned, []string{"no Node has registered"}},
		{"with capacity", "w1", []runtime.Object{tracked, storageClass("disk", driver, false), csiNode("w1", driver), capacity("w1", "20Gi"), capacity("w2", "90Gi")}, Passed, []string{"20Gi free"}},
		{"without", "w1", []runtime.Object{tracked, storageClass("disk", driver, false), csiNode("w1", driver), capacity("w2", "90Gi")}, Failed, []string{"publishes no capacity for the Node"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, c := newWorld(t, append(tt.objects, node("cp1"), node("w1"), node("w2"))...)
			wantFinding(t, c.StorageChecks(tt.node), "CSI drivers", tt.status, tt.words...)
		})
	}
}

// longhornRecord is as Longhorn 1.9 writes it, cut to what matters.
func longhornRecord(name, ready, disk string, size int64) *unstructured.Unstructured {
	condition := func(kind, status string) any {
		return map[string]any{"type": kind, "status": status, "reason": "DiskNotReady", "message": "Disk default-disk on node has no space"}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "longhorn.io/v1beta2", "kind": "Node", "metadata": map[string]any{"name": name, "namespace": longhornNamespace},
		"spec": map[string]any{"allowScheduling": true},
		"status": map[string]any{
			"conditions": []any{condition("Ready", ready), condition("Schedulable", "True"), condition("MountPropagation", "True")},
			"diskStatus": map[string]any{"default-disk": map[string]any{
				"diskPath": "/var/lib/longhorn/", "storageMaximum": size, "storageAvailable": size / 2, "conditions": []any{condition("Ready", "True"), condition("Schedulable", disk)},
			}},
		},
	}}
}

func TestLonghorn(t *testing.T) {
	const size = int64(20) << 30
	closed := longhornRecord("w1", "True", "True", size)
	_ = unstructured.SetNestedField(closed.Object, false, "spec", "allowScheduling")
	bare := longhornRecord("w1", "True", "True", size)
	unstructured.RemoveNestedField(bare.Object, "status", "diskStatus")
	tests := []struct {
		name   string
		record *unstructured.Unstructured
		node   string
		status Status
		words  []string
	}{
		{"taken in", longhornRecord("w1", "True", "True", size), "w1", Passed, []string{"w1: 1 disks, 10Gi of 20Gi free"}},
		{"not Ready", longhornRecord("w1", "False", "True", size), "w1", Failed, []string{"w1: not Ready: DiskNotReady"}},
		{"disk not schedulable", longhornRecord("w1", "True", "False", size), "w1", Failed, []string{"disk default-disk (/var/lib/longhorn/) is not Schedulable", "has no space"}},
		{"no capacity", longhornRecord("w1", "True", "True", 0), "w1", Failed, []string{"1 disks, without capacity"}},
		{"no disk", bare, "w1", Failed, []string{"0 disks, without capacity"}},
		{"no record", longhornRecord("w1", "True", "True", size), "w2", Failed, []string{"w2: Longhorn has no record of it"}},
		{"closed by its administrator", closed, "w1", Warned, []string{"allowScheduling"}},
		{"not on a control plane", longhornRecord("w1", "True", "True", size), "cp1", NotApplicable, []string{"cp1 takes no ordinary pods"}},
		{"no Longhorn", nil, "", NotApplicable, []string{"has no Longhorn"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, c := newWorld(t, node("cp1"), node("w1"), node("w2"))
			dyn := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{longhornNodes: "NodeList"})
			if tt.record != nil {
				_ = dyn.Tracker().Create(longhornNodes, tt.record, longhornNamespace)
			} else {
				dyn.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewNotFound(longhornNodes.GroupResource(), "")
				})
			}
			c.Dynamic = dyn
			wantFinding(t, c.StorageChecks(tt.node), "Longhorn", tt.status, tt.words...)
		})
	}
}

func TestLocalPath(t *testing.T) {
	const every = `{"nodePathMap":[{"node":"DEFAULT_PATH_FOR_NON_LISTED_NODES","paths":["/opt/local-path-provisioner"]},{"node":"w9","paths":[]}]}`
	provisioner := func(ready int32, config string) []runtime.Object {
		d := deployment("local-path-storage", localPath, map[string]string{"app": localPath}, ready)
		d.Spec.Template.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "paths"}}}}}
		return []runtime.Object{d, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: "paths"}, Data: map[string]string{"config.json": config}}}
	}
	disk := func(n *corev1.Node) {
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("18Gi")}
	}
	tests := []struct {
		name    string
		node    string
		objects []runtime.Object
		status  Status
		words   []string
	}{
		{"none", "", nil, NotApplicable, []string{"no namespace has a Deployment"}},
		{"serves", "w1", provisioner(2, every), Passed, []string{"w1: /opt/local-path-provisioner, on a disk with 18Gi"}},
		{"kept away", "w9", provisioner(2, every), Failed, []string{"w9: its ConfigMap has no path"}},
		{"not listed", "w1", provisioner(2, `{"nodePathMap":[{"node":"w9","paths":["/a"]}]}`), Failed, []string{"w1: its ConfigMap has no path"}},
		{"shared", "w1", provisioner(2, `{"nodePathMap":[],"sharedFileSystemPath":"/shared"}`), Passed, []string{"/shared"}},
		{"no disk", "w2", provisioner(2, every), Failed, []string{"w2: the kubelet reports no ephemeral-storage"}},
		{"not ready", "w1", provisioner(0, every), Failed, []string{"local-path-storage/local-path-provisioner: 0 of 2"}},
		{"unreadable", "w1", provisioner(2, "{"), Failed, []string{"read config.json of configmap local-path-storage/paths"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, c := newWorld(t, append(tt.objects, node("w1", disk), node("w2"), node("w9", disk))...)
			wantFinding(t, c.StorageChecks(tt.node), localPath, tt.status, tt.words...)
		})
	}
}

// fails has a test pod of the verb fail with these last words.
func fails(verb, words string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		bornReady(p)
		if p.Spec.Containers[0].Args[0] == verb {
			p.Status = corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{
				{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: words + "\n"}}}}}
		}
	}
}

func pending(p *corev1.Pod) { p.Status = corev1.PodStatus{Phase: corev1.PodPending} }

func TestClaim(t *testing.T) {
	class := storageClass("local-path", "rancher.io/local-path", true)
	nodes := func(n ...*corev1.Node) (objects []runtime.Object) {
		for _, one := range n {
			objects = append(objects, one)
		}
		return append(objects, class)
	}
	tests := []struct {
		name    string
		node    string
		objects []runtime.Object
		change  func(*world, *Cluster)
		status  Status
		words   []string
	}{
		{"works", "w1", nodes(node("w1")), nil, Passed, []string{"class local-path", "on w1"}},
		{"works on all that take pods", "", nodes(node("cp1"), node("w1"), node("w2"), node("w3", unready)), nil, Passed, []string{"on w1, w2"}},
		{"works on a control plane", "cp1", nodes(node("cp1")), nil, Passed, []string{"on cp1"}},
		{"no driver on a control plane", "cp1", []runtime.Object{node("cp1"), csiNode("w1", driver), storageClass("disk", driver, true)}, nil, NotApplicable, []string{"disk.example is not installed there"}},
		{"no default class", "", []runtime.Object{node("w1"), storageClass("disk", driver, false)}, nil, NotApplicable, []string{"there is no default StorageClass"}},
		{"no image", "", nodes(node("w1")), func(_ *world, c *Cluster) { c.Image = "" }, Warned, []string{"not tried"}},
		{"a class that keeps volumes", "w1", nodes(node("w1")), func(w *world, _ *Cluster) { w.reclaim = corev1.PersistentVolumeReclaimRetain }, Passed, nil},
		{"not written", "w1", nodes(node("w1")), func(w *world, _ *Cluster) {
			w.birth = fails("write", "labnode: open /volume/k8slab: read-only file system")
		}, Failed,
			[]string{"w1: write: labnode: open /volume/k8slab: read-only file system"}},
		{"not read", "w1", nodes(node("w1")), func(w *world, _ *Cluster) {
			w.birth = fails("read", "labnode: /volume/k8slab has 0 bytes that are not the 26 that were written")
		}, Failed,
			[]string{"w1: read: ", "has 0 bytes"}},
		{"not bound", "w1", nodes(node("w1")), func(w *world, _ *Cluster) { w.birth = pending }, Failed, []string{"w1: write: after 1m30s"}},
		{"not Ready", "w1", nodes(node("w1", unready)), nil, Failed, []string{"w1 is not Ready"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, c := newWorld(t, tt.objects...)
				if tt.change != nil {
					tt.change(w, c)
				}
				wantFinding(t, c.StorageChecks(tt.node), "a claim", tt.status, tt.words...)
				w.clean(t)
			})
		})
	}
}

func TestVolumeThatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := newWorld(t, node("w1"), storageClass("local-path", "rancher.io/local-path", true))
		w.kept = true
		wantFinding(t, c.StorageChecks("w1"), "a claim", Failed, "wait until volume pv-w1 is deleted, which its provisioner does: the 1m0s budget ran out")
	})
}

// A volume that waits for its first user is made where the scheduler places that, so the pod must pass the scheduler.
func TestClaimPodIsScheduled(t *testing.T) {
	p := (&Cluster{}).claimPod("write-0", "w1", "write", "text")
	field := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0]
	if p.Spec.NodeName != "" || field.Key != "metadata.name" || field.Values[0] != "w1" || p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName != "w1" {
		t.Errorf("%+v", p.Spec)
	}
	if command := strings.Join(append(p.Spec.Containers[0].Command, p.Spec.Containers[0].Args...), " "); command != "/labnode probe write /volume/k8slab" {
		t.Error(command)
	}
}

func TestDefaultClassIsTheNewest(t *testing.T) {
	older, newer := storageClass("a-older", driver, true), storageClass("newer", driver, true)
	newer.CreationTimestamp = metav1.Unix(100, 0)
	older.CreationTimestamp = metav1.Unix(50, 0)
	_, c := newWorld(t, older, newer, storageClass("z", driver, false))
	if class, err := c.defaultClass(t.Context()); err != nil || class.Name != "newer" {
		t.Error(class, err)
	}
}
