package validate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	discoveryfake "k8s.io/client-go/discovery/fake"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	restfake "k8s.io/client-go/rest/fake"
	clienttesting "k8s.io/client-go/testing"
)

// world is a cluster whose controllers and kubelets are a few reactors: a new namespace has its service account, a new pod is born as birth
// makes it, a claim has a volume, and what is in a deleted namespace goes with it.
type world struct {
	*fake.Clientset
	ready map[string]string // answers of the API server's /readyz; a path that is not in it is ok

	mu      sync.Mutex
	birth   func(*corev1.Pod)
	reclaim corev1.PersistentVolumeReclaimPolicy
	kept    bool                             // volumes stay though their claims are gone
	reach   func(from, target string) string // what a pod says that it saw, "" when it reached the target
	proxy   func(pod string) (string, error) // instead of reach
	counts  map[string]int                   // asked targets
}

func newWorld(t *testing.T, objects ...runtime.Object) (*world, *Cluster) {
	t.Helper()
	w := &world{
		Clientset: fake.NewClientset(objects...), ready: map[string]string{}, birth: bornReady, reclaim: corev1.PersistentVolumeReclaimDelete,
		reach: func(string, string) string { return "" }, counts: map[string]int{},
	}
	serverVersion(w, "v1.36.3")
	w.PrependReactor("create", "namespaces", w.addAccount)
	w.PrependReactor("create", "pods", w.addPod)
	w.PrependReactor("create", "services", addAddresses)
	w.PrependReactor("create", "persistentvolumeclaims", w.addVolume)
	w.PrependReactor("delete", "namespaces", w.empty)
	w.AddProxyReactor("pods", w.answer)
	kinds := map[schema.GroupVersionResource]string{longhornNodes: "NodeList"}
	return w, &Cluster{Kube: w, Dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds), Image: "labnode"}
}

// Discovery and CoreV1 have a REST client, which the fake's own have not.
func (w *world) Discovery() discovery.DiscoveryInterfaces {
	return restDiscovery{w.Clientset.Discovery(), w.rest()}
}

func (w *world) CoreV1() corev1client.CoreV1Interface {
	return restCore{w.Clientset.CoreV1(), w.rest()}
}

func (w *world) rest() rest.Interface {
	client := restfake.CreateHTTPClient(func(r *http.Request) (*http.Response, error) {
		status, body := http.StatusOK, "ok"
		if said := w.ready[r.URL.Path]; said != "" {
			status, body = http.StatusInternalServerError, said
		}
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
	})
	return &restfake.RESTClient{Client: client, GroupVersion: corev1.SchemeGroupVersion, NegotiatedSerializer: scheme.Codecs.WithoutConversion()}
}

type restDiscovery struct {
	discovery.DiscoveryInterfaces
	rest rest.Interface
}

func (d restDiscovery) RESTClient() rest.Interface { return d.rest }

type restCore struct {
	corev1client.CoreV1Interface
	rest rest.Interface
}

func (c restCore) RESTClient() rest.Interface { return c.rest }

func (w *world) addAccount(a clienttesting.Action) (bool, runtime.Object, error) {
	name := a.(clienttesting.CreateAction).GetObject().(*corev1.Namespace).Name
	return false, nil, w.Tracker().Add(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "default"}})
}

func (w *world) addPod(a clienttesting.Action) (bool, runtime.Object, error) {
	p := a.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
	p.Namespace = a.GetNamespace()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.birth(p)
	return false, nil, nil
}

// bornReady has a pod run, or have run when it is one that ends.
func bornReady(p *corev1.Pod) {
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.244.0." + strings.TrimLeft(p.Spec.NodeName, "cwp"), Conditions: readyIf(true)}
	if p.Spec.NodeName == "" {
		p.Status = corev1.PodStatus{Phase: corev1.PodSucceeded}
	}
}

func readyIf(ready bool) []corev1.PodCondition {
	status := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[ready]
	return []corev1.PodCondition{{Type: corev1.PodReady, Status: status, Reason: "ContainersNotReady", Message: "it does not run"}}
}

func addAddresses(a clienttesting.Action) (bool, runtime.Object, error) {
	s := a.(clienttesting.CreateAction).GetObject().(*corev1.Service)
	s.Spec.ClusterIP, s.Spec.Ports[0].NodePort = "10.96.0.9", 30009
	return false, nil, nil
}

func (w *world) addVolume(a clienttesting.Action) (bool, runtime.Object, error) {
	claim := a.(clienttesting.CreateAction).GetObject().(*corev1.PersistentVolumeClaim)
	return false, nil, w.Tracker().Add(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + claim.Name}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeReclaimPolicy: w.reclaim, ClaimRef: &corev1.ObjectReference{Namespace: a.GetNamespace(), Name: claim.Name},
	}})
}

func (w *world) empty(a clienttesting.Action) (bool, runtime.Object, error) {
	namespace := a.(clienttesting.DeleteAction).GetName()
	pods, volumes := corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithResource("persistentvolumes")
	list, err := w.Tracker().List(pods, corev1.SchemeGroupVersion.WithKind("Pod"), namespace) // the client would wait for this reactor
	if err != nil {
		return true, nil, err
	}
	for _, p := range list.(*corev1.PodList).Items {
		_ = w.Tracker().Delete(pods, namespace, p.Name)
	}
	if list, err = w.Tracker().List(volumes, corev1.SchemeGroupVersion.WithKind("PersistentVolume"), ""); err != nil {
		return true, nil, err
	}
	for _, v := range list.(*corev1.PersistentVolumeList).Items {
		if !w.kept && v.Spec.ClaimRef.Namespace == namespace && v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
			_ = w.Tracker().Delete(volumes, "", v.Name)
		}
	}
	return false, nil, nil
}

// said is what a pod answers.
type said struct {
	body string
	err  error
}

func (s said) DoRaw(context.Context) ([]byte, error)         { return []byte(s.body), s.err }
func (s said) Stream(context.Context) (io.ReadCloser, error) { return nil, s.err }

func (w *world) answer(a clienttesting.Action) (bool, rest.ResponseWrapper, error) {
	ask := a.(clienttesting.ProxyGetAction)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.proxy != nil {
		body, err := w.proxy(ask.GetName())
		return true, said{body, err}, nil
	}
	pod, err := w.Tracker().Get(corev1.SchemeGroupVersion.WithResource("pods"), ask.GetNamespace(), ask.GetName())
	if err != nil {
		return true, nil, err
	}
	if env := pod.(*corev1.Pod).Spec.Containers[0].Env; len(env) != 1 || env[0].Value == "" || env[0].Value != ask.GetParams()["token"] {
		return true, said{"", fmt.Errorf("%s wants its token", ask.GetName())}, nil
	}
	target := ask.GetParams()["target"]
	w.counts[ask.GetName()+" "+target]++
	failures := []string{}
	if f := w.reach(ask.GetName(), target); f != "" {
		failures = append(failures, f)
	}
	body, err := json.Marshal(failures)
	return true, said{string(body), err}, nil
}

// clean fails the test if the checks have left anything.
func (w *world) clean(t *testing.T) {
	t.Helper()
	for _, a := range w.Actions() {
		if c, is := a.(clienttesting.CreateAction); is && a.GetNamespace() != "" && !strings.HasPrefix(a.GetNamespace(), namespacePrefix) {
			t.Errorf("made %v outside of its own namespace", c.GetObject())
		}
	}
	namespaces, err := w.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	volumes, err2 := w.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{})
	if err != nil || err2 != nil || len(namespaces.Items) > 0 || len(volumes.Items) > 0 {
		t.Errorf("left %v %v, %v %v", namespaces.Items, volumes.Items, err, err2)
	}
}

// wantFinding makes the check of that name.
func wantFinding(t *testing.T, checks []Check, name string, status Status, words ...string) {
	t.Helper()
	i := slices.IndexFunc(checks, func(c Check) bool { return strings.HasPrefix(c.Name, name) })
	if i < 0 {
		t.Fatalf("no check %q", name)
	}
	judgeFinding(t, Run(t.Context(), checks[i:i+1])[0], status, words...)
}

func judgeFinding(t *testing.T, f Finding, status Status, words ...string) {
	t.Helper()
	if f.Status != status {
		t.Errorf("%s: %s %q, want %s", f.Check, f.Status, f.Detail, status)
	}
	for _, word := range words {
		if !strings.Contains(f.Detail, word) {
			t.Errorf("%s: %q lacks %q", f.Check, f.Detail, word)
		}
	}
	if f.Detail == "" || (f.Status == Warned) && f.Next == "" {
		t.Errorf("%s says too little: %+v", f.Check, f)
	}
}

// node is a healthy one. cp… are control planes.
func node(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelOSStable: "linux", corev1.LabelHostname: name}}}
	n.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse},
	}
	n.Status.NodeInfo.KubeletVersion = "v1.36.3"
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2." + strings.TrimLeft(name, "cwp")}}
	if strings.HasPrefix(name, "cp") {
		n.Labels[controlPlaneLabel] = ""
		n.Spec.Taints = []corev1.Taint{{Key: controlPlaneLabel, Effect: corev1.TaintEffectNoSchedule}}
	}
	for _, f := range change {
		f(n)
	}
	return n
}

func unready(n *corev1.Node) {
	n.Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", Message: "cni plugin not initialized"}
}

// podOn is a pod that is ready, or not.
func podOn(namespace, name, node string, labels map[string]string, ready bool) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}, Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: readyIf(ready)},
	}
}

func warningOf(namespace, name, reason, message string) *corev1.Event {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s.%s", name, reason)}, Type: corev1.EventTypeWarning,
		InvolvedObject: corev1.ObjectReference{Name: name}, Reason: reason, Message: message}
}

func TestRunKeepsOrderAndErrors(t *testing.T) {
	findings := Run(t.Context(), []Check{
		check(AreaCluster, "a", func(context.Context) (Finding, error) { return pass("good"), nil }),
		check(AreaStorage, "b", func(context.Context) (Finding, error) { return Finding{}, io.ErrUnexpectedEOF }),
	})
	want := []Finding{{Area: AreaCluster, Check: "a", Status: Passed, Detail: "good"}, {Area: AreaStorage, Check: "b", Status: Failed, Detail: "unexpected EOF"}}
	if !reflect.DeepEqual(findings, want) {
		t.Errorf("%+v", findings)
	}
}

func serverVersion(w *world, v string) {
	w.Clientset.Discovery().(*discoveryfake.FakeDiscovery).FakedServerVersion = &version.Info{GitVersion: v}
}
