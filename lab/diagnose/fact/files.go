package fact

import (
	"context"

	"k8slab/lab/inventory"
)

// Difference is a file that is not as the machine's image made it.
type Difference = inventory.Difference

// filesMost bounds how many files a machine tells of: one whose libraries are gone has hundreds.
const filesMost = 200

// differences compares the files at root with the list of the machine's image. A machine without a list has nothing to compare.
func differences(ctx context.Context, root string) ([]Difference, error) {
	list, err := inventory.Read(root)
	if err != nil {
		return nil, err
	}
	found, err := list.Compare(ctx, root)
	return found[:min(len(found), filesMost)], err
}
