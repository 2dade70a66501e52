package validate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8slab/lab/kube"
)

const (
	defaultClassAnnotation = "storageclass.kubernetes.io/is-default-class"
	claimSize              = "64Mi"
	claimFile              = "/volume/k8slab"
	// textVariable has the text that labnode probe writes and reads.
	textVariable = "K8SLAB_TEXT"
	// claimBudget bounds one of the two pods, with the making and attaching of its volume.
	claimBudget = 90 * time.Second
	claimNext   = "look at the provisioner's log, and at the claim with: kubectl describe pvc, of a claim of your own of this class"
)

// defaultClass is the class of claims that name none, nil when there is none. Of several the newest counts, as for the API server.
func (c *Cluster) defaultClass(ctx context.Context) (*storagev1.StorageClass, error) {
	list, err := c.Kube.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list storageclasses: %w", err)
	}
	var newest *storagev1.StorageClass
	for i, class := range list.Items {
		if class.Annotations[defaultClassAnnotation] == "true" && (newest == nil || newest.CreationTimestamp.Before(&class.CreationTimestamp)) {
			newest = &list.Items[i]
		}
	}
	return newest, nil
}

// claimWorks has a pod on each Node write to a new volume, and another pod read it.
func (c *Cluster) claimWorks(ctx context.Context, node string) (Finding, error) {
	class, err := c.defaultClass(ctx)
	if err != nil {
		return Finding{}, err
	}
	if class == nil {
		return absent("there is no default StorageClass, so a claim without one stays Pending"), nil
	}
	if c.Image == "" {
		return warn(imageNext, "not tried: no image of labnode for test pods is known"), nil
	}
	nodes, err := c.claimNodes(ctx, node, class)
	if err != nil {
		return Finding{}, err
	}
	if len(nodes) == 0 {
		return absent("%s takes no ordinary pods, and %s is not installed there", where(node), class.Provisioner), nil
	}
	bad := map[string]string{}
	err, removed := c.inNamespace(ctx, func(namespace string) error {
		text := rand.Text()
		for _, verb := range []string{"write", "read"} {
			failed, err := c.useClaims(ctx, namespace, verb, text, slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return bad[n] != "" }))
			if err != nil {
				return err
			}
			maps.Copy(bad, failed)
		}
		return nil
	})
	if err != nil {
		return Finding{}, errors.Join(err, removed)
	}
	var t tally
	for _, n := range slices.Sorted(maps.Keys(bad)) {
		t.faults = append(t.faults, n+": "+bad[n])
	}
	if removed != nil {
		t.faults = append(t.faults, removed.Error())
	}
	t.good = []string{fmt.Sprintf("class %s: bound, written, read back and deleted on %s", class.Name, strings.Join(nodes, ", "))}
	return t.finding(claimNext), nil
}

// claimNodes are the Nodes on which volumes of the class must work: the named one, or those that accept ordinary pods. If the named Node
// does not accept them, a provisioner may not need to run there, but a CSI driver must.
func (c *Cluster) claimNodes(ctx context.Context, node string, class *storagev1.StorageClass) (names []string, err error) {
	tested, err := c.tested(ctx, node)
	if err != nil {
		return nil, err
	}
	s, err := c.csi(ctx)
	if err != nil {
		return nil, err
	}
	on := s.on[class.Provisioner]
	for _, n := range tested {
		elsewhere := len(on) > 0 && !slices.Contains(on, n.Name)
		switch {
		case kube.NodeReady(&n) != nil && node != "":
			return nil, kube.NodeReady(&n)
		case kube.NodeReady(&n) == nil && (takesPods(&n) || node != "" && !elsewhere):
			names = append(names, n.Name)
		}
	}
	return names, nil
}

// useClaims has a pod on each Node use the Node's claim, which it makes if there is none. It returns the reason for each Node that failed.
func (c *Cluster) useClaims(ctx context.Context, namespace, verb, text string, nodes []string) (bad map[string]string, err error) {
	var pods []*corev1.Pod
	for i, n := range nodes {
		if err := c.makeClaim(ctx, namespace, n); err != nil {
			return nil, err
		}
		pods = append(pods, c.claimPod(fmt.Sprintf("%s-%d", verb, i), n, verb, text))
	}
	_, failed, err := c.startPods(ctx, namespace, c.patient(claimBudget), pods, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	bad = map[string]string{}
	for i, n := range nodes {
		if why := failed[pods[i].Name]; why != "" {
			bad[n] = fmt.Sprintf("%s: %s%s", verb, why, c.lastWarning(ctx, namespace, n))
		}
	}
	return bad, err
}

// makeClaim makes the claim that is named after the Node.
func (c *Cluster) makeClaim(ctx context.Context, namespace, node string) error {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(claimSize)}},
	}}
	_, err := c.Kube.CoreV1().PersistentVolumeClaims(namespace).Create(ctx, claim, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create test claim %s: %w", node, err)
	}
	return nil
}

// claimPod has no fixed Node: a volume that waits for its first consumer is made where the scheduler places that.
func (c *Cluster) claimPod(name, node, verb, text string) *corev1.Pod {
	p := c.testPod(name, "", verb, claimFile)
	p.Spec.Affinity = onlyOn(node)
	container := &p.Spec.Containers[0]
	container.Env = []corev1.EnvVar{{Name: textVariable, Value: text}}
	container.VolumeMounts = []corev1.VolumeMount{{Name: "volume", MountPath: "/volume"}}
	p.Spec.Volumes = []corev1.Volume{{Name: "volume", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: node},
	}}}
	return p
}
