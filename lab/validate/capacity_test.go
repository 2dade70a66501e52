package validate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestPodNetworkRoom(t *testing.T) {
	manager := func(flags ...string) []runtime.Object {
		return append(static("cp1", func(component string, p *corev1.Pod) {
			if component == "kube-controller-manager" {
				p.Spec.Containers[0].Command = append([]string{"kube-controller-manager"}, flags...)
			}
		}), node("cp1"))
	}
	with := func(objects []runtime.Object, cidrs ...string) []runtime.Object {
		for i, cidr := range cidrs {
			objects = append(objects, node("w"+string(rune('1'+i)), func(n *corev1.Node) { n.Spec.PodCIDRs = []string{cidr} }))
		}
		return objects
	}
	kubeadm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubeadm-config"},
		Data: map[string]string{"ClusterConfiguration": "networking:\n  podSubnet: 10.244.0.0/23\n"}}
	allocate := "--allocate-node-cidrs=true"
	tests := []struct {
		name    string
		objects []runtime.Object
		status  Status
		words   []string
	}{
		{"room", with(manager(allocate, "--cluster-cidr=10.244.0.0/16"), "10.244.0.0/24"), Passed, []string{"10.244.0.0/16: 255 of 256"}},
		{"none left", with(manager(allocate, "--cluster-cidr=10.244.0.0/23"), "10.244.0.0/24", "10.244.1.0/24"), Failed, []string{"0 of 2"}},
		{"one left of another size", with(manager(allocate, "--cluster-cidr=10.244.0.0/23", "--node-cidr-mask-size=25"), "10.244.0.0/25", "10.244.0.128/25", "10.244.1.0/25"), Passed, []string{"1 of 4"}},
		{"both families, one full", with(manager(allocate, "--cluster-cidr=10.244.0.0/16,fd00::/64"), "fd00::/64"), Failed, []string{"fd00::/64: 0 of 1"}},
		{"a network of another subnet", with(manager(allocate, "--cluster-cidr=10.244.0.0/24"), "10.9.0.0/24"), Passed, []string{"1 of 1"}},
		{"what kubeadm was told", append(with(manager(allocate), "10.244.0.0/24"), kubeadm), Passed, []string{"10.244.0.0/23: 1 of 2"}},
		{"nobody was told", manager(allocate), Failed, []string{"names no podSubnet"}},
		{"the pod network does so itself", manager(), NotApplicable, []string{"--allocate-node-cidrs"}},
		{"not to be seen", []runtime.Object{node("cp1")}, NotApplicable, []string{"cannot be seen"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, c := newWorld(t, tt.objects...)
			wantFinding(t, c.CapacityChecks(0, 0), "the pod network has room", tt.status, tt.words...)
		})
	}
}

func TestNoPodWaits(t *testing.T) {
	waiting := func(name, why string) *corev1.Pod {
		request := func(cpu, memory string) corev1.Container {
			return corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}}}
		}
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec: corev1.PodSpec{Containers: []corev1.Container{request("1", "512Mi"), request("500m", "512Mi")}, InitContainers: []corev1.Container{request("100m", "2Gi")}},
			Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: why}}}}
	}
	tests := []struct {
		name   string
		pods   []runtime.Object
		status Status
		words  []string
	}{
		{"none", nil, Passed, []string{"no pod is pending"}},
		{"for room", []runtime.Object{waiting("a", "0/3 nodes are available: 3 Insufficient cpu."), waiting("b", "0/3 nodes are available: 3 Too many pods.")}, Warned,
			[]string{"2 pods wait for room and ask for 3 CPUs and 4096 MiB", "the new Node has 2 CPUs and 2048 MiB", "shop/a: 0/3 nodes are available: 3 Insufficient cpu."}},
		{"for a label", []runtime.Object{waiting("a", "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.")}, Passed, []string{"pods that fit no Node", "shop/a"}},
		{"for its image", []runtime.Object{podOn("shop", "a", "w1", nil, false)}, Passed, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, c := newWorld(t, tt.pods...)
			wantFinding(t, c.CapacityChecks(2, 2048), "no pod waits", tt.status, tt.words...)
		})
	}
}
