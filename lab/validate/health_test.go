package validate

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// startingCluster gives a new namespace its service account, and a new pod what its birth does.
func startingCluster(t *testing.T, birth func(*corev1.Pod), objects ...runtime.Object) (*Cluster, *fake.Clientset) {
	set := fake.NewClientset(append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}})...)
	set.PrependReactor("create", "namespaces", func(a clienttesting.Action) (bool, runtime.Object, error) {
		name := a.(clienttesting.CreateAction).GetObject().(*corev1.Namespace).Name
		return false, nil, set.Tracker().Add(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "default"}})
	})
	set.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		birth(a.(clienttesting.CreateAction).GetObject().(*corev1.Pod))
		return false, nil, nil
	})
	return &Cluster{Kube: set, Dynamic: dynamicWorld(t, nil), Image: "labnode"}, set
}

func startsReady(p *corev1.Pod) { p.Status = runningPod("", "", "", "").Status }

// nothingLeft wants every namespace that was made to be deleted.
func nothingLeft(t *testing.T, set *fake.Clientset) {
	t.Helper()
	list, err := set.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: ownerLabel})
	if err != nil || len(list.Items) > 0 {
		t.Errorf("left %v, %v", list.Items, err)
	}
}

func volume(name, state, robustness string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: fields{
		"apiVersion": "longhorn.io/v1beta2", "kind": "Volume", "metadata": fields{"namespace": "longhorn-system", "name": name},
		"status": fields{"state": state, "robustness": robustness},
	}}
}

func TestTakeSnapshot(t *testing.T) {
	down := member("w2", "192.0.2.2")
	down.Status.Conditions[0].Status = corev1.ConditionFalse
	waiting := runningPod("shop", "web-b", "", "ReplicaSet")
	waiting.Status = corev1.PodStatus{Phase: corev1.PodPending}
	bound := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}}
	c, set := startingCluster(t, startsReady, member("w1", "192.0.2.1"), down, bound, waiting,
		runningPod("shop", "web-a", "w1", "ReplicaSet"), runningPod("net", "agent-a", "w1", "DaemonSet"), runningPod("kube-system", "static", "w1", "Node"),
		notReadyPod(runningPod("net", "agent-b", "w2", "DaemonSet")))
	c.Dynamic = dynamicWorld(t, nil, fluxDocument("GitRepository", "fleet", at(newRevision)), fluxDocument("Kustomization", "nodes", at(newRevision), suspended),
		volume("a", "attached", "healthy"), volume("b", "attached", "degraded"), volume("c", "detached", "unknown"))
	s, err := c.TakeSnapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var again Snapshot
	if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again, s) {
		t.Errorf("%+v becomes %+v, %v", s, again, err)
	}
	for _, want := range []string{
		`"nodes":{"w1":true,"w2":false}`, `"pods":{"Pending":1,"Running":4}`, `"workload":{"w1":2}`, `"flux":{"ready":1,"total":2}`,
		`"longhorn":{"degraded":1,"healthy":1}`, `"persistent_volumes":{"Bound":1}`, `"reads":20`, `"pod_start_ms":`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
	nothingLeft(t, set)
}

func TestTakeSnapshotOfLittle(t *testing.T) {
	c, set := startingCluster(t, startsReady, member("w1", ""))
	c.Image = ""
	s, err := c.TakeSnapshot(t.Context())
	if err != nil || s.Flux != nil || s.Longhorn != nil || s.PodStartMS != 0 || s.PodStartError != "" {
		t.Errorf("%+v, %v", s, err)
	}
	for _, a := range set.Actions() {
		if a.GetVerb() == "create" {
			t.Errorf("made %v", a)
		}
	}
	set.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("connection lost")
	})
	_, err = c.TakeSnapshot(t.Context())
	checkText(t, err, "measure the API's latency: connection lost")
}

// Nobody waits for a pod that no Node takes.
func TestTakeSnapshotOfControlPlanes(t *testing.T) {
	cp := member("cp1", "")
	cp.Spec.Taints = []corev1.Taint{{Key: controlPlaneLabel, Effect: corev1.TaintEffectNoSchedule}}
	c, set := startingCluster(t, startsReady, cp)
	s, err := c.TakeSnapshot(t.Context())
	if err != nil || !strings.Contains(s.PodStartError, "no Node") {
		t.Errorf("%+v, %v", s, err)
	}
	nothingLeft(t, set)
}

func TestPercentiles(t *testing.T) {
	var took []time.Duration
	for i := range 20 {
		took = append(took, time.Duration(20-i)*time.Millisecond)
	}
	if got := percentiles(took); got != (Latency{MedianMS: 11, P95MS: 19, Reads: 20}) {
		t.Errorf("%+v", got)
	}
	if got := percentiles([]time.Duration{1234567 * time.Nanosecond}); got != (Latency{MedianMS: 1.23, P95MS: 1.23, Reads: 1}) {
		t.Errorf("%+v", got)
	}
}

func TestWorse(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		now, before time.Duration
		want        bool
	}{
		{3 * ms, 1 * ms, false},   // three times, and noise
		{21 * ms, 1 * ms, false},  // no more than the slack
		{22 * ms, 1 * ms, true},   //
		{90 * ms, 50 * ms, false}, // less than doubled
		{101 * ms, 50 * ms, true},
		{1 * ms, 50 * ms, false},
	}
	for _, tt := range tests {
		if worse(tt.now, tt.before, latencySlack) != tt.want {
			t.Errorf("%s after %s: %v", tt.now, tt.before, !tt.want)
		}
	}
}

func TestMembersAndWorkload(t *testing.T) {
	agent := runningPod("net", "agent-a", "w1", "DaemonSet")
	before := &Snapshot{Nodes: map[string]bool{"w1": true, "w2": true}}
	tests := []struct {
		name    string
		check   string
		before  *Snapshot
		objects []runtime.Object
		status  Status
		words   string
	}{
		{"more", "no Node has gone", before, []runtime.Object{member("w1", ""), member("w2", ""), member("w3", "")}, Passed, "there are 3 Nodes, 2 were there before"},
		{"no before", "no Node has gone", nil, []runtime.Object{member("w1", "")}, NotApplicable, noBefore},
		{"gone", "no Node has gone", before, []runtime.Object{member("w1", "")}, Failed, "w2 was a Node before"},
		{"reached", "the workload", nil, []runtime.Object{member("w1", ""), agent, runningPod("shop", "web-a", "w1", "ReplicaSet")}, Passed,
			"w1: 1 pods of DaemonSets and 1 of Deployments"},
		{"one crashes", "the workload", nil, []runtime.Object{member("w1", ""), agent, notReadyPod(runningPod("net", "log-a", "w1", "DaemonSet"))}, Failed,
			"w1: pod net/log-a is not ready: container c: CrashLoopBackOff"},
		{"elsewhere", "the workload", nil, []runtime.Object{member("w1", ""), runningPod("net", "agent-a", "w2", "DaemonSet")}, Failed, "no pod of a DaemonSet"},
		{"no before", "no more pods", nil, nil, NotApplicable, noBefore},
		{"no more wait", "no more pods", &Snapshot{Pods: map[string]int{"Running": 1}}, []runtime.Object{agent}, Passed, "pods now: 1 Running; before: 1 Running"},
		{"one more waits", "no more pods", &Snapshot{}, []runtime.Object{&corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}}, Warned, "pods now: 1 Pending"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &Cluster{Kube: fake.NewClientset(tt.objects...), Dynamic: dynamicWorld(t, nil)}
			checkFinding(t, look(t, c.HealthChecks("w1", tt.before), tt.check), tt.status, tt.words)
		})
	}
}

func TestNewPodStarts(t *testing.T) {
	refuses := func(p *corev1.Pod) {
		p.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "probe", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}},
		}}}
	}
	tests := []struct {
		name   string
		birth  func(*corev1.Pod)
		before *Snapshot
		image  string
		status Status
		words  string
	}{
		{"starts", startsReady, nil, "labnode", Passed, "Ready after 0."},
		{"as before", startsReady, &Snapshot{PodStartMS: 1500}, "labnode", Passed, "before after 1.5 s"},
		{"failed before", startsReady, &Snapshot{PodStartMS: 60000, PodStartError: "no image"}, "labnode", Passed, "Ready after 0."},
		{"does not start", refuses, nil, "labnode", Failed, "a test pod on w1 is not Ready: container probe: ImagePullBackOff: not found"},
		{"no image", startsReady, nil, "", Warned, "not tried"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var made []*corev1.Pod
			c, set := startingCluster(t, func(p *corev1.Pod) { tt.birth(p); made = append(made, p) }, member("w1", ""))
			c.Image = tt.image
			checkFinding(t, look(t, c.HealthChecks("w1", tt.before), "a new pod"), tt.status, tt.words)
			nothingLeft(t, set)
			for _, p := range made {
				on := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0]
				if p.Spec.NodeName != "" || on.Key != "metadata.name" || on.Values[0] != "w1" || len(p.Spec.Tolerations) != 1 {
					t.Errorf("placed by %+v, %+v", p.Spec.Affinity, p.Spec.Tolerations)
				}
			}
		})
	}
}

// TestSlower runs on a clock of its own: every read of the API takes 50 ms, the start of a pod 10 s.
func TestSlower(t *testing.T) {
	tests := []struct {
		name   string
		check  string
		before *Snapshot
		status Status
		words  string
	}{
		{"no before", "as fast", nil, NotApplicable, "median 50.0 ms, 95th percentile 50.0 ms of 20 reads"},
		{"as before", "as fast", &Snapshot{API: Latency{MedianMS: 40, P95MS: 45, Reads: 20}}, Passed, "before 40.0 ms, 45.0 ms"},
		{"slower", "as fast", &Snapshot{API: Latency{MedianMS: 10, P95MS: 45, Reads: 20}}, Warned, "the median is more than 2 times and 20ms above"},
		{"a pod as before", "a new pod", &Snapshot{PodStartMS: 8000}, Passed, "Ready after 10.0 s, before after 8.0 s"},
		{"a slower pod", "a new pod", &Snapshot{PodStartMS: 2000}, Warned, "Ready after 10.0 s, before after 2.0 s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := func(p *corev1.Pod) { time.Sleep(10 * time.Second); startsReady(p) }
				c, set := startingCluster(t, slow, member("w1", ""))
				set.PrependReactor("get", "namespaces", func(a clienttesting.Action) (bool, runtime.Object, error) {
					if a.(clienttesting.GetAction).GetName() == metav1.NamespaceSystem {
						time.Sleep(50 * time.Millisecond)
					}
					return false, nil, nil
				})
				checkFinding(t, look(t, c.HealthChecks("w1", tt.before), tt.check), tt.status, tt.words)
			})
		})
	}
}

func TestRedundant(t *testing.T) {
	class := func(provisioner string) runtime.Object {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: provisioner}, Provisioner: provisioner}
	}
	healthy, degraded := volume("a", "attached", "healthy"), volume("b", "attached", "degraded")
	was := &Snapshot{Longhorn: map[string]int{"degraded": 1}}
	tests := []struct {
		name    string
		before  *Snapshot
		volumes []*unstructured.Unstructured
		class   runtime.Object
		status  Status
		words   string
	}{
		{"healthy", nil, []*unstructured.Unstructured{healthy}, class("driver.longhorn.io"), Passed, "1 healthy"},
		{"a replica is missing", nil, []*unstructured.Unstructured{healthy, degraded}, class("driver.longhorn.io"), Failed, "1 degraded, 1 healthy"},
		{"as before", was, []*unstructured.Unstructured{healthy, degraded}, class("driver.longhorn.io"), Warned, "before: 1 degraded"},
		{"more than before", was, []*unstructured.Unstructured{degraded, volume("c", "attached", "degraded")}, class("driver.longhorn.io"), Failed, "2 degraded"},
		{"faulted", was, []*unstructured.Unstructured{volume("a", "attached", "faulted")}, class("driver.longhorn.io"), Failed, "1 faulted"},
		{"all detached", nil, []*unstructured.Unstructured{volume("a", "detached", "unknown")}, class("driver.longhorn.io"), NotApplicable, "no volume that is attached"},
		{"local-path", nil, nil, class("rancher.io/local-path"), NotApplicable, "a directory of one node"},
		{"another", nil, nil, class("ebs.csi.aws.com"), NotApplicable, "how ebs.csi.aws.com keeps replicas is not known"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &Cluster{Kube: fake.NewClientset(tt.class), Dynamic: dynamicWorld(t, []schema.GroupVersionResource{}, tt.volumes...)}
			checkFinding(t, look(t, c.HealthChecks("w1", tt.before), "redundant"), tt.status, tt.words)
		})
	}
}
