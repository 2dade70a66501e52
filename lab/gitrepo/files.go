package gitrepo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"k8slab/lab/atomicfile"
)

// keep writes the kustomization as it is before the activation into the backup, as a whole.
func (r *Repository) keep(content []byte) error {
	if r.Backup == "" {
		return nil
	}
	if err := atomicfile.Write(r.Backup, atomicfile.Private, content); err != nil {
		return fmt.Errorf("keep a backup: %w", err)
	}
	return nil
}

// before is the content of the backup; nil if there is none.
func (r *Repository) before() []byte {
	data, err := os.ReadFile(r.Backup)
	if err != nil {
		return nil
	}
	return data
}

// Limits of a commit's pack, because it is unpacked into memory. If the server can leave large files out, they do not count.
const (
	packLimit     = 64 << 20  // bytes of the pack
	unpackedLimit = 128 << 20 // bytes of all that is in it
)

// readPack reads a pack, and refuses one that is too large, also unpacked.
func readPack(pack io.Reader) (io.Reader, error) {
	data, err := io.ReadAll(io.LimitReader(pack, packLimit+1))
	if err != nil {
		return nil, err
	}
	if len(data) > packLimit {
		return nil, because(ErrTooLarge, fmt.Sprintf("more than %d MiB are sent", packLimit>>20))
	}
	scanner := packfile.NewScanner(bytes.NewReader(data))
	_, objects, err := scanner.Header()
	if err != nil {
		return nil, err
	}
	total := int64(0)
	for range objects {
		size, err := unpackedSize(scanner)
		if err != nil {
			return nil, err
		}
		if total += size; size < 0 || total > unpackedLimit {
			return nil, because(ErrTooLarge, fmt.Sprintf("it has more than %d MiB", unpackedLimit>>20))
		}
	}
	return bytes.NewReader(data), nil
}

// unpackedSize reads the next object of the pack. A delta begins with the sizes of what it changes and of what comes of it
// (gitformat-pack(5)).
func unpackedSize(scanner *packfile.Scanner) (int64, error) {
	object, err := scanner.NextObjectHeader()
	if err != nil {
		return 0, err
	}
	var begin sizes
	if _, _, err := scanner.NextObject(&begin); err != nil {
		return 0, err
	}
	if object.Type != plumbing.OFSDeltaObject && object.Type != plumbing.REFDeltaObject {
		return object.Length, nil
	}
	_, n := binary.Uvarint(begin)
	size, m := binary.Uvarint(begin[max(n, 0):])
	if n <= 0 || m <= 0 {
		return 0, errors.New("a delta without sizes")
	}
	return object.Length + int64(size), nil
}

// sizes keeps the beginning of what is written, in which two numbers are.
type sizes []byte

func (s *sizes) Write(p []byte) (int, error) {
	*s = append(*s, p[:min(len(p), 2*binary.MaxVarintLen64-len(*s))]...)
	return len(p), nil
}
