package provision

import (
	"context"
	"errors"
	"os"
	"time"

	"k8slab/lab/host"
	"k8slab/lab/image"
	"k8slab/lab/machine"
)

// UploadedImages lists what virtual machines of this computer's libvirt boot from; nothing where it has none.
func UploadedImages(ctx context.Context) ([]image.Entry, error) {
	return uploaded(func(socket string) ([]machine.Base, error) { return machine.Bases(ctx, socket) })
}

// PruneUploadedImages removes what no machine is made from and was uploaded before the time.
func PruneUploadedImages(ctx context.Context, before time.Time) ([]image.Entry, error) {
	return uploaded(func(socket string) ([]machine.Base, error) { return machine.PruneBases(ctx, socket, before) })
}

func uploaded(get func(storageSocket string) ([]machine.Base, error)) ([]image.Entry, error) {
	h, err := host.Computers(host.VirtualMachines)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	bases, err := get(h.StorageSocket())
	var entries []image.Entry
	for _, b := range bases {
		entries = append(entries, image.Entry{Name: "pool " + b.Pool + ": " + b.Name, Size: b.Size, Used: b.Last})
	}
	return entries, err
}
