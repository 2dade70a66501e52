// Package inventory is the list of what a node image consists of: its files and its container images. The image carries the list, so that
// a node can compare itself with it, and put back what differs. It knows nothing of Kubernetes, and not where the originals are kept.
package inventory

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"
)

// Path is where the list is, in an image and on its nodes.
const Path = "/usr/lib/k8slab/inventory.json"

// List is what an image consists of.
type List struct {
	Files  []File  `json:"files"` // a directory comes before what is in it
	Images []Image `json:"images"`
}

// File is a plain file, a directory or a symbolic link.
type File struct {
	Path      string `json:"path"` // absolute
	Type      Type   `json:"type,omitempty"`
	Mode      uint32 `json:"mode"` // as chmod(1) has it: permissions, set-ID and sticky; 0 for a link
	UID       int    `json:"uid,omitempty"`
	GID       int    `json:"gid,omitempty"`
	Size      int64  `json:"size,omitempty"`      // of a plain file, in bytes
	Time      int64  `json:"time,omitempty"`      // of a plain file's last change, in seconds since 1970
	Target    string `json:"target,omitempty"`    // of a link
	SHA256    string `json:"sha256,omitempty"`    // of a plain file, in hexadecimal digits
	Component string `json:"component,omitempty"` // what does not work without it; "" where nothing needs it
}

// Type is a kind of file.
type Type string

// The types that a list can have.
const (
	Plain     Type = ""
	Directory Type = "directory"
	Link      Type = "link"
)

// Image is a container image that the node image has in its store.
type Image struct {
	Name      string `json:"name"`       // in full, as kubelet looks for it
	MediaType string `json:"media_type"` // of the manifest
	Digest    string `json:"digest"`     // of the manifest, "sha256:" and hexadecimal digits
}

// Make lists the files at and below places in the tree at root; a place that is not there is left out. It asks component about each file,
// which says what needs it, or that it does not belong into the list.
func Make(root string, places []string, component func(path string) (name string, listed bool)) ([]File, error) {
	var files []File
	for _, place := range places {
		err := filepath.WalkDir(filepath.Join(root, place), func(at string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, at)
			if err != nil {
				return err
			}
			name, listed := component("/" + rel)
			if !listed {
				if d.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
			f, known, err := fileAt(root, "/"+rel)
			if err != nil || !known {
				return err
			}
			f.Component = name
			if f.Type == Plain {
				f.SHA256, err = digest(at)
			}
			files = append(files, f)
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return files, nil
}

// special are the bits of chmod(1) beside the permissions, as package os has them.
var special = map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky}

// fileAt is what is at the path in the tree, without its digest. What is neither file, directory nor link is not known.
func fileAt(root, at string) (f File, known bool, err error) {
	info, err := os.Lstat(filepath.Join(root, at))
	if err != nil {
		return f, false, err
	}
	f.Path = at
	if owner, is := info.Sys().(*syscall.Stat_t); is {
		f.UID, f.GID = int(owner.Uid), int(owner.Gid)
	}
	f.Mode = uint32(info.Mode().Perm())
	for bit, mode := range special {
		if info.Mode()&mode != 0 {
			f.Mode |= bit
		}
	}
	switch {
	case info.Mode().IsRegular():
		f.Size, f.Time = info.Size(), info.ModTime().Unix()
	case info.IsDir():
		f.Type = Directory
	case info.Mode()&fs.ModeSymlink != 0:
		f.Type, f.Mode = Link, 0
		f.Target, err = os.Readlink(filepath.Join(root, at))
	default:
		return f, false, nil
	}
	return f, true, err
}

// fileMode is the mode as package os has it.
func (f File) fileMode() fs.FileMode {
	mode := fs.FileMode(f.Mode & 0o777)
	for bit, more := range special {
		if f.Mode&bit != 0 {
			mode |= more
		}
	}
	return mode
}

func digest(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// Read reads the list of the tree at root. A tree without one has an empty list: an older image, or no image of the lab.
func Read(root string) (List, error) {
	data, err := os.ReadFile(filepath.Join(root, Path))
	if errors.Is(err, fs.ErrNotExist) {
		return List{}, nil
	}
	if err != nil {
		return List{}, err
	}
	l, err := Parse(data)
	if err != nil {
		return List{}, fmt.Errorf("%s: %w", Path, err)
	}
	return l, nil
}

// Parse reads a list. It refuses one that names a path outside of a tree.
func Parse(data []byte) (List, error) {
	var l List
	if err := json.Unmarshal(data, &l); err != nil {
		return List{}, err
	}
	for _, f := range l.Files {
		if !path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path {
			return List{}, fmt.Errorf("%q is not a clean absolute path", f.Path)
		}
	}
	return l, nil
}

// Write writes the list to its place in the tree at root.
func (l List) Write(root string) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	file := filepath.Join(root, Path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// find is the file with the path.
func (l List) find(at string) (File, bool) {
	i := slices.IndexFunc(l.Files, func(f File) bool { return f.Path == at })
	if i < 0 {
		return File{}, false
	}
	return l.Files[i], true
}
