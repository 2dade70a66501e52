package kube

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// packed reads a request's object, which client-go sends in its own format.
func packed(t *testing.T, r *http.Request, body []byte, into interface{ Unmarshal([]byte) error }) {
	t.Helper()
	if raw, ok := strings.CutPrefix(string(body), "k8s\x00"); ok {
		var u runtime.Unknown
		if err := u.Unmarshal([]byte(raw)); err != nil {
			t.Error(err)
		}
		if err := into.Unmarshal(u.Raw); err != nil {
			t.Error(err)
		}
		return
	}
	if err := json.Unmarshal(body, into); err != nil {
		t.Errorf("%s: %v", r.URL, err)
	}
}

// joinable is a cluster with all that kubeadm makes for joins, except what is denied or absent.
func joinable(t *testing.T, f *fakeAPI, denied, absent string) {
	for _, c := range joinConfigs {
		at := fmt.Sprintf("GET /api/v1/namespaces/%s/configmaps/%s", c.namespace, c.name)
		f.on(at, 200, fields{"kind": "ConfigMap", "apiVersion": "v1", "data": fields{c.key: "kind: " + c.kind + "\nclusters: [{name: x, cluster: {}}]\n"}})
		if c.name == absent {
			f.on(at, 404, notFound())
		}
	}
	f.handle("POST /apis/authorization.k8s.io/v1/subjectaccessreviews", func(w http.ResponseWriter, r *http.Request) {
		var review authorizationv1.SubjectAccessReview
		packed(t, r, f.body("POST "+r.URL.Path), &review)
		may := review.Spec.ResourceAttributes
		what := fmt.Sprintf("%s %s/%s %s %s", may.Verb, may.Resource, may.Subresource, may.Name, review.Spec.Groups[0])
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(fields{"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": fields{},
			"status": fields{"allowed": what != denied}})
	})
}

func TestMissingForJoins(t *testing.T) {
	tests := []struct {
		denied, absent string
		want           JoinNeed
		names          string
	}{
		{"", "", JoinNeed{}, ""},
		{"create certificatesigningrequests/nodeclient  system:bootstrappers", "", JoinNeed{Right: true, Phase: "bootstrap-token"},
			"may not create certificatesigningrequests/nodeclient: kubeadm's ClusterRoleBinding kubeadm:node-autoapprove-bootstrap"},
		{"create certificatesigningrequests/  system:bootstrappers", "", JoinNeed{Right: true, Phase: "bootstrap-token"}, "kubeadm:kubelet-bootstrap"},
		{"create certificatesigningrequests/selfnodeclient  system:nodes", "", JoinNeed{Right: true, Later: true, Phase: "bootstrap-token"}, "certificate-rotation"},
		{"get configmaps/ cluster-info system:unauthenticated", "", JoinNeed{Right: true, Phase: "bootstrap-token"}, "machines without credentials may not get configmaps kube-public/cluster-info"},
		{"get configmaps/ kubelet-config system:bootstrappers", "", JoinNeed{Right: true, Phase: "upload-config kubelet"}, "RoleBinding kubeadm:kubelet-config"},
		{"", "cluster-info", JoinNeed{Phase: "bootstrap-token"}, "ConfigMap kube-public/cluster-info is missing"},
		{"", "kubeadm-config", JoinNeed{Phase: "upload-config kubeadm"}, "ConfigMap kube-system/kubeadm-config is missing"},
	}
	for _, tt := range tests {
		f := newFakeAPI(t)
		joinable(t, f, tt.denied, tt.absent)
		c, rec := f.client()
		got, err := c.MissingForJoins(t.Context())
		if err != nil || len(got) > 1 || (len(got) == 1) != (tt.names != "") {
			t.Errorf("%s%s: %+v, %v", tt.denied, tt.absent, got, err)
			continue
		}
		if len(got) == 1 {
			tt.want.What = got[0].What
			if got[0] != tt.want || !strings.Contains(got[0].What, tt.names) {
				t.Errorf("%s%s: %+v", tt.denied, tt.absent, got[0])
			}
		}
		rec.want(t) // to ask changes nothing
	}
}

func TestAnEmptyConfigMapIsMissing(t *testing.T) {
	f := newFakeAPI(t)
	joinable(t, f, "", "")
	f.on("GET /api/v1/namespaces/kube-public/configmaps/cluster-info", 200, fields{"kind": "ConfigMap", "apiVersion": "v1", "data": fields{"jws-kubeconfig-abcdef": "x"}})
	c, _ := f.client()
	if got, err := c.MissingForJoins(t.Context()); err != nil || len(got) != 1 || !strings.Contains(got[0].What, "has no kubeconfig") {
		t.Errorf("%+v, %v", got, err)
	}
}

// What is no document of its kind is of no more use than one that is missing.
func TestADocumentThatCannotBeRead(t *testing.T) {
	for name, text := range map[string]string{"kubeadm-config": "damaged", "kubelet-config": "kind: [", "cluster-info": "kind: Config\n"} {
		f := newFakeAPI(t)
		joinable(t, f, "", "")
		i := slices.IndexFunc(joinConfigs, func(c joinConfig) bool { return c.name == name })
		c := joinConfigs[i]
		f.on(fmt.Sprintf("GET /api/v1/namespaces/%s/configmaps/%s", c.namespace, c.name), 200, fields{"kind": "ConfigMap", "apiVersion": "v1", "data": fields{c.key: text}})
		client, _ := f.client()
		if got, err := client.MissingForJoins(t.Context()); err != nil || len(got) != 1 || !strings.Contains(got[0].What, name+" cannot be used") || got[0].Phase != c.phase {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestJoinSide(t *testing.T) {
	f := newFakeAPI(t)
	joinable(t, f, "", "")
	f.on("GET /apis/certificates.k8s.io/v1/certificatesigningrequests", 200, fields{"kind": "CertificateSigningRequestList", "apiVersion": "certificates.k8s.io/v1",
		"items": []fields{{"metadata": fields{"name": "a"}, "spec": fields{"signerName": "kubernetes.io/kube-apiserver-client-kubelet", "username": "system:bootstrap:abc123"}}}})
	f.on("GET "+secretsPath, 200, fields{"kind": "SecretList", "apiVersion": "v1", "items": []fields{{"metadata": fields{"name": "bootstrap-token-abc123"}}}})
	c, _ := f.client()
	s, err := c.JoinSide(t.Context())
	if err != nil || len(s.Needs) > 0 || len(s.CSRs) != 1 || s.CSRs[0].TokenID() != "abc123" || !slices.Equal(s.Tokens, []string{"abc123"}) {
		t.Errorf("%+v, %v", s, err)
	}
	if id := (CSR{Signer: "kubernetes.io/kubelet-serving", Requester: "system:bootstrap:abc123"}).TokenID(); id != "" {
		t.Errorf("a request to another signer is of token %q", id)
	}
}

func TestApproveCSR(t *testing.T) {
	const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests/a"
	f := newFakeAPI(t)
	c, rec := f.client()
	csr := fields{"kind": "CertificateSigningRequest", "apiVersion": "certificates.k8s.io/v1", "metadata": fields{"name": "a"}, "spec": fields{}}
	f.on("GET "+path, 200, csr)
	f.handle("PUT "+path+"/approval", func(w http.ResponseWriter, r *http.Request) {
		var sent certificatesv1.CertificateSigningRequest
		packed(t, r, f.body("PUT "+r.URL.Path), &sent)
		if len(sent.Status.Conditions) != 1 || sent.Status.Conditions[0].Type != certificatesv1.CertificateApproved || sent.Status.Conditions[0].Message != "why" {
			t.Errorf("%+v", sent.Status)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(csr)
	})
	if err := c.ApproveCSR(t.Context(), "a", "why"); err != nil {
		t.Error(err)
	}
	rec.want(t, "kube PUT "+path+"/approval")
	csr["status"] = fields{"conditions": []fields{{"type": "Denied", "status": "True"}}}
	f.on("GET "+path, 200, csr)
	if err := c.ApproveCSR(t.Context(), "a", "why"); err != nil || f.count("PUT "+path+"/approval") != 1 {
		t.Errorf("a denied one: %v", err)
	}
}

func TestControllerManager(t *testing.T) {
	const path = "GET /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"
	f := newFakeAPI(t)
	c, _ := f.client()
	f.on(path, 404, notFound())
	if holder, renewed, err := c.Leader(t.Context(), ControllerManager); holder != "" || !renewed.IsZero() || err != nil {
		t.Error(holder, renewed, err)
	}
	f.on(path, 200, fields{"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "spec": fields{"holderIdentity": "cp1_x", "renewTime": "2026-01-02T03:04:05.000000Z"}})
	holder, renewed, err := c.Leader(t.Context(), ControllerManager)
	if holder != "cp1_x" || !renewed.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) || err != nil {
		t.Error(holder, renewed, err)
	}
}

func TestEnsureBootstrapToken(t *testing.T) {
	f := newFakeAPI(t)
	f.on("POST "+secretsPath, 201, fields{"kind": "Secret", "apiVersion": "v1"})
	c, rec := f.client()
	if err := c.EnsureBootstrapToken(t.Context(), "abc123.0123456789abcdef", time.Hour, "join"); err != nil {
		t.Fatal(err)
	}
	var sent corev1.Secret
	packed(t, &http.Request{}, f.body("POST "+secretsPath), &sent)
	if sent.Name != "bootstrap-token-abc123" || string(sent.Data["token-secret"]) != "0123456789abcdef" {
		t.Errorf("%+v", sent)
	}
	rec.want(t, "kube POST "+secretsPath)
	if err := c.EnsureBootstrapToken(t.Context(), "no token", time.Hour, ""); err == nil {
		t.Error("what is no token was made")
	}
}

func TestRejectsNode(t *testing.T) {
	hooks := fields{"kind": "ValidatingWebhookConfigurationList", "apiVersion": "admissionregistration.k8s.io/v1",
		"items": []fields{{"metadata": fields{"name": "inventory"}, "webhooks": []fields{{"name": "nodes.example.com"}}}}}
	mutating := fields{"kind": "MutatingWebhookConfigurationList", "apiVersion": "admissionregistration.k8s.io/v1",
		"items": []fields{{"metadata": fields{"name": "labels"}, "webhooks": []fields{{"name": "mutate.example.com"}}}}}
	tests := []struct {
		code          int
		reason, says  string
		by            string
		silent, fails bool
	}{
		{201, "", "", "", false, false},
		{409, "AlreadyExists", `nodes "w1" already exists`, "", false, false},
		{400, "BadRequest", `admission webhook "nodes.example.com" denied the request: no tag`, "webhook nodes.example.com of ValidatingWebhookConfiguration inventory", false, false},
		{500, "InternalError", `Internal error occurred: failed calling webhook "mutate.example.com": connection refused`, "webhook mutate.example.com of MutatingWebhookConfiguration labels", true, false},
		{422, "Invalid", `nodes "w1" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, "policy p with binding b", false, false},
		{403, "Forbidden", `policy "m" denied request: no`, "policy m", false, false},
		{400, "BadRequest", `admission webhook "old.example.com" does not support dry run`, "", false, true},
		{503, "ServiceUnavailable", "the server is starting", "", false, true},
	}
	for _, tt := range tests {
		f := newFakeAPI(t)
		f.on("GET /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", 200, hooks)
		f.on("GET /apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", 200, mutating)
		f.handle("POST /api/v1/nodes", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("dryRun") != "All" || r.Header.Get("Impersonate-User") != "system:node:w1" || r.Header.Values("Impersonate-Group")[0] != "system:nodes" {
				t.Errorf("%s, %v", r.URL, r.Header)
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(tt.code)
			if tt.code == 201 {
				_, _ = io.WriteString(w, `{"kind":"Node","apiVersion":"v1","metadata":{"name":"w1"}}`)
				return
			}
			_ = json.NewEncoder(w).Encode(fields{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": tt.reason, "code": tt.code, "message": tt.says})
		})
		c, rec := f.client()
		got, err := c.RejectsNode(t.Context(), "w1")
		if (err != nil) != tt.fails || (got != nil) != (tt.by != "") || got != nil && (got.By != tt.by || got.Silent != tt.silent || got.Message != tt.says) {
			t.Errorf("%s: %+v, %v", tt.says, got, err)
		}
		rec.want(t) // a dry run changes nothing
	}
}
