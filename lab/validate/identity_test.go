package validate

import (
	"net/http"
	"net/http/httptest"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
)

// authorizers is a cluster whose authorizers give every access review the same answer, and note what was asked.
func authorizers(allow bool, asked *[]authorizationv1.SubjectAccessReviewSpec, objects ...runtime.Object) *fake.Clientset {
	set := fake.NewClientset(objects...)
	set.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		*asked = append(*asked, review.Spec)
		review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: allow, Reason: "RBAC: a role allows it"}
		return true, review, nil
	})
	return set
}

func refused(resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "x", nil)
}

// acting is what a client that acts as a node finds: an error for each "verb resource".
func acting(t *testing.T, answers map[string]error, objects ...runtime.Object) func(string, []string) (kubernetes.Interface, error) {
	return func(user string, groups []string) (kubernetes.Interface, error) {
		if user != "system:node:w1" || len(groups) != 1 || groups[0] != "system:nodes" {
			t.Errorf("acts as %s of %q", user, groups)
		}
		set := fake.NewClientset(objects...)
		set.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if p, is := a.(clienttesting.PatchActionImpl); is && len(p.PatchOptions.DryRun) == 0 {
				t.Errorf("a patch that is no dry run: %s", p.Patch)
			}
			err := answers[a.GetVerb()+" "+a.GetResource().Resource]
			return err != nil, nil, err
		})
		return set, nil
	}
}

// withSecret gives a pod a volume of a secret.
func withSecret(p *corev1.Pod, name string) *corev1.Pod {
	source := corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "v", VolumeSource: source})
	return p
}

func TestSecretsKept(t *testing.T) {
	w1, w2 := member("w1", "192.0.2.1"), member("w2", "192.0.2.2")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "theirs"}}
	pod := withSecret(runningPod("shop", "db-0", "w2", ""), "theirs")
	cannot := apierrors.NewForbidden(schema.GroupResource{Resource: "users"}, "system:node:w1", nil)
	tests := []struct {
		name    string
		allowed bool
		answers map[string]error // nil: nobody acts as the node
		status  Status
		words   string
	}{
		{"denied by review alone", false, nil, Passed, "may not read secret shop/theirs: the authorizers deny it"},
		{"denied by both", false, map[string]error{"get secrets": refused("secrets")}, Passed, "shop/theirs: a request is refused (403)"},
		{"allowed", true, nil, Failed, "system:node:w1 may read secret shop/theirs: the authorizers allow it: RBAC: a role allows it"},
		{"denied, and answered", false, map[string]error{}, Failed, "a request was answered"},
		{"denied, and looked for", false, map[string]error{"get secrets": apierrors.NewNotFound(schema.GroupResource{}, "x")}, Failed, "allowed, and found nothing"},
		{"nobody may act as the node", false, map[string]error{"get nodes": cannot, "get secrets": refused("secrets")}, Failed, "may read its own Node"},
		{"no answer", false, map[string]error{"get secrets": apierrors.NewTimeoutError("slow", 1)}, Failed, "read secret shop/theirs as system:node:w1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var asked []authorizationv1.SubjectAccessReviewSpec
			c := &Cluster{Kube: authorizers(tt.allowed, &asked, w1, w2, pod), Dynamic: dynamicWorld(t, nil)}
			if tt.answers != nil {
				c.Impersonate = acting(t, tt.answers, w1, w2, secret)
			}
			f := look(t, c.SecurityChecks("w1"), "Node authorizer")
			f.Next += "."
			checkFinding(t, f, tt.status, tt.words)
			if len(asked) != 1 || asked[0].User != "system:node:w1" || asked[0].ResourceAttributes.Name != "theirs" || asked[0].ResourceAttributes.Verb != "get" {
				t.Errorf("reviewed %+v", asked)
			}
		})
	}
}

func TestForeignSecret(t *testing.T) {
	env := runningPod("shop", "web-0", "w1", "")
	env.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "theirs"},
	}}}
	theirs := withSecret(runningPod("shop", "db-0", "w2", ""), "theirs")
	waiting := withSecret(runningPod("shop", "db-0", "", ""), "theirs")
	tests := []struct {
		name string
		pods []*corev1.Pod
		want string
	}{
		{"of another node", []*corev1.Pod{theirs}, "shop/theirs"},
		{"its own too, as a volume", []*corev1.Pod{theirs, withSecret(runningPod("shop", "db-1", "w1", ""), "theirs")}, "kube-system/k8slab-validate-none"},
		{"its own too, as variables", []*corev1.Pod{theirs, env}, "kube-system/k8slab-validate-none"},
		{"one of that name elsewhere", []*corev1.Pod{theirs, withSecret(runningPod("other", "db-1", "w1", ""), "theirs")}, "shop/theirs"},
		{"not placed yet", []*corev1.Pod{waiting}, "kube-system/k8slab-validate-none"},
		{"none", nil, "kube-system/k8slab-validate-none"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var pods []corev1.Pod
			for _, p := range tt.pods {
				pods = append(pods, *p)
			}
			if got := foreignSecret(pods, "w1").String(); got != tt.want {
				t.Errorf("%s, wanted %s", got, tt.want)
			}
		})
	}
}

func TestRestricted(t *testing.T) {
	w1, w2 := member("w1", "192.0.2.1"), member("w2", "192.0.2.2")
	tests := []struct {
		name    string
		nodes   []runtime.Object
		answers map[string]error
		status  Status
		words   string
	}{
		{"nobody acts as the node", []runtime.Object{w1, w2}, nil, NotApplicable, "made as the node"},
		{"one node", []runtime.Object{w1}, map[string]error{}, NotApplicable, "one Node"},
		{"refused", []runtime.Object{w1, w2}, map[string]error{"patch nodes": refused("nodes")}, Passed, "system:node:w1 may not label Node w2 (403)"},
		{"let", []runtime.Object{w1, w2}, map[string]error{}, Failed, "system:node:w1 may label Node w2"},
		{"refused everything", []runtime.Object{w1, w2}, map[string]error{"get nodes": refused("users"), "patch nodes": refused("users")}, Failed, "may read its own Node"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &Cluster{Kube: fake.NewClientset(tt.nodes...), Dynamic: dynamicWorld(t, nil)}
			if tt.answers != nil {
				c.Impersonate = acting(t, tt.answers, w1, w2)
			}
			f := look(t, c.SecurityChecks("w1"), "NodeRestriction")
			f.Next += "."
			checkFinding(t, f, tt.status, tt.words)
		})
	}
}

func TestNodeRights(t *testing.T) {
	group := rbacv1.Subject{Kind: "Group", Name: "system:nodes"}
	user := func(name string) rbacv1.Subject { return rbacv1.Subject{Kind: "User", Name: "system:node:" + name} }
	cluster := func(role string, subjects ...rbacv1.Subject) runtime.Object {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, RoleRef: rbacv1.RoleRef{Name: role}, Subjects: subjects}
	}
	namespaced := func(role string, subjects ...rbacv1.Subject) runtime.Object {
		return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "b"}, RoleRef: rbacv1.RoleRef{Name: role}, Subjects: subjects}
	}
	rotation := "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient"
	tests := []struct {
		name   string
		node   string
		object runtime.Object
		status Status
		words  string
	}{
		{"kubeadm's", "w1", cluster(rotation, group), Passed, "no binding"},
		{"kubeadm's in kube-system", "w1", namespaced("kubeadm:kubelet-config", group), Passed, "no binding"},
		{"the default, of nobody", "w1", cluster("system:node"), Passed, "no binding"},
		{"the default, of all nodes", "w1", cluster("system:node", group), Failed, "ClusterRoleBinding b gives the group system:nodes the role system:node"},
		{"the node's own", "w1", cluster("cluster-admin", user("w1")), Failed, "gives system:node:w1 the role cluster-admin"},
		{"another node's", "w1", cluster("cluster-admin", user("w2")), Passed, "no binding"},
		{"any node's", "", cluster("cluster-admin", user("w2")), Failed, "system:node:w2"},
		{"in a namespace", "w1", namespaced("edit", group), Warned, "RoleBinding kube-system/b"},
		{"a user who is called like the group", "w1", cluster("edit", rbacv1.Subject{Kind: "User", Name: "system:nodes"}), Passed, "no binding"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &Cluster{Kube: fake.NewClientset(member("w1", ""), member("w2", ""), tt.object), Dynamic: dynamicWorld(t, nil)}
			checkFinding(t, look(t, c.SecurityChecks(tt.node), "rights of a node"), tt.status, tt.words)
		})
	}
}

func TestImpersonator(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer admin" || r.Header.Get("Impersonate-User") != "system:node:w1" || r.Header.Get("Impersonate-Group") != "system:nodes" {
			t.Errorf("asked with %v", r.Header)
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL, BearerToken: "admin"}
	c := &Cluster{Impersonate: Impersonator(config)}
	if _, err := c.actAs(t.Context(), "w1"); !apierrors.IsForbidden(err) || config.Impersonate.UserName != "" {
		t.Errorf("%v, and the configuration is that of %q", err, config.Impersonate.UserName)
	}
}
