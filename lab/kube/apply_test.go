package kube

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
)

const twoObjects = `# a comment alone
---
apiVersion: v1
kind: Namespace
metadata:
  name: net
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: net, annotations: {keep: "me"}}
spec: {minReadySeconds: 5}
---
`

const (
	nsPath = "/api/v1/namespaces/net"
	dsPath = "/apis/apps/v1/namespaces/net/daemonsets/agent"
)

// serveKinds tells the fake which kinds it has.
func serveKinds(f *fakeAPI) {
	f.on("GET /api/v1", 200, fields{"kind": "APIResourceList", "groupVersion": "v1", "resources": []fields{
		{"name": "namespaces/status", "kind": "Namespace"},
		{"name": "namespaces", "kind": "Namespace"},
		{"name": "configmaps", "kind": "ConfigMap", "namespaced": true}}})
	f.on("GET /apis/apps/v1", 200, fields{"kind": "APIResourceList", "groupVersion": "apps/v1", "resources": []fields{
		{"name": "daemonsets", "kind": "DaemonSet", "namespaced": true}}})
}

// echo stores an applied object and answers with it from then on.
func echo(f *fakeAPI, path string) {
	f.handle("PATCH "+path, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("fieldManager") != "labctl" || q.Get("force") != "true" || r.Header.Get("Content-Type") != "application/apply-patch+yaml" {
			f.t.Errorf("patch %s: query %s, content %s", path, r.URL.RawQuery, r.Header.Get("Content-Type"))
		}
		var applied fields
		if err := json.Unmarshal(f.body("PATCH "+path), &applied); err != nil {
			f.t.Error(err)
		}
		f.on("GET "+path, 200, applied)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(applied)
	})
}

func TestApplyThenUpToDate(t *testing.T) {
	f := newFakeAPI(t)
	serveKinds(f)
	echo(f, nsPath)
	echo(f, dsPath)
	f.on("GET "+nsPath, 404, notFound())
	c, rec := f.client()

	wantUpToDate(t, c, twoObjects, false)
	rec.want(t)
	if err := c.Apply(t.Context(), []byte(twoObjects)); err != nil {
		t.Fatal(err)
	}
	rec.want(t, "kube PATCH "+nsPath, "kube PATCH "+dsPath)

	wantUpToDate(t, c, twoObjects, true)
	reordered := strings.Replace(twoObjects, "kind: Namespace\nmetadata:\n  name: net", "metadata: {name: net} # same\nkind: Namespace", 1)
	wantUpToDate(t, c, reordered, true)
	wantUpToDate(t, c, strings.Replace(twoObjects, "Seconds: 5", "Seconds: 6", 1), false)
	rec.want(t, "kube PATCH "+nsPath, "kube PATCH "+dsPath)

	if n := f.count("GET /api/v1"); n != 1 {
		t.Errorf("asked for the kinds of v1 %d times", n)
	}
	if body := string(f.body("PATCH " + dsPath)); !strings.Contains(body, `"keep":"me"`) || !strings.Contains(body, `"minReadySeconds":5`) {
		t.Errorf("applied %s", body)
	}
}

func wantUpToDate(t *testing.T, c *Client, manifest string, want bool) {
	t.Helper()
	if got, err := c.UpToDate(t.Context(), []byte(manifest)); got != want || err != nil {
		t.Errorf("up to date: %v, %v, want %v", got, err, want)
	}
}

func TestApplyErrorNamesObject(t *testing.T) {
	f := newFakeAPI(t)
	serveKinds(f)
	echo(f, nsPath)
	f.on("PATCH "+dsPath, 422, fields{"kind": "Status", "status": "Failure", "reason": "Invalid", "message": "bad spec", "code": 422})
	c, _ := f.client()
	err := c.Apply(t.Context(), []byte(twoObjects))
	if err == nil || err.Error() != "apply DaemonSet net/agent: bad spec" {
		t.Errorf("error %v", err)
	}
}

func TestDefaultNamespace(t *testing.T) {
	f := newFakeAPI(t)
	serveKinds(f)
	echo(f, "/api/v1/namespaces/default/configmaps/c")
	c, _ := f.client()
	list := "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n"
	if err := c.Apply(t.Context(), []byte(list)); err != nil {
		t.Fatal(err)
	}
	wantUpToDate(t, c, list, true)
}

func TestKindNotServedYet(t *testing.T) {
	const custom = "{apiVersion: example.org/v1, kind: Pool, metadata: {name: p}}"
	f := newFakeAPI(t)
	f.on("GET /apis/example.org/v1", 404, notFound())
	c, rec := f.client()
	wantUpToDate(t, c, custom, false)
	if err := c.Apply(t.Context(), []byte(custom)); err == nil || !strings.Contains(err.Error(), "apply Pool p: no matches for kind") {
		t.Errorf("error %v", err)
	}
	rec.want(t)

	f.on("GET /apis/example.org/v1", 200, fields{"kind": "APIResourceList", "resources": []fields{{"name": "pools", "kind": "Pool"}}})
	echo(f, "/apis/example.org/v1/pools/p")
	if err := c.Apply(t.Context(), []byte(custom)); err != nil {
		t.Error(err)
	}
}

func TestUpToDateWhileDeleting(t *testing.T) {
	const ns = "{apiVersion: v1, kind: Namespace, metadata: {name: net}}"
	f := newFakeAPI(t)
	serveKinds(f)
	objects, err := parseManifest([]byte(ns))
	if err != nil {
		t.Fatal(err)
	}
	f.on("GET "+nsPath, 200, fields{"apiVersion": "v1", "kind": "Namespace", "metadata": fields{"name": "net",
		"deletionTimestamp": "2026-01-02T03:04:05Z", "annotations": fields{hashAnnotation: objects[0].hash}}})
	c, _ := f.client()
	wantUpToDate(t, c, ns, false)
}

func TestParseManifestRefuses(t *testing.T) {
	tests := map[string]string{
		"":                                  "holds no objects",
		"# nothing\n---\n":                  "holds no objects",
		"kind: ConfigMap":                   "must have apiVersion",
		"{apiVersion: v1, kind: ConfigMap}": "must have apiVersion, kind and name",
		"a: [":                              "parse document 1",
		"apiVersion: v1\nkind: A\nkind: B\nmetadata: {name: x}":                               "already set",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}\n---\njust text\n":            "parse document 2",
		"{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Secret, metadata: {}}]}": "must have apiVersion",
	}
	for manifest, want := range tests {
		if _, err := parseManifest([]byte(manifest)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parse %q: error %v, want %q", manifest, err, want)
		}
	}
}

// A change that is refused does not leave this computer; a question does.
func TestRefusedChange(t *testing.T) {
	f := newFakeAPI(t)
	serveKinds(f)
	echo(f, nsPath)
	f.on("GET "+nsPath, 404, notFound())
	c, rec := f.client()
	rec.refuse = errors.New("this command only looks")
	if err := c.Apply(t.Context(), []byte(twoObjects)); !errors.Is(err, rec.refuse) {
		t.Error(err)
	}
	rec.want(t, "kube PATCH "+nsPath)
	if f.count("PATCH "+nsPath) > 0 {
		t.Error("it was sent")
	}
	wantUpToDate(t, c, twoObjects, false)
}
