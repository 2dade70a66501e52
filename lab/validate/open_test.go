package validate

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		c, err := Open(file, context, "labnode", func(what string) { changes = append(changes, what) })
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
