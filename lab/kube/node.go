package kube

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

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

// WatchNode hands each state of one node to see, the present one first, until see says that it has seen enough. A node that is absent or
// deleted is nil. It returns an error when the watch ends before, as every watch does some time: the caller watches again.
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
