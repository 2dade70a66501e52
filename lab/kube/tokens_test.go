package kube

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

const secretsPath = "/api/v1/namespaces/kube-system/secrets"

func TestNewTokenFormat(t *testing.T) {
	valid := regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)
	seen := map[string]bool{}
	for range 200 {
		id, secret := NewToken()
		token := id + "." + secret
		if !valid.MatchString(token) || seen[token] {
			t.Fatalf("token %q is malformed or repeated", token)
		}
		seen[token] = true
	}
}

func TestCreateBootstrapToken(t *testing.T) {
	f := newFakeAPI(t)
	f.on("POST "+secretsPath, 201, fields{"kind": "Secret", "apiVersion": "v1"})
	c, rec := f.client()
	token, err := c.CreateBootstrapToken(t.Context(), time.Hour, "join")
	if err != nil {
		t.Fatal(err)
	}
	rec.want(t, "kube POST "+secretsPath)
	id, secret, _ := strings.Cut(token, ".")

	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(f.body("POST "+secretsPath), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := decoded.(*corev1.Secret)
	if got.Name != "bootstrap-token-"+id || got.Type != "bootstrap.kubernetes.io/token" {
		t.Errorf("secret %s of type %s", got.Name, got.Type)
	}
	expires, err := time.Parse(time.RFC3339, string(got.Data["expiration"]))
	if left := time.Until(expires); err != nil || left < 59*time.Minute || left > time.Hour {
		t.Errorf("expires %s (%v)", got.Data["expiration"], err)
	}
	delete(got.Data, "expiration")
	want := map[string]string{
		"token-id": id, "token-secret": secret, "description": "join",
		"usage-bootstrap-signing": "true", "usage-bootstrap-authentication": "true",
		"auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
	}
	if len(got.Data) != len(want) {
		t.Errorf("keys %v", got.Data)
	}
	for k, v := range want {
		if string(got.Data[k]) != v {
			t.Errorf("%s: %q, want %q", k, got.Data[k], v)
		}
	}
	if _, err := c.CreateBootstrapToken(t.Context(), 0, ""); err == nil {
		t.Error("a token that never lives was made")
	}
}

func TestListAndDeleteBootstrapTokens(t *testing.T) {
	f := newFakeAPI(t)
	f.on("GET "+secretsPath, 200, fields{"kind": "SecretList", "apiVersion": "v1", "items": []fields{
		{"metadata": fields{"name": "bootstrap-token-abc123"}}, {"metadata": fields{"name": "other"}}}})
	f.on("DELETE "+secretsPath+"/bootstrap-token-abc123", 200, fields{"kind": "Status", "status": "Success"})
	f.on("DELETE "+secretsPath+"/bootstrap-token-gone00", 404, notFound())
	c, rec := f.client()
	if ids, err := c.BootstrapTokens(t.Context(), ""); err != nil || !slices.Equal(ids, []string{"abc123"}) {
		t.Errorf("tokens %v, error %v", ids, err)
	}
	rec.want(t)
	for _, token := range []string{"abc123", "abc123.0123456789abcdef", "gone00"} {
		if err := c.DeleteBootstrapToken(t.Context(), token); err != nil {
			t.Error(err)
		}
	}
	for _, token := range []string{"", "../x", "ABC123", "abc123.short"} {
		err := c.DeleteBootstrapToken(t.Context(), token)
		if err == nil || token != "" && strings.Contains(err.Error(), token) {
			t.Errorf("delete %q: error %v", token, err)
		}
	}
}

func TestClusterInfoHasJWS(t *testing.T) {
	const path = "GET /api/v1/namespaces/kube-public/configmaps/cluster-info"
	f := newFakeAPI(t)
	c, rec := f.client()
	check := func(token string, want bool) {
		t.Helper()
		if got, err := c.ClusterInfoHasJWS(t.Context(), token); got != want || err != nil {
			t.Errorf("signed with %s: %v, %v, want %v", token, got, err, want)
		}
	}
	f.on(path, 404, notFound())
	check("abc123", false)
	f.on(path, 200, fields{"kind": "ConfigMap", "apiVersion": "v1", "data": fields{"kubeconfig": "x", "jws-kubeconfig-abc123": "sig"}})
	check("abc123", true)
	check("abc123.0123456789abcdef", true)
	check("zzz999", false)
	rec.want(t)
}

// The virtual IP moved when the token was made and the answer was not sent yet: the request is repeated, and finds its own token.
func TestCreateBootstrapTokenOverALostConnection(t *testing.T) {
	f := newFakeAPI(t)
	request := "POST " + secretsPath
	f.on(request, 409, fields{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "AlreadyExists", "code": 409})
	exists, asked := f.answers[request], 0
	f.answers[request] = func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked == 1 {
			panic(http.ErrAbortHandler)
		}
		exists(w, r)
	}
	c, rec := f.client()
	token, err := c.CreateBootstrapToken(t.Context(), time.Hour, "join")
	if err != nil || asked != 2 {
		t.Fatalf("asked %d times: %v", asked, err)
	}
	rec.want(t, "kube "+request)
	if id, _, _ := strings.Cut(token, "."); !strings.Contains(string(f.body(request)), "bootstrap-token-"+id) {
		t.Errorf("token %s was not the one that is there", id)
	}
}
