package validate

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

func TestPodNetworkAgent(t *testing.T) {
	agent := func(namespace, name string, ready bool) []runtime.Object {
		return []runtime.Object{node("w1"), node("w2"), daemonSet(namespace, name),
			podOn(namespace, name+"-1", "w1", map[string]string{"app": name}, true), podOn(namespace, name+"-2", "w2", map[string]string{"app": name}, ready)}
	}
	generic := agent("net", "homemade", true)
	spec := &generic[2].(*appsv1.DaemonSet).Spec.Template.Spec
	spec.HostNetwork = true
	spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc/cni/net.d"}}}}
	tests := []struct {
		name    string
		objects []runtime.Object
		node    string
		status  Status
		words   []string
	}{
		{"the lab's flannel", agent("kube-flannel", "flannel", true), "", Passed, []string{"kube-flannel/flannel", "w1; w2"}},
		{"calico on one", agent("kube-system", "calico-node", false), "w1", Passed, []string{"w1"}},
		{"calico not on the other", agent("kube-system", "calico-node", false), "w2", Failed, []string{"w2: pod kube-system/calico-node-2 is not ready"}},
		{"not there", agent("kube-system", "cilium", true)[:4], "w2", Failed, []string{"w2: no pod of DaemonSet kube-system/cilium"}},
		{"an unknown one", generic, "", Passed, []string{"net/homemade"}},
		{"none", agent("monitoring", "node-exporter", true), "", NotApplicable, []string{"pod network is not run by one"}},
		{"no such Node", agent("kube-flannel", "flannel", true), "w9", Failed, []string{"no Linux Node w9"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, c := newWorld(t, tt.objects...)
			wantFinding(t, c.NetworkChecks(tt.node), "the pod network's agent", tt.status, tt.words...)
		})
	}
}

// triedOn are the checks that need test pods.
func triedOn(c *Cluster, node string) []Check { return c.NetworkChecks(node)[2:] }

func TestRoutes(t *testing.T) {
	const away = "i/o timeout"
	failing := func(target string) func(string, string) string {
		return func(_, to string) string {
			if strings.HasPrefix(to, target) {
				return "dial tcp " + to + ": " + away
			}
			return ""
		}
	}
	tests := []struct {
		name   string
		node   string
		reach  func(from, target string) string
		failed int // the index of the way that fails, -1 for none
		words  []string
	}{
		{"all reach all", "", nil, -1, nil},
		{"one and the others", "w3", nil, -1, nil},
		{"pods of a Node", "w3", failing("10.244.0.3:"), 0, []string{"from cp1 to w3 (10.244.0.3:8080)", "from w2 to w3", away}},
		{"a Service", "", failing("10.96.0.9:"), 1, []string{"from w3 to 10.96.0.9:8080", away}},
		{"a NodePort", "w3", failing("192.0.2.3:30009"), 2, []string{"from w2 to w3 (192.0.2.3:30009)", "from w3 to w3"}},
		{"a name", "w3", failing("probe.k8slab-validate-"), 3, []string{"from w3 to probe.", ".svc:8080", away}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, c := newWorld(t, node("cp1"), node("w2"), node("w3"))
				if tt.reach != nil {
					w.reach = tt.reach
				}
				findings := Run(t.Context(), triedOn(c, tt.node))
				judgeFinding(t, findings[0], Passed, "cp1, w2, w3")
				for i, f := range findings[1:] {
					if i == tt.failed {
						judgeFinding(t, f, Failed, tt.words...)
						if f.Next == "" {
							t.Error("no next step")
						}
					} else {
						judgeFinding(t, f, Passed, "ways work")
					}
				}
				w.clean(t)
			})
		})
	}
}

// A new node's ways are tried to and from it, and no other.
func TestRoutesOfOneNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := newWorld(t, node("cp1"), node("w2"), node("w3"))
		Run(t.Context(), triedOn(c, "w3"))
		var got []string
		for asked := range maps.Keys(w.counts) {
			got = append(got, strings.Split(asked, ".k8slab-validate")[0])
		}
		slices.Sort(got)
		want := []string{
			"cp1 10.244.0.3:8080", "cp1 192.0.2.3:30009", "w2 10.244.0.3:8080", "w2 192.0.2.3:30009",
			"w3 10.244.0.1:8080", "w3 10.244.0.2:8080", "w3 10.96.0.9:8080", "w3 192.0.2.1:30009", "w3 192.0.2.2:30009", "w3 192.0.2.3:30009", "w3 probe",
		}
		if !slices.Equal(got, want) {
			t.Errorf("asked %q", got)
		}
	})
}

func TestRoutesSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := newWorld(t, node("w1"), node("w2"))
		w.reach = func(from, target string) string {
			if strings.HasPrefix(target, "10.96.0.9") && w.counts[from+" "+target] < 3 {
				return "connection refused"
			}
			return ""
		}
		for _, f := range Run(t.Context(), triedOn(c, "")) {
			judgeFinding(t, f, Passed)
		}
		if n := w.counts["w1 10.244.0.2:8080"]; n != 1 {
			t.Errorf("asked %d times for what worked", n)
		}
	})
}

func TestTestPodsThatDoNotStart(t *testing.T) {
	stuck := func(reason string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			bornReady(p)
			if p.Spec.NodeName == "w2" {
				p.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{
					{Name: "probe", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}}
			}
		}
	}
	tests := []struct {
		name   string
		birth  func(*corev1.Pod)
		node   string
		words  []string
		others string
	}{
		{"no image", stuck("ImagePullBackOff"), "w2", []string{"w2: container probe: ImagePullBackOff"}, "no test pod runs on w2"},
		{"no network", stuck("ContainerCreating"), "w2", []string{"w2: after 1m0s: container probe: ContainerCreating"}, "no test pod runs on w2"},
		{"two Nodes are too few", stuck("ErrImageNeverPull"), "", []string{"w2"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, c := newWorld(t, node("w1"), node("w2"))
				w.birth = tt.birth
				findings := Run(t.Context(), triedOn(c, tt.node))
				judgeFinding(t, findings[0], Failed, tt.words...)
				judgeFinding(t, findings[1], Failed, "not tried", tt.others)
				w.clean(t)
			})
		})
	}
}

// An event says more than a pod that waits.
func TestWhyNamesTheEvent(t *testing.T) {
	_, c := newWorld(t, warningOf("n", "w2", "FailedCreatePodSandBox", "plugin type=\"flannel\" failed: open /run/flannel/subnet.env: no such file or directory"),
		warningOf("n", "w1", "Other", "of another pod"))
	why := c.why(t.Context(), podOn("n", "w2", "w2", nil, false))
	if !strings.Contains(why, "event FailedCreatePodSandBox: plugin") || !strings.Contains(why, "it does not run") || strings.Contains(why, "another") {
		t.Error(why)
	}
}

func TestTrialsThatCannotBe(t *testing.T) {
	tests := []struct {
		name   string
		nodes  []runtime.Object
		node   string
		change func(*world, *Cluster)
		first  Status
		says   string
		status Status // of the ways
		words  string
	}{
		{"no image", []runtime.Object{node("w1")}, "", func(_ *world, c *Cluster) { c.Image = "" }, Warned, "no image of labnode", Warned, "not tried"},
		{"alone", []runtime.Object{node("w1"), node("w2", unready)}, "w1", nil, Passed, "without w2, not Ready", NotApplicable, "one Node that is Ready"},
		{"itself not Ready", []runtime.Object{node("w1"), node("w2", unready)}, "w2", nil, Failed, "w2 is not Ready: KubeletNotReady: cni plugin not initialized", Failed, "no test pod runs on w2"},
		{"no such Node", []runtime.Object{node("w1")}, "w9", nil, Failed, "no Linux Node w9", Failed, "no test pod runs on w9"},
		{"the API server cannot ask", []runtime.Object{node("w1"), node("w2")}, "", func(w *world, _ *Cluster) {
			w.proxy = func(string) (string, error) { return "", errors.New("error trying to reach service: i/o timeout") }
		}, Passed, "ready on", Failed, "the API server cannot ask the pod on w1: error trying to reach service"},
		{"another image", []runtime.Object{node("w1"), node("w2")}, "", func(w *world, _ *Cluster) {
			w.proxy = func(string) (string, error) { return "<html>", nil }
		}, Passed, "ready on", Failed, "is labnode an image of labnode?"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, c := newWorld(t, tt.nodes...)
				if tt.change != nil {
					tt.change(w, c)
				}
				findings := Run(t.Context(), triedOn(c, tt.node))
				judgeFinding(t, findings[0], tt.first, tt.says)
				judgeFinding(t, findings[1], tt.status, tt.words)
				w.clean(t)
			})
		})
	}
}

// A wait that the caller's limit cuts short says what it waited for.
func TestTrialOutOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := newWorld(t, node("w1"), node("w2"))
		w.birth = func(p *corev1.Pod) {
			p.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
				Name: "probe", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating", Message: "no bridge"}},
			}}}
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, errors.New("the time is over"))
		defer cancel()
		judgeFinding(t, Run(ctx, triedOn(c, "w1"))[0], Failed, "the time is over; last seen: pod w1: container probe: ContainerCreating: no bridge")
		w.clean(t)
	})
}

// Test pods go also when the caller no longer waits.
func TestInterruptedTrialLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := newWorld(t, node("w1"), node("w2"))
		w.PrependReactor("delete", "namespaces", func(a clienttesting.Action) (bool, runtime.Object, error) {
			go func() { // as a namespace controller does
				time.Sleep(2 * time.Second)
				_, _, _ = w.empty(a)
				_ = w.Tracker().Delete(a.GetResource(), "", a.(clienttesting.DeleteAction).GetName())
			}()
			return true, nil, nil
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		w.birth = func(p *corev1.Pod) {
			cancel(errors.New("interrupted"))
		}
		judgeFinding(t, Run(ctx, triedOn(c, ""))[0], Failed, "interrupted")
		if pods, err := w.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); err != nil || len(pods.Items) > 0 {
			t.Errorf("left %v, %v", pods.Items, err)
		}
		time.Sleep(3 * time.Second)
		w.clean(t)
		w, c = newWorld(t, node("w1"))
		w.proxy = func(string) (string, error) { return "", errors.New("no answer") }
		w.PrependReactor("delete", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("denied") })
		judgeFinding(t, Run(ctx, triedOn(c, ""))[0], Failed, "interrupted", "delete test namespace: denied; remove it with: kubectl delete namespace k8slab-validate-")
	})
}

func TestTestPods(t *testing.T) {
	p := (&Cluster{Image: "i"}).probePod("w1", "t")
	container := p.Spec.Containers[0]
	if p.Spec.NodeName != "w1" || p.Spec.Tolerations[0].Operator != corev1.TolerationOpExists || container.ImagePullPolicy != corev1.PullIfNotPresent {
		t.Errorf("%+v", p.Spec)
	}
	// What the restricted Pod Security Standard asks for.
	if !*p.Spec.SecurityContext.RunAsNonRoot || p.Spec.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
		*container.SecurityContext.AllowPrivilegeEscalation || container.SecurityContext.Capabilities.Drop[0] != "ALL" {
		t.Errorf("%+v %+v", p.Spec.SecurityContext, container.SecurityContext)
	}
}
