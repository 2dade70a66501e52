package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8slab/lab/image"
)

// imageLabnode is the labnode of the node image, and of the machines made of it.
func imageLabnode() (string, error) { return labnode("amd64") }

// labnode is the path of the program that every node gets, for nodes of the architecture, as Go names it. `make build` puts it into labctl,
// so that a copied labctl needs no file beside it; a labctl that was built without it looks for it in its own directory.
func labnode(arch string) (string, error) {
	names := map[string]string{"amd64": "labnode", "arm64": "labnode-arm64"}
	name := names[arch]
	if name == "" {
		return "", fmt.Errorf("there is no labnode for nodes of the architecture %s: use nodes of amd64 or arm64", arch)
	}
	if packed := packedLabnode[arch]; len(packed) > 0 {
		return image.Unpack("labnode", packed)
	}
	return labnodeBeside(name, arch)
}

// labnodePacked is that program in gzip's format, as it is sent to machines that exist.
func labnodePacked(arch string) ([]byte, error) {
	if packed := packedLabnode[arch]; len(packed) > 0 {
		return packed, nil
	}
	path, err := labnode(arch)
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	to, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	_, err = to.Write(program)
	err = errors.Join(err, to.Close())
	return packed.Bytes(), err
}

func labnodeBeside(name, arch string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(self), name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("this labctl was built without labnode, which every node gets, and it is not beside it: %w; next, in a checkout of k8slab: "+
			"CGO_ENABLED=0 GOARCH=%s go build -o %s k8slab/cmd/labnode", err, arch, path)
	}
	return path, nil
}
