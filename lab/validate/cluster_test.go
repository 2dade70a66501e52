package validate

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// static are the static pods of a control plane; change may be nil.
func static(node string, change func(component string, p *corev1.Pod)) (pods []runtime.Object) {
	for _, component := range staticPods {
		p := podOn("kube-system", component+"-"+node, node, map[string]string{"tier": "control-plane", "component": component}, true)
		p.Spec.Containers = []corev1.Container{{Image: "registry.k8s.io/" + component + ":v1.36.3"}}
		if change != nil {
			change(component, p)
		}
		pods = append(pods, p)
	}
	return pods
}

func daemonSet(namespace, name string) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}}}
}

func deployment(namespace, name string, labels map[string]string, ready int32) *appsv1.Deployment {
	two := int32(2)
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:   appsv1.DeploymentSpec{Replicas: &two, Selector: &metav1.LabelSelector{MatchLabels: labels}},
		Status: appsv1.DeploymentStatus{ReadyReplicas: ready, UpdatedReplicas: ready}}
}

// Static pods that have just started are ready before their kubelet says so.
func TestYoungStaticPods(t *testing.T) {
	for age, want := range map[time.Duration]Status{time.Minute: Passed, time.Hour: Failed} {
		synctest.Test(t, func(t *testing.T) {
			created := metav1.NewTime(time.Now().Add(-age))
			pods := static("cp1", func(_ string, p *corev1.Pod) { p.CreationTimestamp, p.Status.Conditions = created, readyIf(false) })
			w, c := newWorld(t, append(pods, node("cp1", func(n *corev1.Node) { n.Labels[controlPlaneLabel] = "" }))...)
			go func() {
				time.Sleep(5 * time.Second)
				for _, o := range pods {
					p := o.(*corev1.Pod).DeepCopy()
					p.Status.Conditions = readyIf(true)
					if err := w.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), p, p.Namespace); err != nil {
						t.Error(err)
					}
				}
			}()
			if f := look(t, c.ClusterChecks(), "static pods"); f.Status != want {
				t.Errorf("%s old: %+v, want %s", age, f, want)
			}
			synctest.Wait()
			time.Sleep(10 * time.Second)
		})
	}
}

func TestClusterChecks(t *testing.T) {
	dns, proxy := map[string]string{"k8s-app": "kube-dns"}, map[string]string{"app": "kube-proxy"}
	down := func(component string) func(string, *corev1.Pod) {
		return func(c string, p *corev1.Pod) {
			if c == component {
				p.Status.Conditions = readyIf(false)
			}
		}
	}
	version := func(component, tag string) func(string, *corev1.Pod) {
		return func(c string, p *corev1.Pod) {
			if c == component {
				p.Spec.Containers[0].Image = "mirror.example:5000/" + c + ":" + tag + "@sha256:0123"
			}
		}
	}
	kubelet := func(v string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Status.NodeInfo.KubeletVersion = v }
	}
	tests := []struct {
		name    string
		check   string
		objects []runtime.Object
		ready   map[string]string
		status  Status
		words   []string
	}{
		{"ready", "the API server", nil, nil, Passed, []string{"/readyz answered ok"}},
		{"a part is not", "the API server", nil, map[string]string{"/readyz": "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed"}, Failed, []string{"etcd failed: reason withheld"}},
		{"it says nothing more", "the API server", nil, map[string]string{"/readyz": "busy"}, Failed, []string{"it answered 500"}},

		{"all", "every Node", []runtime.Object{node("cp1"), node("w1")}, nil, Passed, []string{"cp1; w1"}},
		{"one is not", "every Node", []runtime.Object{node("cp1"), node("w1", unready)}, nil, Failed, []string{"w1 is not Ready: KubeletNotReady: cni plugin not initialized"}},
		{"a Windows Node is not ours", "every Node", []runtime.Object{node("w1"), node("w2", unready, func(n *corev1.Node) { n.Labels[corev1.LabelOSStable] = "windows" })}, nil, Passed, nil},

		{"none", "no Node is under", []runtime.Object{node("w1")}, nil, Passed, nil},
		{"one", "no Node is under", []runtime.Object{node("w1"), node("w2", func(n *corev1.Node) {
			n.Status.Conditions[1] = corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue, Message: "kubelet has disk pressure"}
		})}, nil, Failed, []string{"w2: DiskPressure: kubelet has disk pressure"}},

		{"all run", "control planes", append(static("cp1", nil), node("cp1"), node("w1")), nil, Passed, []string{"cp1"}},
		{"not kubeadm's", "control planes", []runtime.Object{node("cp1")}, nil, NotApplicable, nil},
		{"one lacks all", "control planes", append(static("cp1", nil), node("cp1"), node("cp2")), nil, Failed, []string{"cp2 runs no kube-apiserver", "cp2 runs no etcd"}},
		{"one is down", "control planes", append(static("cp1", down("kube-scheduler")), node("cp1")), nil, Failed, []string{"kube-scheduler-cp1 is not ready", "it does not run"}},
		{"etcd outside", "control planes", append(static("cp1", nil)[:3], node("cp1")), nil, Passed, nil},

		{"its pods are ready", "etcd", append(static("cp1", nil), node("cp1")), nil, Passed, []string{"1 of 1", "certificates"}},
		{"a pod is not", "etcd", append(append(static("cp1", nil), static("cp2", down("etcd"))...), node("cp1"), node("cp2")), nil, Failed, []string{"1 of 2", "etcd-cp2"}},
		{"the API server lost it", "etcd", append(static("cp1", nil), node("cp1")), map[string]string{"/readyz/etcd": "no leader"}, Failed, []string{"cannot use etcd"}},
		{"outside", "etcd", []runtime.Object{node("cp1")}, nil, Passed, []string{"not in the cluster's pods"}},

		{"ready", "CoreDNS", []runtime.Object{deployment("kube-system", "coredns", dns, 2)}, nil, Passed, []string{"2 of 2"}},
		{"none there", "CoreDNS", nil, nil, NotApplicable, nil},
		{"one is not", "CoreDNS", []runtime.Object{deployment("kube-system", "coredns", dns, 1), podOn("kube-system", "coredns-x", "w1", dns, false),
			warningOf("kube-system", "coredns-x", "BackOff", "Back-off restarting failed container")}, nil, Failed,
			[]string{"1 of 2", "coredns-x", "it does not run", "event BackOff: Back-off restarting failed container"}},

		{"ready", "kube-proxy", []runtime.Object{node("w1"), daemonSet("kube-system", "kube-proxy"), podOn("kube-system", "p", "w1", proxy, true)}, nil, Passed, []string{"w1"}},
		{"not on one", "kube-proxy", []runtime.Object{node("w1"), node("w2"), daemonSet("kube-system", "kube-proxy"), podOn("kube-system", "p", "w1", proxy, true)}, nil, Failed,
			[]string{"w2: no pod of DaemonSet kube-system/kube-proxy"}},
		{"not ready", "kube-proxy", []runtime.Object{node("w1"), daemonSet("kube-system", "kube-proxy"), podOn("kube-system", "p", "w1", proxy, false)}, nil, Failed,
			[]string{"w1: pod kube-system/p is not ready"}},
		{"another has its part", "kube-proxy", []runtime.Object{node("w1")}, nil, NotApplicable, nil},

		{"the same", "versions", append(static("cp1", nil), node("cp1")), nil, Passed, []string{"v1.36.3"}},
		{"kubelet three behind", "versions", []runtime.Object{node("w1", kubelet("v1.33.13"))}, nil, Passed, nil},
		{"kubelet four behind", "versions", []runtime.Object{node("w1", kubelet("v1.32.0"))}, nil, Failed, []string{"kubelet on w1 is v1.32.0, more than 3 minor versions behind"}},
		{"kubelet ahead", "versions", []runtime.Object{node("w1", kubelet("v1.37.0"))}, nil, Failed, []string{"newer than the oldest API server"}},
		{"kubelet ahead of one API server", "versions", append(static("cp1", version("kube-apiserver", "v1.35.4")), node("cp1"), node("w1")), nil, Failed, []string{"kubelet on w1 is v1.36.3, which is newer", "v1.35.4"}},
		{"API servers apart", "versions", append(static("cp1", version("kube-apiserver", "v1.34.4")), node("cp1", kubelet("v1.34.4"))), nil, Failed, []string{"one minor version apart"}},
		{"scheduler two behind", "versions", append(static("cp1", version("kube-scheduler", "v1.34.4")), node("cp1")), nil, Failed, []string{"kube-scheduler on cp1", "more than 1 minor"}},
		{"a tag that says nothing", "versions", append(static("cp1", version("kube-scheduler", "latest")), node("cp1")), nil, Passed, nil},
	}
	for _, tt := range tests {
		t.Run(tt.check+"/"+tt.name, func(t *testing.T) {
			w, c := newWorld(t, tt.objects...)
			w.ready = tt.ready
			wantFinding(t, c.ClusterChecks(), tt.check, tt.status, tt.words...)
		})
	}
}

func TestSkewOfOldKubelets(t *testing.T) {
	w, c := newWorld(t, node("w1", func(n *corev1.Node) { n.Status.NodeInfo.KubeletVersion = "v1.24.0" }))
	serverVersion(w, "v1.27.1")
	wantFinding(t, c.ClusterChecks(), "versions", Failed, "more than 2 minor versions")
	serverVersion(w, "nonsense")
	wantFinding(t, c.ClusterChecks(), "versions", Failed, "read the API server's version")
}

func TestEtcdOfALab(t *testing.T) {
	_, c := newWorld(t)
	for _, tt := range []struct {
		problems []string
		err      error
		status   Status
		word     string
	}{
		{nil, nil, Passed, "no alarm"},
		{[]string{"cp2: alarm NOSPACE"}, nil, Failed, "cp2: alarm NOSPACE"},
		{nil, errors.New("no answer within 30s"), Failed, "no answer"},
	} {
		c.Etcd = func(context.Context) ([]string, error) { return tt.problems, tt.err }
		wantFinding(t, c.ClusterChecks(), "etcd", tt.status, tt.word)
	}
}
