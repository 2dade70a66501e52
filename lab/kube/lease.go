package kube

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// leaseNamespace is where kubelets renew the Leases of their Nodes, by default every 10 s.
const leaseNamespace = "kube-node-lease"

// NodeLeaseRenewed is when a kubelet last renewed the Lease of the Node, by its machine's clock; the zero time when there is none.
func (c *Client) NodeLeaseRenewed(ctx context.Context, name string) (time.Time, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	lease, err := c.set.CoordinationV1().Leases(leaseNamespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("get lease of node %s: %w", name, err)
	}
	if lease.Spec.RenewTime == nil {
		return time.Time{}, nil
	}
	return lease.Spec.RenewTime.Time, nil
}
