package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8slab/lab/session"
)

// Kind says how a file differs from the backup.
type Kind string

// The kinds.
const (
	Changed Kind = "changed"
	Missing Kind = "missing" // it was there when the backup was made
	New     Kind = "new"     // it was not
)

// Change is a file of a node that is not as it was.
type Change struct {
	Path   string `json:"path"`
	Kind   Kind   `json:"kind"`
	Detail string `json:"detail,omitempty"` // of a changed one
}

// file is what is compared.
type file struct {
	kind     byte
	mode     int64
	uid, gid int
	link     string
	sha256   string
}

// Diff lists which of the files that are saved differ now, by path. It changes nothing.
func Diff(ctx context.Context, s *session.Session, b Backup, node string) ([]Change, error) {
	saved, err := b.node(node)
	if err != nil {
		return nil, err
	}
	was, is := map[string]file{}, map[string]file{}
	if err := b.open(saved, tally(was)); err != nil {
		return nil, err
	}
	on := s.Nodes[node]
	if on == nil {
		return nil, fmt.Errorf("labctl has no connection to %s: is it in cluster.yaml?", node)
	}
	limited, cancel := s.Within(ctx, nodeBudget)
	defer cancel()
	if _, err := collect(limited, on, tally(is)); err != nil {
		return nil, err
	}
	return compare(was, is), nil
}

// tally notes what an archive has.
func tally(files map[string]file) func(*tar.Header, io.Reader) error {
	return func(h *tar.Header, content io.Reader) error {
		sum := sha256.New()
		if _, err := io.Copy(sum, content); err != nil {
			return err
		}
		files[h.Name] = file{h.Typeflag, h.Mode, h.Uid, h.Gid, h.Linkname, hex.EncodeToString(sum.Sum(nil))}
		return nil
	}
}

func compare(was, is map[string]file) (changes []Change) {
	for _, name := range slices.Sorted(maps.Keys(was)) {
		now, there := is[name]
		switch detail := was[name].against(now); {
		case !there:
			changes = append(changes, Change{Path: "/" + name, Kind: Missing})
		case detail != "":
			changes = append(changes, Change{"/" + name, Changed, detail})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if _, there := was[name]; !there {
			changes = append(changes, Change{Path: "/" + name, Kind: New})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return changes
}

// against says how the present file differs, "" if it does not.
func (f file) against(now file) string {
	var how []string
	switch {
	case f.kind != now.kind:
		return "it is " + nouns[now.kind] + ", was " + nouns[f.kind]
	case f.link != now.link:
		how = append(how, fmt.Sprintf("leads to %s, led to %s", now.link, f.link))
	case f.sha256 != now.sha256:
		how = append(how, "content")
	}
	if f.mode != now.mode && f.kind != tar.TypeSymlink {
		how = append(how, fmt.Sprintf("mode %04o, was %04o", now.mode, f.mode))
	}
	if f.uid != now.uid || f.gid != now.gid {
		how = append(how, fmt.Sprintf("owner %d:%d, was %d:%d", now.uid, now.gid, f.uid, f.gid))
	}
	return strings.Join(how, "; ")
}

var nouns = map[byte]string{tar.TypeReg: "a file", tar.TypeDir: "a directory", tar.TypeSymlink: "a link"}

// Archive is the path of the node's archive on this computer.
func (b Backup) Archive(node string) string { return filepath.Join(b.Path, node+".tar.gz") }

// open reads the archive of a node. It verifies it first, so that nothing of a damaged one is used.
func (b Backup) open(n Node, each func(*tar.Header, io.Reader) error) error {
	err := func() error {
		f, err := os.Open(b.Archive(n.Name))
		if err != nil {
			return err
		}
		defer f.Close()
		sum := sha256.New()
		if _, err := io.Copy(sum, f); err != nil {
			return err
		}
		if is := hex.EncodeToString(sum.Sum(nil)); is != n.SHA256 {
			return fmt.Errorf("it is damaged: its sha256 is %s, not %s", is, n.SHA256)
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		unpacked, err := gzip.NewReader(f)
		if err != nil {
			return err
		}
		skipped, err := sift(unpacked, false, each)
		if err == nil && len(skipped) > 0 {
			err = errors.New("it has what no backup has")
		}
		return err
	}()
	if err != nil {
		return fmt.Errorf("backup %s of %s, %s: %w; next: use another one: labctl undo list", b.ID, n.Name, b.Archive(n.Name), err)
	}
	return nil
}
