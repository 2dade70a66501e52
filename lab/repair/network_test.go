package repair

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8slab/lab/cluster"
	"k8slab/lab/kube"
	"k8slab/lab/labtest"
	"k8slab/lab/session"
	"k8slab/lab/symptom"
)

type fields = map[string]any

// calico is an API server with its pods, of which a new one follows each that is deleted.
type calico struct {
	mu   sync.Mutex
	pods []any
	gone []string
}

func calicoPod(name, node string) fields {
	return fields{
		"metadata": fields{"namespace": "kube-system", "name": name}, "spec": fields{"nodeName": node},
		"status": fields{"phase": "Running", "conditions": []any{fields{"type": "Ready", "status": "True"}}},
	}
}

func (c *calico) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := fields{"kind": "PodList", "apiVersion": "v1", "items": []any{}}
	switch {
	case r.Method == http.MethodDelete:
		c.gone = append(c.gone, path.Base(r.URL.Path))
		c.pods = append(c.pods, calicoPod("calico-new", "w1"))
		answer = fields{"kind": "Status", "apiVersion": "v1", "status": "Success"}
	case strings.Contains(r.URL.Query().Get("labelSelector"), "calico-node"):
		answer["items"] = c.pods
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// client asks the API server.
func (c *calico) client(t *testing.T) *kube.Client {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	k, err := kube.New([]byte(`{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: a, cluster: {server: "`+server.URL+`"}}],
		contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a, user: {}}]}`), new(net.Dialer).DialContext, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

// Where labnode has no configuration to put back, the network add-on's pod is deleted, and the next one writes it: once, on that node, and not
// on one on which something else is to be done first.
func TestConfigured(t *testing.T) {
	left := Repaired{Node: "w1", Symptom: string(symptom.CNINotInitialized), Left: "restart the network add-on's pod of this node"}
	for _, tt := range []struct {
		name   string
		dryRun bool
		found  []Repaired
		says   string // of what is found in the end
		gone   []string
	}{
		{"left to the add-on", false, []Repaired{left}, "deleted kube-system/calico-1; the new pod writes it", []string{"calico-1"}},
		{"a dry run", true, []Repaired{left}, "", nil},
		{"something was done on it", false, []Repaired{left, {Node: "w1", Symptom: "swap-enabled", Did: "turned it off"}}, "", nil},
	} {
		api := &calico{pods: []any{calicoPod("calico-1", "w1"), calicoPod("calico-2", "w2")}}
		s := labtest.Session(t, labtest.Small)
		r := &repairRun{
			Run: &cluster.Run{Session: s, Admin: &session.Admin{Kube: api.client(t)}}, step: s.Events.Start("", "repair", 0),
			before: []symptom.Finding{{Symptom: symptom.CNINotInitialized, Node: "w1", Level: symptom.Fail}}, found: slices.Clone(tt.found),
		}
		r.DryRun = tt.dryRun
		if err := r.configured(t.Context()); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if !slices.Equal(api.gone, tt.gone) {
			t.Errorf("%s: deleted %q", tt.name, api.gone)
		}
		if last := r.found[len(r.found)-1]; last.Did != tt.says && tt.says != "" || tt.dryRun && last.Would == "" {
			t.Errorf("%s: found %+v", tt.name, r.found)
		}
		if tt.says != "" && len(r.found) != 1 {
			t.Errorf("%s: what the node left is still there: %+v", tt.name, r.found)
		}
	}
}
