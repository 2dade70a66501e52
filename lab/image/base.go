package image

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// qcow2Header is what an image file begins with, in the words of QEMU's docs/interop/qcow2.txt. Version 2 ends before Incompatible.
type qcow2Header struct {
	Magic         [4]byte
	Version       uint32
	BackingOffset uint64
	BackingLength uint32
	ClusterBits   uint32
	Size          uint64 // of the disk, in bytes
	CryptMethod   uint32
	_             [36]byte
	Incompatible  uint64
}

const (
	qcow2Corrupt      = 1 << 1
	qcow2ExternalData = 1 << 2
)

// BaseSize returns how many bytes the disk in a stock image has, and checks that machines can have overlays on it: a qcow2 file that is
// all there is of the image. It reads the header itself, because QEMU's tools may not be installed yet.
func BaseSize(path string) (uint64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("image.base: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("image.base: %w", err)
	}
	if !info.Mode().IsRegular() {
		return 0, fmt.Errorf("image.base: %s is not a file", path)
	}
	var h qcow2Header
	if err := binary.Read(f, binary.BigEndian, &h); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, fmt.Errorf("image.base: %w", err)
	}
	if why := h.problem(); why != "" {
		return 0, fmt.Errorf("image.base: %s %s; an image that can be used is made by: qemu-img convert -O qcow2 %[1]s NEW", path, why)
	}
	return h.Size, nil
}

// problem says why machines cannot have overlays on the image, "" when they can.
func (h qcow2Header) problem() string {
	switch {
	case string(h.Magic[:]) != "QFI\xfb" || h.Version < 2 || h.Size == 0:
		return "is not a qcow2 image"
	case h.BackingOffset != 0:
		return "has a backing file, and the lab takes one file"
	case h.CryptMethod != 0:
		return "is encrypted"
	case h.Version > 2 && h.Incompatible&qcow2ExternalData != 0:
		return "has its data in another file, and the lab takes one file"
	case h.Version > 2 && h.Incompatible&qcow2Corrupt != 0:
		return "is marked as corrupt"
	}
	return ""
}
