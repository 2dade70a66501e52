package kube

import (
	"strings"
	"testing"
	"time"
)

func TestReady(t *testing.T) {
	tests := []struct {
		name string
		code int
		body string
		want string // empty for no error
	}{
		{"ready", 200, "[+]ping ok\nreadyz check passed\n", ""},
		{"checks fail", 500, "[+]ping ok\n[-]etcd failed: reason withheld\n[-]informer-sync failed: reason withheld\nreadyz check failed\n",
			"api server is not ready: etcd failed: reason withheld, informer-sync failed: reason withheld"},
		{"forbidden", 403, "no", "api server is not ready: it answered 403"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFakeAPI(t)
			f.on("GET /readyz", tt.code, tt.body)
			c, rec := f.client()
			err := c.Ready(t.Context())
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("error %v", err)
			case tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want)):
				t.Errorf("error %v, want %q", err, tt.want)
			}
			rec.want(t)
		})
	}
}

func TestNodes(t *testing.T) {
	f := newFakeAPI(t)
	f.on("GET /api/v1/nodes", 200, fields{"kind": "NodeList", "apiVersion": "v1", "items": []fields{
		{
			"metadata": fields{"name": "cp1", "uid": "u1", "creationTimestamp": "2026-01-02T03:04:05Z",
				"labels": fields{"node-role.kubernetes.io/control-plane": ""}},
			"spec": fields{"podCIDR": "10.244.0.0/24"},
			"status": fields{
				"conditions": []fields{{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}},
				"addresses":  []fields{{"type": "Hostname", "address": "cp1"}, {"type": "InternalIP", "address": "10.0.0.1"}, {"type": "InternalIP", "address": "fd00::1"}},
				"nodeInfo":   fields{"kubeletVersion": "v1.36.3", "machineID": "m1", "systemUUID": "s1", "bootID": "b1"},
			},
		},
		{
			"metadata": fields{"name": "w1"},
			"spec":     fields{"unschedulable": true},
			"status": fields{"conditions": []fields{
				{"type": "DiskPressure", "status": "True", "message": "full"}, {"type": "PIDPressure", "status": "True"}, {"type": "NetworkUnavailable", "status": "True"},
				{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}}},
		},
		{"metadata": fields{"name": "w2"}},
	}})
	c, rec := f.client()
	nodes, err := c.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []Node{
		{Name: "cp1", Ready: true, ReadyStatus: "True", IP: "10.0.0.1", Role: RoleControlPlane, KubeletVersion: "v1.36.3", MachineID: "m1",
			SystemUUID: "s1", BootID: "b1", UID: "u1", PodCIDR: "10.244.0.0/24", Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		{Name: "w1", Role: RoleWorker, Unschedulable: true, ReadyStatus: "Unknown", Pressure: "DiskPressure: full; PIDPressure", Reason: "NodeStatusUnknown: Kubelet stopped posting node status."},
		{Name: "w2", Role: RoleWorker, Reason: "no Ready condition reported"},
	}
	if len(nodes) != len(want) {
		t.Fatalf("%d nodes, want %d", len(nodes), len(want))
	}
	for i := range want {
		nodes[i].Created = nodes[i].Created.UTC()
		if nodes[i] != want[i] {
			t.Errorf("node %d:\n got %+v\nwant %+v", i, nodes[i], want[i])
		}
	}
	rec.want(t)
}

func TestDeleteNode(t *testing.T) {
	f := newFakeAPI(t)
	f.on("DELETE /api/v1/nodes/here", 200, fields{"kind": "Status", "status": "Success"})
	f.on("DELETE /api/v1/nodes/gone", 404, notFound())
	f.on("DELETE /api/v1/nodes/kept", 403, fields{"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403})
	c, rec := f.client()
	for name, ok := range map[string]bool{"here": true, "gone": true, "kept": false} {
		if err := c.DeleteNode(t.Context(), name); (err == nil) != ok {
			t.Errorf("delete %s: error %v", name, err)
		}
	}
	if len(rec.what) != 3 || !strings.HasPrefix(rec.what[0], "kube DELETE /api/v1/nodes/") {
		t.Errorf("reported changes %q", rec.what)
	}
}
