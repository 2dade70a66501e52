package gitrepo

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/memory"
)

// packOf is a pack with a file of that many bytes.
func packOf(t testing.TB, size int) []byte {
	t.Helper()
	store := memory.NewStorage()
	blob := store.NewEncodedObject()
	blob.SetType(plumbing.BlobObject)
	w, err := blob.Writer()
	if err == nil {
		_, err = io.WriteString(w, strings.Repeat("0", size))
	}
	if err != nil {
		t.Fatal(err)
	}
	hash, err := store.SetEncodedObject(blob)
	if err != nil {
		t.Fatal(err)
	}
	var pack bytes.Buffer
	if _, err := packfile.NewEncoder(&pack, store, false).Encode([]plumbing.Hash{hash}, 0); err != nil {
		t.Fatal(err)
	}
	return pack.Bytes()
}

func TestReadPack(t *testing.T) {
	small := packOf(t, 1000)
	if r, err := readPack(bytes.NewReader(small)); err != nil {
		t.Error(err)
	} else if all, err := io.ReadAll(r); err != nil || !bytes.Equal(all, small) {
		t.Errorf("%d bytes, %v", len(all), err)
	}
	for name, pack := range map[string]io.Reader{
		"unpacked": bytes.NewReader(packOf(t, unpackedLimit+1)),
		"sent":     io.MultiReader(bytes.NewReader(small), zeros{}),
	} {
		_, err := readPack(pack)
		if !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// zeros never end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func FuzzPack(f *testing.F) {
	f.Add(packOf(f, 100))
	f.Add([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := readPack(bytes.NewReader(data))
		if err != nil {
			return
		}
		_ = packfile.UpdateObjectStorage(memory.NewStorage(), r)
	})
}
