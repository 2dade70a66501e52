package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// The roles a Node has.
const (
	RoleControlPlane = "control-plane"
	RoleWorker       = "worker"
)

// ControlPlaneLabel is of control planes' Nodes, and the key of the taint that kubeadm gives them.
const ControlPlaneLabel = "node-role.kubernetes.io/control-plane"

// Node is what the cluster records about one of its machines.
type Node struct {
	Name           string
	Ready          bool
	ReadyStatus    string // True, False or Unknown; "" when it was never reported
	Reason         string // why it is not ready
	Pressure       string // what it is short of, such as "DiskPressure: …", several with "; " between
	IP             string // its internal address, as the kubelet reports it
	Role           string
	KubeletVersion string
	MachineID      string
	SystemUUID     string
	BootID         string
	UID            string
	PodCIDR        string
	Created        time.Time
	Heartbeat      time.Time // when its kubelet last told whether it is ready, to the second
	Unschedulable  bool
}

// Nodes lists the cluster's nodes.
func (c *Client) Nodes(ctx context.Context) ([]Node, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	list, err := c.set.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	nodes := make([]Node, 0, len(list.Items))
	for i := range list.Items {
		nodes = append(nodes, toNode(&list.Items[i]))
	}
	return nodes, nil
}

// DeleteNode deletes a node's record; one that is absent is fine.
func (c *Client) DeleteNode(ctx context.Context, name string) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	err := c.set.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete node %s: %w", name, err)
	}
	return nil
}

var pressures = []corev1.NodeConditionType{corev1.NodeDiskPressure, corev1.NodeMemoryPressure, corev1.NodePIDPressure}

func toNode(n *corev1.Node) Node {
	node := Node{
		Name:           n.Name,
		Role:           RoleWorker,
		KubeletVersion: n.Status.NodeInfo.KubeletVersion,
		MachineID:      n.Status.NodeInfo.MachineID,
		SystemUUID:     n.Status.NodeInfo.SystemUUID,
		BootID:         n.Status.NodeInfo.BootID,
		UID:            string(n.UID),
		PodCIDR:        n.Spec.PodCIDR,
		Created:        n.CreationTimestamp.Time,
		Unschedulable:  n.Spec.Unschedulable,
	}
	if _, ok := n.Labels[ControlPlaneLabel]; ok {
		node.Role = RoleControlPlane
	}
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			node.IP = a.Address
			break // the first is the primary family
		}
	}
	for _, cond := range n.Status.Conditions {
		if cond.Status == corev1.ConditionTrue && slices.Contains(pressures, cond.Type) {
			node.Pressure = strings.TrimPrefix(node.Pressure+"; "+because(string(cond.Type), cond.Message), "; ")
		}
	}
	ready := NodeCondition(n, corev1.NodeReady)
	node.Ready, node.ReadyStatus, node.Heartbeat = ready.Status == corev1.ConditionTrue, string(ready.Status), ready.LastHeartbeatTime.Time
	if !node.Ready {
		node.Reason = because(ready.Reason, ready.Message)
	}
	return node
}

// because joins a machine-readable reason and its message; either may be empty.
func because(reason, message string) string {
	switch {
	case message == "":
		return reason
	case reason == "":
		return message
	}
	return reason + ": " + message
}

// Node returns one node, nil when the cluster has none of that name. A kubelet's own credentials suffice for its own.
func (c *Client) Node(ctx context.Context, name string) (*Node, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	n, err := c.set.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get node %s: %w", name, err)
	}
	node := toNode(n)
	return &node, nil
}

// WatchNode calls see with each state of one node, beginning with the present one, until see returns that it has seen enough. An absent or
// deleted node is nil. It returns an error when the watch ends before, which happens to every watch: the caller watches again.
func (c *Client) WatchNode(ctx context.Context, name string, see func(*Node) (enough bool)) error {
	now, err := c.Node(ctx, name)
	if err != nil {
		return err
	}
	if see(now) {
		return nil
	}
	w, err := c.set.CoreV1().Nodes().Watch(ctx, metav1.SingleObject(metav1.ObjectMeta{Name: name}))
	if err != nil {
		return fmt.Errorf("watch node %s: %w", name, err)
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case e, ok := <-w.ResultChan():
			if !ok {
				return fmt.Errorf("watch node %s: %w", name, errWatchEnded)
			}
			if e.Type == watch.Error {
				return fmt.Errorf("watch node %s: %w", name, apierrors.FromObject(e.Object))
			}
			if see(watched(e)) {
				return nil
			}
		}
	}
}

var errWatchEnded = errors.New("the server ended the watch")

// watched is the node that an event is about, nil when it is gone.
func watched(e watch.Event) *Node {
	n, ok := e.Object.(*corev1.Node)
	if !ok || e.Type == watch.Deleted {
		return nil
	}
	node := toNode(n)
	return &node
}

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
