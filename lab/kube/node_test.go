package kube

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func nodeObject(name, ready string) fields {
	return fields{"kind": "Node", "apiVersion": "v1", "metadata": fields{"name": name},
		"status": fields{"conditions": []fields{{"type": "Ready", "status": ready}}, "nodeInfo": fields{"machineID": "m1"}}}
}

func TestNode(t *testing.T) {
	f := newFakeAPI(t)
	f.on("GET /api/v1/nodes/w1", 200, nodeObject("w1", "True"))
	f.on("GET /api/v1/nodes/w2", 404, notFound())
	f.on("GET /api/v1/nodes/w3", 403, fields{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403})
	c, rec := f.client()
	if n, err := c.Node(t.Context(), "w1"); err != nil || n == nil || !n.Ready || n.MachineID != "m1" {
		t.Errorf("%+v, %v", n, err)
	}
	if n, err := c.Node(t.Context(), "w2"); err != nil || n != nil {
		t.Errorf("absent: %+v, %v", n, err)
	}
	if n, err := c.Node(t.Context(), "w3"); err == nil || n != nil {
		t.Errorf("forbidden: %+v, %v", n, err)
	}
	rec.want(t)
}

// watching answers a watch of nodes with these events, and then stays open until the asker goes.
func (f *fakeAPI) watching(ends bool, events ...fields) {
	f.handle("GET /api/v1/nodes", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" || r.URL.Query().Get("fieldSelector") != "metadata.name=w1" {
			f.t.Errorf("it asks for %s", r.URL.RawQuery)
		}
		w.Header().Set("Content-Type", "application/json")
		for _, e := range events {
			_ = json.NewEncoder(w).Encode(e)
			w.(http.Flusher).Flush()
		}
		if !ends {
			<-r.Context().Done()
		}
	})
}

func TestWatchNode(t *testing.T) {
	f := newFakeAPI(t)
	f.on("GET /api/v1/nodes/w1", 404, notFound())
	f.watching(false, fields{"type": "ADDED", "object": nodeObject("w1", "False")}, fields{"type": "DELETED", "object": nodeObject("w1", "False")},
		fields{"type": "ADDED", "object": nodeObject("w1", "False")}, fields{"type": "MODIFIED", "object": nodeObject("w1", "True")})
	c, rec := f.client()
	var seen []string
	err := c.WatchNode(t.Context(), "w1", func(n *Node) bool {
		switch {
		case n == nil:
			seen = append(seen, "none")
		case n.Ready:
			seen = append(seen, "ready")
		default:
			seen = append(seen, "there")
		}
		return n != nil && n.Ready
	})
	if want := []string{"none", "there", "none", "there", "ready"}; err != nil || !slices.Equal(seen, want) {
		t.Errorf("%q, %v", seen, err)
	}
	rec.want(t)
}

func TestWatchNodeEnds(t *testing.T) {
	never := func(*Node) bool { return false }
	tests := []struct {
		name, want string
		events     []fields
	}{
		{"with the server's end", "the server ended the watch", nil},
		{"with an error of the server's", "too old", []fields{{"type": "ERROR", "object": fields{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "too old", "code": 410}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFakeAPI(t)
			f.on("GET /api/v1/nodes/w1", 200, nodeObject("w1", "False"))
			f.watching(true, tt.events...)
			c, _ := f.client()
			begin := time.Now()
			err := c.WatchNode(t.Context(), "w1", never)
			if err == nil || !strings.Contains(err.Error(), tt.want) || time.Since(begin) > 3*time.Second {
				t.Errorf("after %s: %v", time.Since(begin), err)
			}
		})
	}
	f := newFakeAPI(t)
	f.on("GET /api/v1/nodes/w1", 200, nodeObject("w1", "True"))
	c, _ := f.client()
	if err := c.WatchNode(t.Context(), "w1", func(n *Node) bool { return n.Ready }); err != nil || f.count("GET /api/v1/nodes") != 0 {
		t.Errorf("what holds already is not watched: %v", err)
	}
}
