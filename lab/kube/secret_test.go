package kube

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

func TestEnsureSecret(t *testing.T) {
	const one, all = "/api/v1/namespaces/gitops/secrets/git-push", "/api/v1/namespaces/gitops/secrets"
	live := func(data fields) fields {
		return fields{"kind": "Secret", "apiVersion": "v1", "data": data,
			"metadata": fields{"name": "git-push", "namespace": "gitops", "resourceVersion": "7"}}
	}
	want := map[string][]byte{"password": []byte("secret")} // c2VjcmV0 in base64
	tests := []struct {
		name   string
		code   int
		answer fields
		change string // the request that writes
	}{
		{"absent", 404, notFound(), "POST " + all},
		{"as it should be", 200, live(fields{"password": "c2VjcmV0"}), ""},
		{"another value", 200, live(fields{"password": "b2xk"}), "PUT " + one},
		{"one more key", 200, live(fields{"password": "c2VjcmV0", "user": "b2xk"}), "PUT " + one},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFakeAPI(t)
			f.on("GET "+one, tt.code, tt.answer)
			f.on("POST "+all, 201, live(nil))
			f.on("PUT "+one, 200, live(nil))
			c, rec := f.client()
			if err := c.EnsureSecret(t.Context(), "gitops", "git-push", want); err != nil {
				t.Fatal(err)
			}
			if tt.change == "" {
				rec.want(t)
				return
			}
			rec.want(t, "kube "+tt.change)
			var sent corev1.Secret
			if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(f.body(tt.change), nil, &sent); err != nil {
				t.Fatal(err)
			}
			if len(sent.Data) != 1 || string(sent.Data["password"]) != "secret" || len(sent.Annotations) != 0 {
				t.Errorf("sent %v", sent)
			}
		})
	}
}

func TestEnsureSecretError(t *testing.T) {
	f := newFakeAPI(t)
	f.on("GET /api/v1/namespaces/gitops/secrets/git-push", 403, fields{
		"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": "not for you", "code": 403})
	c, rec := f.client()
	err := c.EnsureSecret(t.Context(), "gitops", "git-push", map[string][]byte{"password": []byte("hidden")})
	if err == nil || !strings.HasPrefix(err.Error(), "write secret gitops/git-push: ") || strings.Contains(err.Error(), "hidden") {
		t.Errorf("error %v", err)
	}
	rec.want(t)
}
