package session

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"k8slab/config"
)

// restoredFile names, in the lab's state, the control plane whose etcd has replaced all others'. It is there from a restore until `up` has
// reset those, because nothing on their machines tells that they are outdated: they have the same CA, and their etcd may even have a
// quorum of its own.
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
