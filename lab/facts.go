package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8slab/config"
	"k8slab/lab/join"
	"k8slab/lab/node"
)

// readFacts asks a node what it is.
func readFacts(ctx context.Context, n *node.Node) (join.Facts, error) {
	out, err := n.Read(ctx, labnode, "facts")
	if err != nil {
		return join.Facts{}, err
	}
	var f join.Facts
	if err := json.Unmarshal([]byte(out), &f); err != nil {
		return f, fmt.Errorf("%s: read its facts: %w", n.Name(), err)
	}
	return f, nil
}

// facts reads what the nodes are. The error tells of those that do not answer; the others' facts are there all the same.
func (l *Lab) facts(ctx context.Context, members []config.Node) (map[string]join.Facts, error) {
	all := make([]join.Facts, len(members))
	known := make([]bool, len(members))
	err := together(members, func(n config.Node) error {
		i := slices.IndexFunc(members, func(m config.Node) bool { return m.Name == n.Name })
		f, err := readFacts(ctx, l.nodes[n.Name])
		all[i], known[i] = f, err == nil
		return err
	})
	byName := map[string]join.Facts{}
	for i, n := range members {
		if known[i] {
			byName[n.Name] = all[i]
		}
	}
	return byName, err
}
