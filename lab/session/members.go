package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"k8slab/config"
	"k8slab/lab/etcd"
	"k8slab/lab/kube"
)

// OwnsPeer tells whether the etcd member is the node's, by its peer URL.
func OwnsPeer(n config.Node, m etcd.Member) bool {
	return slices.Contains(m.PeerURLs, PeerURL(n))
}

// PeerURL is the peer URL of the node's etcd member.
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

// EveryControlPlane lists the control planes of cluster.yaml, also those that are to be onboarded later.
func (s *Session) EveryControlPlane() []config.Node {
	return slices.DeleteFunc(slices.Clone(s.Cluster.Nodes), func(n config.Node) bool { return n.Role != config.ControlPlane })
}

// NamesOf lists the nodes' names in one line.
func NamesOf(nodes []config.Node) string {
	return strings.Join(config.Names(nodes), ", ")
}

// restoredFile names the control plane on which etcd was restored. It exists until `up` has reset the other control planes, because nothing
// on their machines shows that they are outdated: they have the same CA, and their etcd may even have a quorum.
const restoredFile = "restored"

// IsRestored tells whether the node's etcd is the one that counts.
func (s *Session) IsRestored(n config.Node) bool {
	name, err := os.ReadFile(s.Path(restoredFile))
	return err == nil && n.Name == strings.TrimSpace(string(name))
}

// RestoredFirst moves the restored control plane to the front.
func (s *Session) RestoredFirst(nodes []config.Node) []config.Node {
	i := slices.IndexFunc(nodes, s.IsRestored)
	if i <= 0 {
		return nodes
	}
	return slices.Concat(nodes[i:i+1], nodes[:i], nodes[i+1:])
}

// Restored notes that the node's etcd has replaced all others'.
func (s *Session) Restored(n config.Node) error { return s.Write(restoredFile, []byte(n.Name)) }

// ForgetRestore notes that no outdated control plane is left.
func (s *Session) ForgetRestore() error {
	err := os.Remove(s.Path(restoredFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
