package validate

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"k8slab/lab/diagnose"
	"k8slab/lab/symptom"
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

// lease is one that was renewed that long ago.
func lease(namespace, name, holder string, ago time.Duration) *coordinationv1.Lease {
	renewed := metav1.NewMicroTime(time.Now().Add(-ago))
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed}}
}

// under puts a Node under pressure.
func under(kind corev1.NodeConditionType) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Conditions[1] = corev1.NodeCondition{Type: kind, Status: corev1.ConditionTrue, Message: "much"}
	}
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
		created := metav1.NewTime(time.Now().Add(-age))
		pods := static("cp1", func(_ string, p *corev1.Pod) { p.CreationTimestamp, p.Status.Conditions = created, readyIf(false) })
		_, c := newWorld(t, append(pods, node("cp1"))...)
		if f := look(t, c.ClusterChecks(), verdict); f.Status != want {
			t.Errorf("%s old: %+v, want %s", age, f, want)
		}
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
		{"ready", verdict, append(static("cp1", nil), node("cp1"), node("w1"), daemonSet("kube-system", "kube-proxy"), deployment("kube-system", "coredns", dns, 2),
			podOn("kube-system", "p", "cp1", proxy, true), podOn("kube-system", "q", "w1", proxy, true)), nil, Passed, []string{"no finding"}},
		{"nothing of kubeadm's", verdict, []runtime.Object{node("cp1")}, nil, Passed, nil},
		{"a part is not ready", verdict, nil, map[string]string{"/readyz": "[+]ping ok\n[-]log failed: reason withheld\nreadyz check failed"}, Failed,
			[]string{"control-plane-crashloop: api server is not ready: log failed: reason withheld"}},
		{"it says nothing more", verdict, nil, map[string]string{"/readyz": "busy"}, Failed, []string{"it answered 500"}},
		{"it lost etcd", verdict, append(static("cp1", nil), node("cp1")), map[string]string{"/readyz": "[-]etcd failed: reason withheld"}, Failed, []string{"etcd-unreachable"}},
		{"it does not answer", verdict, nil, map[string]string{"/version": "no"}, Failed, []string{"apiserver-unreachable"}},

		{"a Node is not", verdict, []runtime.Object{node("cp1"), node("w1", unready)}, nil, Failed, []string{"kubelet-not-running on w1: its Node is not Ready: KubeletNotReady: cni plugin not initialized"}},
		{"disk pressure", verdict, []runtime.Object{node("w1"), node("w2", under(corev1.NodeDiskPressure))}, nil, Failed, []string{"disk-full on w2: DiskPressure: much"}},
		{"memory pressure", verdict, []runtime.Object{node("w1"), node("w2", under(corev1.NodeMemoryPressure))}, nil, Warned, []string{"out-of-memory on w2"}},

		{"one lacks all", verdict, append(static("cp1", nil), node("cp1"), node("cp2")), nil, Failed, []string{"unexplained (static pods) on cp2: it runs no kube-apiserver"}},
		{"one is down", verdict, append(static("cp1", down("kube-scheduler")), node("cp1")), nil, Failed, []string{"unexplained (static pods) on cp1: kube-scheduler-cp1 is not ready", "it does not run"}},
		{"etcd outside", verdict, append(static("cp1", nil)[:3], node("cp1")), nil, Passed, nil},

		{"CoreDNS is not", verdict, []runtime.Object{deployment("kube-system", "coredns", dns, 1), podOn("kube-system", "coredns-x", "w1", dns, false),
			warningOf("kube-system", "coredns-x", "BackOff", "Back-off restarting failed container")}, nil, Failed,
			[]string{"unexplained (CoreDNS)", "1 of 2", "coredns-x", "it does not run", "event BackOff: Back-off restarting failed container"}},
		{"no kube-proxy on one", verdict, []runtime.Object{node("w1"), node("w2"), daemonSet("kube-system", "kube-proxy"), podOn("kube-system", "p", "w1", proxy, true)}, nil, Failed,
			[]string{"unexplained (pod network)", "w2: no pod of DaemonSet kube-system/kube-proxy"}},
		{"a user's pod fails", verdict, []runtime.Object{node("w1"), notReadyPod(runningPod("shop", "web", "w1", ""))}, nil, Passed, nil},
		{"a leader is silent", verdict, []runtime.Object{lease("kube-system", "kube-controller-manager", "cp1_x", time.Hour), lease("kube-node-lease", "cp1", "cp1", 0)}, nil, Failed,
			[]string{"controller-manager-failing: no kube-controller-manager leads"}},
		{"this computer's clock is wrong", verdict, []runtime.Object{lease("kube-system", "kube-scheduler", "cp1_x", time.Hour), lease("kube-node-lease", "cp1", "cp1", time.Hour)}, nil, Passed, nil},

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

// In a lab the verdict is the lab's own, with its findings as they are.
func TestVerdictOfALab(t *testing.T) {
	full := symptom.Finding{Symptom: symptom.DiskFull, Level: symptom.Fail, Node: "cp2", Hint: "labctl repair", Evidence: []symptom.Evidence{{Text: "NOSPACE"}}}
	mild := full
	mild.Level = symptom.Warn
	_, c := newWorld(t, node("w1", unready))
	for _, tt := range []struct {
		report diagnose.Report
		status Status
		words  []string
	}{
		{diagnose.Report{Healthy: true}, Passed, []string{"no finding"}},
		{diagnose.Report{Findings: []symptom.Finding{full}}, Failed, []string{"disk-full on cp2: NOSPACE"}},
		{diagnose.Report{Healthy: true, Findings: []symptom.Finding{mild}}, Warned, []string{"disk-full on cp2: NOSPACE"}},
		{diagnose.Report{Healthy: true, Unread: []string{"w1: journal"}}, Warned, []string{"not known: w1: journal"}},
		{diagnose.Report{Undetermined: []string{"it failed"}}, Failed, []string{"it failed"}},
	} {
		c.Diagnose = func(context.Context) (diagnose.Report, error) { return tt.report, nil }
		f := look(t, c.ClusterChecks(), verdict)
		judgeFinding(t, f, tt.status, tt.words...)
		if !reflect.DeepEqual(f.Findings, tt.report.Findings) || len(f.Findings) > 0 && f.Next != "labctl repair" {
			t.Errorf("%+v", f)
		}
	}
	c.Diagnose = func(context.Context) (diagnose.Report, error) {
		return diagnose.Report{Healthy: true}, errors.New("no lab is up")
	}
	judgeFinding(t, look(t, c.ClusterChecks(), verdict), Failed, "no lab is up")
}
