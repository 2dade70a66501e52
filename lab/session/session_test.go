package session_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"k8slab/config"
	"k8slab/lab/labtest"
	"k8slab/lab/session"
)

func TestForEachNode(t *testing.T) {
	nodes := labtest.Session(t, labtest.Three).Cluster.Members()
	var running atomic.Int32
	all := make(chan struct{})
	err := session.ForEachNode(nodes, func(n config.Node) error {
		if int(running.Add(1)) == len(nodes) {
			close(all)
		}
		select {
		case <-all:
		case <-time.After(5 * time.Second):
			return errors.New("the nodes wait for each other")
		}
		if n.Role == config.ControlPlane {
			return fmt.Errorf("%s broke", n.Name)
		}
		return nil
	})
	if err == nil || err.Error() != "cp1 broke\ncp2 broke\ncp3 broke" {
		t.Errorf("got %v, want every error in the order of cluster.yaml", err)
	}
	if err := session.ForEachNode(nodes, func(config.Node) error { return nil }); err != nil {
		t.Errorf("no failure: %v", err)
	}
	if err := session.ForEachNode(nil, func(config.Node) error { return errors.New("x") }); err != nil {
		t.Errorf("no nodes: %v", err)
	}
}
