package fact

import (
	"context"

	"k8slab/lab/inventory"
)

// Difference is a file that is not as the machine's image made it.
type Difference = inventory.Difference

// filesMost bounds how many files a machine tells of: one whose libraries are gone has hundreds.
const filesMost = 200

// files compares the machine's files with the list of its image. A machine without a list has nothing to compare.
func (c *collector) files(ctx context.Context) error {
	list, err := inventory.Read(c.m.Path("/"))
	if err != nil {
		return err
	}
	found, err := list.Compare(ctx, c.m.Path("/"))
	c.set(func(n *Node) { n.Files = found[:min(len(found), filesMost)] })
	return err
}
