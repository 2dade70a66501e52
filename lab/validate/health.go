package validate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8slab/lab/kube"
)

// Limits above which a latency counts as worse than before. It must pass both, the factor and the difference: with few samples on a small
// cluster, a doubled millisecond is noise. For the same reason only medians are compared, and worse is only a warning.
const (
	worseFactor  = 2
	latencySlack = 20 * time.Millisecond
	startSlack   = 5 * time.Second
)

// noBefore is the detail of a comparison without a snapshot from before.
const noBefore = "there is no snapshot from before to compare with"

// HealthChecks are the checks of the whole cluster with a Node that has joined, or with none in particular (""). They compare it with the
// snapshot from before, if there is one.
func (c *Cluster) HealthChecks(node string, before *Snapshot) []Check {
	h := &health{c, node, before}
	return []Check{
		check(AreaCluster, verdict, c.healthy),
		check(AreaCluster, "no Node has gone", h.members),
		check(AreaCluster, "the workload has reached "+where(node), c.onNodes(node, c.spread)),
		try(AreaCluster, "a new pod starts on "+whereStarts(node), h.starts),
		check(AreaCluster, "no more pods fail or wait than before", h.pods),
		check(AreaCluster, "the API answers as fast as before", h.latency),
		check(AreaStorage, "volumes are redundant", h.redundant),
		check(AreaGitOps, "every GitRepository is fetched", c.fluxSources),
		check(AreaGitOps, "every Kustomization is applied", c.fluxApplied),
	}
}

func whereStarts(node string) string {
	if node == "" {
		return "a Node"
	}
	return node
}

// health is a cluster that is compared with what it was.
type health struct {
	*Cluster
	node   string
	before *Snapshot
}

func (h *health) members(ctx context.Context) (Finding, error) {
	nodes, err := h.nodes(ctx)
	if err != nil {
		return Finding{}, err
	}
	if h.before == nil {
		return absent(noBefore), nil
	}
	there := map[string]bool{}
	for _, n := range nodes {
		there[n.Name] = true
	}
	t := tally{good: []string{fmt.Sprintf("there are %d Nodes, %d were there before", len(nodes), len(h.before.Nodes))}}
	for _, name := range slices.Sorted(maps.Keys(h.before.Nodes)) {
		if !there[name] {
			t.faults = append(t.faults, name+" was a Node before and is not one now")
		}
	}
	return t.finding("see whether somebody deleted it: `kubectl get events -A`; in the lab `labctl diagnose`"), nil
}

// spread requires a ready pod of a DaemonSet on each node.
func (c *Cluster) spread(ctx context.Context, nodes []corev1.Node) (Finding, error) {
	list, err := c.Kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return Finding{}, fmt.Errorf("list pods: %w", err)
	}
	var t tally
	for _, n := range nodes {
		daemons, others := 0, 0
		for _, p := range list.Items {
			if p.Spec.NodeName != n.Name || p.DeletionTimestamp != nil {
				continue
			}
			switch owner := ownerKind(&p); {
			case owner == "DaemonSet" && kube.PodReady(&p):
				daemons++
			case owner == "DaemonSet":
				t.faults = append(t.faults, fmt.Sprintf("%s: pod %s/%s is not ready: %s", n.Name, p.Namespace, p.Name, c.why(ctx, &p)))
			case owner == "ReplicaSet" && kube.PodReady(&p):
				others++
			}
		}
		if daemons == 0 {
			t.faults = append(t.faults, n.Name+": no pod of a DaemonSet is ready there")
		}
		t.good = append(t.good, fmt.Sprintf("%s: %d pods of DaemonSets and %d of Deployments are ready", n.Name, daemons, others))
	}
	return t.finding("see `kubectl get pods -A --field-selector spec.nodeName=NAME`"), nil
}

func (h *health) starts(ctx context.Context) (Finding, error) {
	if h.Image == "" {
		return warn(imageNext, "not tried: no image of labnode for test pods is known"), nil
	}
	took, problem, err := h.startPod(ctx, h.node)
	switch {
	case problem != "":
		return fail("see `kubectl describe node NAME`: its taints, its room, whether it can get the image "+h.Image,
			"a test pod on %s is not Ready: %s", whereStarts(h.node), problem), nil
	case err != nil:
		return Finding{}, err
	case h.before == nil || h.before.PodStartMS == 0 || h.before.PodStartError != "":
		return pass("Ready after %s", seconds(took)), nil
	}
	then := duration(h.before.PodStartMS)
	if worse(took, then, startSlack) {
		return warn("a first start may have pulled the image: start a second pod and compare",
			"Ready after %s, before after %s", seconds(took), seconds(then)), nil
	}
	return pass("Ready after %s, before after %s", seconds(took), seconds(then)), nil
}

// pods compares the pods that wait or have failed. A Job keeps its failed pods on purpose, so they are a warning.
func (h *health) pods(ctx context.Context) (Finding, error) {
	phases, _, err := h.countPods(ctx)
	if err != nil {
		return Finding{}, err
	}
	if h.before == nil {
		return absent(noBefore), nil
	}
	detail := fmt.Sprintf("pods now: %s; before: %s", counted(phases), counted(h.before.Pods))
	for _, phase := range []corev1.PodPhase{corev1.PodPending, corev1.PodFailed, corev1.PodUnknown} {
		if phases[string(phase)] > h.before.Pods[string(phase)] {
			return warn("see `kubectl get pods -A --field-selector status.phase="+string(phase)+"`", "%s", detail), nil
		}
	}
	return pass("%s", detail), nil
}

func (h *health) latency(ctx context.Context) (Finding, error) {
	now, err := h.Cluster.latency(ctx)
	if err != nil {
		return Finding{}, err
	}
	detail := fmt.Sprintf("median %.1f ms, 95th percentile %.1f ms of %d reads", now.MedianMS, now.P95MS, now.Reads)
	if h.before == nil {
		return absent("%s; %s", noBefore, detail), nil
	}
	then := h.before.API
	detail += fmt.Sprintf("; before %.1f ms, %.1f ms", then.MedianMS, then.P95MS)
	if worse(duration(now.MedianMS), duration(then.MedianMS), latencySlack) {
		return warn("measure again when the cluster has settled; then look at the control planes' load and etcd's disks",
			"%s: the median is more than %d times and %s above", detail, worseFactor, latencySlack), nil
	}
	return pass("%s", detail), nil
}

func worse(now, before, slack time.Duration) bool {
	return now > worseFactor*before && now > before+slack
}

func duration(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// redundant requires every volume of Longhorn to have all its replicas. Volumes that were degraded before, such as those that want more
// replicas than there are nodes, are a warning.
func (h *health) redundant(ctx context.Context) (Finding, error) {
	volumes, err := h.robustness(ctx)
	if err != nil {
		return Finding{}, err
	}
	if volumes == nil {
		return h.unreplicated(ctx)
	}
	const next = "see `kubectl -n longhorn-system get volumes.longhorn.io` and the replicas of those that are not healthy"
	if volumes["faulted"] > 0 {
		return fail(next, "Longhorn's volumes: %s", counted(volumes)), nil
	}
	degraded := volumes["degraded"]
	switch {
	case degraded > 0 && h.before != nil && degraded <= h.before.Longhorn["degraded"]:
		return warn(next, "Longhorn's volumes: %s; before: %s", counted(volumes), counted(h.before.Longhorn)), nil
	case degraded > 0:
		return fail(next, "Longhorn's volumes: %s; replicas are missing", counted(volumes)), nil
	case len(volumes) == 0:
		return absent("Longhorn has no volume that is attached"), nil
	}
	return pass("Longhorn's volumes: %s", counted(volumes)), nil
}

// unreplicated says why redundancy cannot be checked.
func (h *health) unreplicated(ctx context.Context) (Finding, error) {
	classes, err := h.Kube.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return Finding{}, fmt.Errorf("list storageclasses: %w", err)
	}
	var provisioners []string
	for _, class := range classes.Items {
		if strings.HasSuffix(class.Provisioner, "local-path") {
			return absent("a volume of %s is a directory of one node: it has no replicas", class.Provisioner), nil
		}
		provisioners = append(provisioners, class.Provisioner)
	}
	if len(provisioners) == 0 {
		return absent("the cluster has no StorageClass"), nil
	}
	return absent("how %s keeps replicas is not known here", strings.Join(provisioners, ", ")), nil
}
