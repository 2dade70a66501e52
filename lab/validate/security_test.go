package validate

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
)

func TestDecrypted(t *testing.T) {
	encrypting := func(states ...state) *unstructured.Unstructured {
		return fluxDocument("Kustomization", "nodes", append([]state{at(newRevision), set("sops", "spec", "decryption", "provider")}, states...)...)
	}
	inventory := set([]any{
		fields{"id": "shop_web_apps_Deployment", "v": "v1"}, fields{"id": "shop_key__Secret", "v": "v1"}, fields{"id": "_shop__Namespace", "v": "v1"},
	}, "status", "inventory", "entries")
	secret := func(key, value string) runtime.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "key"}, Data: map[string][]byte{key: []byte(value)}}
	}
	tests := []struct {
		name   string
		object *unstructured.Unstructured
		secret runtime.Object
		status Status
		words  string
	}{
		{"no decryption", fluxDocument("Kustomization", "nodes", at(newRevision), inventory), secret("a", "b"), NotApplicable, "no Kustomization of Flux has decryption"},
		{"decrypted", encrypting(inventory), secret("password", "hunter2"), Passed, "1 Secrets of 1 Kustomizations"},
		{"a value is encrypted", encrypting(inventory), secret("password", "ENC[AES256_GCM,data:x]"), Failed, `secret shop/key of Kustomization flux-system/nodes is still encrypted at its key "password"`},
		{"within a file", encrypting(inventory), secret("app.env", "A=1\nB=ENC[AES256_GCM,data:x]\n"), Failed, `key "app.env"`},
		{"has SOPS' own key", encrypting(inventory), secret("sops", "mac"), Failed, `key "sops"`},
		{"is gone", encrypting(inventory), nil, Failed, "secret shop/key, which Kustomization flux-system/nodes has applied, is not there"},
		{"no Secret applied", encrypting(), secret("a", "b"), NotApplicable, "have applied no Secret"},
		{"not Ready", encrypting(anew, condition("Ready", "False", "BuildFailed", "cannot get sops data key")), secret("a", "b"), Failed, "cannot get sops data key"},
		{"suspended", encrypting(inventory, suspended), secret("a", "b"), Warned, "is suspended"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set := fake.NewClientset()
			if tt.secret != nil {
				set = fake.NewClientset(tt.secret)
			}
			c := &Cluster{Kube: set, Dynamic: dynamicWorld(t, fluxKinds, tt.object)}
			checkFinding(t, look(t, c.SecurityChecks("w1"), "SOPS"), tt.status, tt.words)
		})
	}
	c := &Cluster{Kube: fake.NewClientset(), Dynamic: dynamicWorld(t, nil)}
	checkFinding(t, look(t, c.SecurityChecks("w1"), "SOPS"), NotApplicable, "no Flux")
}

func TestPolicies(t *testing.T) {
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deny"}}
	agent := func(name string) runtime.Object {
		return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}}
	}
	k3s := member("w1", "")
	k3s.Status.NodeInfo.KubeletVersion = "v1.33.1+k3s1"
	tests := []struct {
		name    string
		objects []runtime.Object
		status  Status
		words   string
	}{
		{"none", []runtime.Object{agent("kube-flannel-ds")}, NotApplicable, "no NetworkPolicy"},
		{"flannel", []runtime.Object{policy, agent("kube-flannel-ds")}, Warned, "1 shop; flannel does not enforce them"},
		{"flannel and an engine", []runtime.Object{policy, agent("kube-flannel-ds"), agent("kube-network-policies")}, Passed, "kube-network-policies enforces them"},
		{"calico", []runtime.Object{policy, agent("calico-node")}, Passed, "calico enforces them"},
		{"k3s", []runtime.Object{policy, k3s}, Passed, "k3s enforces them"},
		{"unknown", []runtime.Object{policy, agent("net")}, Warned, "not known whether"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &Cluster{Kube: fake.NewClientset(tt.objects...), Dynamic: dynamicWorld(t, nil)}
			checkFinding(t, look(t, c.SecurityChecks("w1"), "network policies"), tt.status, tt.words)
		})
	}
}

func TestPrivileged(t *testing.T) {
	yes := true
	plain := runningPod("shop", "web", "w1", "")
	plain.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: &yes}
	with := func(namespace string, init bool) *corev1.Pod {
		p := runningPod(namespace, "root", "w1", "")
		p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: &yes}
		if init {
			p.Spec.InitContainers, p.Spec.Containers = p.Spec.Containers, []corev1.Container{{Name: "c"}}
		}
		return p
	}
	tests := []struct {
		name   string
		pods   []runtime.Object
		status Status
		words  string
	}{
		{"none", []runtime.Object{plain, runningPod("shop", "db", "w1", "")}, Passed, "2 pods outside of system namespaces, none privileged; 1 declare"},
		{"of the system", []runtime.Object{with("kube-system", false), with("longhorn-system", false)}, Passed, "0 pods outside"},
		{"one", []runtime.Object{plain, with("shop", false)}, Warned, "pod shop/root is privileged"},
		{"one at its start", []runtime.Object{with("shop", true)}, Warned, "pod shop/root is privileged"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &Cluster{Kube: fake.NewClientset(tt.pods...), Dynamic: dynamicWorld(t, nil)}
			checkFinding(t, look(t, c.SecurityChecks("w1"), "privileged"), tt.status, tt.words)
		})
	}
}

func TestTokens(t *testing.T) {
	soon, past := time.Now().Add(time.Hour).Format(time.RFC3339), time.Now().Add(-time.Hour).Format(time.RFC3339)
	token := func(description, expiration string) *corev1.Secret {
		data := map[string][]byte{"token-id": []byte("abcdef"), "token-secret": []byte("0123456789abcdef"), "description": []byte(description)}
		if expiration != "" {
			data["expiration"] = []byte(expiration)
		}
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-abcdef"}, Type: "bootstrap.kubernetes.io/token", Data: data}
	}
	other := token("labctl: join of w1", soon)
	other.Type = corev1.SecretTypeOpaque
	tests := []struct {
		name   string
		secret *corev1.Secret
		status Status
		words  string
	}{
		{"somebody's", token("kubeadm's own", soon), Passed, "1 valid tokens"},
		{"left by a join", token("labctl: join of w1", soon), Failed, `token abcdef is left ("labctl: join of w1"`},
		{"left, and of no use", token("labctl: join of w1", past), Passed, "0 valid tokens"},
		{"for ever", token("for autoscaling", ""), Warned, "token abcdef never expires"},
		{"left for ever", token("labctl: join of w1", ""), Failed, "is left"},
		{"no token", other, Passed, "0 valid tokens"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &Cluster{Kube: fake.NewClientset(tt.secret), Dynamic: dynamicWorld(t, nil)}
			checkFinding(t, look(t, c.SecurityChecks("w1"), "bootstrap token"), tt.status, tt.words)
		})
	}
}
