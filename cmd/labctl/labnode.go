package main

import (
	"fmt"
	"os"
	"path/filepath"

	"k8slab/lab/image"
)

// labnode is the path of the program that every node gets. `make build` puts it into labctl, so that a copied labctl needs no file beside
// it; a labctl that was built without it looks for it in its own directory.
func labnode() (string, error) {
	if len(packedLabnode) > 0 {
		return image.Unpack("labnode", packedLabnode)
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(self), "labnode")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("this labctl was built without labnode, which every node gets, and it is not beside it: %w; next, in a checkout of k8slab: "+
			"CGO_ENABLED=0 go build -o %s k8slab/cmd/labnode", err, path)
	}
	return path, nil
}
