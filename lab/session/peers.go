package session

import (
	"fmt"
	"slices"
	"strings"

	"k8slab/config"
	"k8slab/lab/etcd"
	"k8slab/lab/kube"
)

// OwnsPeer tells whether the etcd member has the node's address.
func OwnsPeer(n config.Node, m etcd.Member) bool {
	return slices.Contains(m.PeerURLs, PeerURL(n))
}

// PeerURL is where the node's etcd member is for the others.
func PeerURL(n config.Node) string { return fmt.Sprintf("https://%s:2380", n.IP) }

// FindNode is the Node of the name, nil for none.
func FindNode(nodes []kube.Node, name string) *kube.Node {
	for i := range nodes {
		if nodes[i].Name == name {
			return &nodes[i]
		}
	}
	return nil
}

// NamesOf lists the nodes' names in one line.
func NamesOf(nodes []config.Node) string {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return strings.Join(names, ", ")
}
