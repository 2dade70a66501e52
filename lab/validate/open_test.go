package validate

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
)

func TestOpen(t *testing.T) {
	var asked []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: one, clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}],
users: [{name: a, user: {token: first}}, {name: b, user: {token: second}}],
contexts: [{name: one, context: {cluster: c, user: a}}, {name: two, context: {cluster: c, user: b}}]}`, server.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var changes []string
	for _, context := range []string{"", "two"} {
		c, err := Open(file, context, "labnode", func(what string) error { changes = append(changes, what); return nil })
		if err != nil || c.Image != "labnode" {
			t.Fatal(c, err)
		}
		if err := c.Kube.CoreV1().Namespaces().Delete(t.Context(), "n", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		_, _ = c.Dynamic.Resource(longhornNodes).List(t.Context(), metav1.ListOptions{})
	}
	want := []string{"Bearer first", "Bearer first", "Bearer second", "Bearer second"}
	if !slices.Equal(asked, want) || !slices.Equal(changes, slices.Repeat([]string{"kube DELETE /api/v1/namespaces/n"}, 2)) {
		t.Errorf("%q %q", asked, changes)
	}
	for _, tt := range [][3]string{{file, "three", `"three" does not exist`}, {file + ".none", "", "no such file"}} {
		if _, err := Open(tt[0], tt[1], "", nil); err == nil || !strings.Contains(err.Error(), tt[2]) {
			t.Errorf("%v: %v", tt, err)
		}
	}
}

// A server says what UID it likes. What vouches for it makes the difference, and its address none.
func TestIdentity(t *testing.T) {
	uid := "7d8e2c1a-0000-4000-8000-000000000001"
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":%q}}`, uid)
	})
	server, moved := httptest.NewTLSServer(handler), httptest.NewTLSServer(handler) // both have httptest's certificate
	defer server.Close()
	defer moved.Close()
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	other, _, err := certutil.GenerateSelfSignedCertKey("other", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	identity := func(url, cluster string) (string, error) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "kubeconfig")
		text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q, %s}}], contexts: [{name: c, context: {cluster: c}}]}`, url, cluster)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Open(file, "", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.Identity(t.Context())
	}
	with := func(ca ...[]byte) string {
		return fmt.Sprintf("certificate-authority-data: %s", base64.StdEncoding.EncodeToString(slices.Concat(ca...)))
	}
	const unchecked = "insecure-skip-tls-verify: true"
	first, err := identity(server.URL, with(own))
	if err != nil || first == uid {
		t.Fatal(first, err)
	}
	for _, tt := range []struct {
		name, url, cluster string
		same               bool
	}{
		{"another address", moved.URL, with(own), true},
		{"another authority beside it", server.URL, with(other, own), false},
		{"not checked", server.URL, unchecked, false},
	} {
		if got, err := identity(tt.url, tt.cluster); err != nil || (got == first) != tt.same {
			t.Errorf("%s: %s, %v; the first is %s", tt.name, got, err, first)
		}
	}
	two, err := identity(server.URL, with(other, own))
	turned, err2 := identity(server.URL, with(own, other))
	if two != turned || err != nil || err2 != nil {
		t.Errorf("two authorities: %s, %s, %v, %v", two, turned, err, err2)
	}
	here, err := identity(server.URL, unchecked)
	there, err2 := identity(moved.URL, unchecked)
	if here == there || err != nil || err2 != nil {
		t.Errorf("unchecked ones at two addresses: %s, %s, %v, %v", here, there, err, err2)
	}
	uid = "../../../tmp/x"
	if got, err := identity(server.URL, with(own)); err == nil || !strings.Contains(err.Error(), "is not a UUID") {
		t.Errorf("%s, %v", got, err)
	}
}
