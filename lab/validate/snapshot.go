package validate

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"k8slab/lab/kube"
)

const (
	// reads is how many requests the API's latency is measured with.
	reads = 20
	// podStartBudget bounds the start of the test pod, with a pull of its image.
	podStartBudget = time.Minute
	startedPod     = "start" // the test pod's name
)

// longhornVolumes is where Longhorn keeps what it knows of its volumes' replicas.
var longhornVolumes = schema.GroupVersionResource{Group: "longhorn.io", Version: "v1beta2", Resource: "volumes"}

// Snapshot is what is compared of a cluster before and after an onboarding. It is stored as JSON.
type Snapshot struct {
	Time  time.Time       `json:"time"`
	Nodes map[string]bool `json:"nodes"` // name → it is Ready
	Pods  map[string]int  `json:"pods"`  // number by phase
	API   Latency         `json:"api"`
	// PodStartMS is the time from the request for a test pod until it was Ready, 0 where none was tried.
	PodStartMS    float64 `json:"pod_start_ms,omitempty"`
	PodStartError string  `json:"pod_start_error,omitempty"` // why it did not become Ready
	Flux          *Share  `json:"flux,omitempty"`            // reconciled GitRepositories and Kustomizations; nil without Flux
	// PersistentVolumes has their number by phase.
	PersistentVolumes map[string]int `json:"persistent_volumes,omitempty"`
	// Longhorn has the number of attached volumes by robustness (healthy, degraded, faulted, unknown); nil without Longhorn.
	Longhorn map[string]int `json:"longhorn,omitempty"`
	// Workload has the number of ready pods of Deployments and DaemonSets by node.
	Workload map[string]int `json:"workload"`
}

// Latency is how long small reads took, one after another.
type Latency struct {
	MedianMS float64 `json:"median_ms"`
	P95MS    float64 `json:"p95_ms"` // the 95th percentile
	Reads    int     `json:"reads"`
}

// Share is a part of a whole.
type Share struct {
	Ready int `json:"ready"`
	Total int `json:"total"`
}

// TakeSnapshot measures the whole cluster. If there is an image, it also starts a test pod. The client should have no rate limit, which
// would count as the API's latency.
func (c *Cluster) TakeSnapshot(ctx context.Context) (s Snapshot, err error) {
	s.Time = time.Now().UTC().Truncate(time.Second)
	// First, while nothing else is asked.
	if s.API, err = c.latency(ctx); err != nil {
		return s, err
	}
	nodes, err := c.nodes(ctx)
	if err != nil {
		return s, err
	}
	s.Nodes = map[string]bool{}
	for _, n := range nodes {
		s.Nodes[n.Name] = kube.NodeReady(&n) == nil
	}
	if s.Pods, s.Workload, err = c.countPods(ctx); err != nil {
		return s, err
	}
	if s.Flux, err = c.countFlux(ctx); err != nil {
		return s, err
	}
	if s.PersistentVolumes, err = c.countVolumes(ctx); err != nil {
		return s, err
	}
	if s.Longhorn, err = c.robustness(ctx); err != nil || c.Image == "" {
		return s, err
	}
	if !slices.ContainsFunc(nodes, func(n corev1.Node) bool { return kube.NodeReady(&n) == nil && takesPods(&n) }) {
		s.PodStartError = "no Node that is Ready takes ordinary pods"
		return s, nil
	}
	took, problem, err := c.startPod(ctx, "")
	s.PodStartMS, s.PodStartError = milliseconds(took), problem
	return s, err
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Round(10*time.Microsecond)) / float64(time.Millisecond)
}

// latency reads one small object again and again. The first read, which may have to connect, is not counted.
func (c *Cluster) latency(ctx context.Context) (Latency, error) {
	var took []time.Duration
	for range reads + 1 {
		begun := time.Now()
		if _, err := c.Kube.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{}); err != nil {
			return Latency{}, fmt.Errorf("measure the API's latency: %w", err)
		}
		took = append(took, time.Since(begun))
	}
	return percentiles(took[1:]), nil
}

func percentiles(took []time.Duration) Latency {
	slices.Sort(took)
	n := len(took)
	return Latency{MedianMS: milliseconds(took[n/2]), P95MS: milliseconds(took[(n*95+99)/100-1]), Reads: n}
}

// countPods counts all pods by phase, and the ready ones of Deployments and DaemonSets by node.
func (c *Cluster) countPods(ctx context.Context) (phases, workload map[string]int, err error) {
	list, err := c.Kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("list pods: %w", err)
	}
	phases, workload = map[string]int{}, map[string]int{}
	for _, p := range list.Items {
		phases[string(p.Status.Phase)]++
		if owner := ownerKind(&p); kube.PodReady(&p) && (owner == "ReplicaSet" || owner == "DaemonSet") {
			workload[p.Spec.NodeName]++
		}
	}
	return phases, workload, nil
}

// ownerKind is the kind of what made the pod, "ReplicaSet" for a Deployment's.
func ownerKind(p *corev1.Pod) string {
	if owner := metav1.GetControllerOf(p); owner != nil {
		return owner.Kind
	}
	return ""
}

func (c *Cluster) countFlux(ctx context.Context) (*Share, error) {
	sources, hasSources, err := c.listFlux(ctx, gitRepositories)
	if err != nil {
		return nil, err
	}
	applied, hasApplied, err := c.listFlux(ctx, kustomizations)
	if err != nil || !hasSources && !hasApplied {
		return nil, err
	}
	share := &Share{Total: len(sources) + len(applied)}
	for _, o := range slices.Concat(sources, applied) {
		if !o.Spec.Suspend && o.unready() == nil {
			share.Ready++
		}
	}
	return share, nil
}

func (c *Cluster) countVolumes(ctx context.Context) (map[string]int, error) {
	list, err := c.Kube.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list persistentvolumes: %w", err)
	}
	phases := map[string]int{}
	for _, v := range list.Items {
		phases[string(v.Status.Phase)]++
	}
	return phases, nil
}

// robustness counts Longhorn's volumes, nil without Longhorn. A detached volume has no robustness to tell.
func (c *Cluster) robustness(ctx context.Context) (map[string]int, error) {
	list, err := c.Dynamic.Resource(longhornVolumes).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list Longhorn's volumes: %w", err)
	}
	counts := map[string]int{}
	for _, v := range list.Items {
		if state, _, _ := unstructured.NestedString(v.Object, "status", "state"); state == "detached" {
			continue
		}
		robustness, _, _ := unstructured.NestedString(v.Object, "status", "robustness")
		counts[robustness]++
	}
	return counts, nil
}

// startPod measures how long a new pod takes until it is Ready, on the node, or wherever it is placed with "". The scheduler places it, as
// it does a Deployment's. problem says why it did not become Ready.
func (c *Cluster) startPod(ctx context.Context, node string) (took time.Duration, problem string, err error) {
	pod := c.testPod(startedPod, "")
	pod.Spec.Tolerations = nil // those of a Deployment, which has none
	if node != "" {
		placeOn(pod, node)
	}
	err, removed := c.inNamespace(ctx, func(namespace string) error {
		begun := time.Now()
		_, bad, err := c.startPods(ctx, namespace, c.patient(podStartBudget), []*corev1.Pod{pod}, kube.PodReady)
		took, problem = time.Since(begun), bad[startedPod]
		return err
	})
	if err == nil && removed != nil {
		err = removed
	}
	return took, problem, err
}

// placeOn has the scheduler place a pod on the node, even if that is a control plane that does not accept ordinary pods.
func placeOn(pod *corev1.Pod, node string) {
	pod.Spec.Tolerations = []corev1.Toleration{{Key: controlPlaneLabel, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	pod.Spec.Affinity = onlyOn(node)
}
