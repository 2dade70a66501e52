package kube

import (
	"testing"
	"time"
)

func TestNodeLeaseRenewed(t *testing.T) {
	f := newFakeAPI(t)
	lease := func(spec fields) fields {
		return fields{"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": fields{"name": "w1"}, "spec": spec}
	}
	const leases = "GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/"
	f.on(leases+"w1", 200, lease(fields{"renewTime": "2026-01-02T03:04:05.678901Z"}))
	f.on(leases+"new", 200, lease(fields{}))
	f.on(leases+"none", 404, notFound())
	f.on(leases+"hidden", 403, fields{"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403})
	c, rec := f.client()
	for name, want := range map[string]time.Time{
		"w1": time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC), "new": {}, "none": {},
	} {
		if got, err := c.NodeLeaseRenewed(t.Context(), name); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, want)
		}
	}
	// What cannot be read is not the same as what is not there.
	if _, err := c.NodeLeaseRenewed(t.Context(), "hidden"); err == nil {
		t.Error("no error for a lease that may not be read")
	}
	rec.want(t)
}
