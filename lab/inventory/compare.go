package inventory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
)

// Difference is a file of a node that is not as its image made it.
type Difference struct {
	Path      string `json:"path"`
	Kind      Kind   `json:"kind"`
	What      string `json:"what"` // how it differs, in words
	Component string `json:"component,omitempty"`
	// Needs is the SHA-256 of the content that putting it back takes; "" when no content is needed.
	Needs string `json:"needs,omitempty"`
}

// Kind says how a file differs.
type Kind string

// The kinds.
const (
	Missing Kind = "missing"
	Changed Kind = "changed"
	Masks   Kind = "masks" // it is not in the list, and keeps a unit of the image from starting
	Extra   Kind = "extra" // it is not in the list, and changes what a component does
)

// String is the difference in one line.
func (d Difference) String() string { return d.Path + ": " + d.What }

// Compare says how the tree at root differs from the list: first the files of the list, then those that are there besides and change what a
// component does. Only contents of the right size and another time are read. A time alone is no difference.
func (l List) Compare(ctx context.Context, root string) ([]Difference, error) {
	var found []Difference
	for _, f := range l.Files {
		if ctx.Err() != nil {
			return found, context.Cause(ctx)
		}
		d, differs := f.compare(root)
		if differs {
			found = append(found, d)
		}
	}
	return append(found, l.extras(root)...), nil
}

func (f File) compare(root string) (Difference, bool) {
	d := Difference{Path: f.Path, Kind: Changed, Component: f.Component}
	is, known, err := fileAt(root, f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		d.Kind, d.What, d.Needs = Missing, "it is not there", f.SHA256
		return d, true
	case err != nil:
		d.What, d.Needs = err.Error(), f.SHA256
		return d, true
	case !known || is.Type != f.Type:
		d.What, d.Needs = "it is not a "+f.kind(), f.SHA256
		return d, true
	}
	var what []string
	if f.Type == Link && is.Target != f.Target {
		what = append(what, fmt.Sprintf("it leads to %s, not to %s", is.Target, f.Target))
	}
	if f.Type == Plain {
		if changed := f.content(root, is); changed != "" {
			what, d.Needs = append(what, changed), f.SHA256
		}
	}
	if is.Mode != f.Mode {
		what = append(what, fmt.Sprintf("its mode is %04o, not %04o", is.Mode, f.Mode))
	}
	if f.Type != Directory && (is.UID != f.UID || is.GID != f.GID) { // a directory may have got the owner of the node's own files
		what = append(what, fmt.Sprintf("its owner is %d:%d, not %d:%d", is.UID, is.GID, f.UID, f.GID))
	}
	if len(what) == 1 && is.Mode != f.Mode && is.Mode&executable == f.Mode&executable {
		d.Component = "" // they all run as root, who may read whatever the mode says
	}
	d.What = strings.Join(what, ", ")
	return d, len(what) > 0
}

// executable are the bits of a mode without which nobody runs a program.
const executable = 0o111

// content says how the content of the plain file that is there differs.
func (f File) content(root string, is File) string {
	switch {
	case is.Size == 0 && f.Size > 0:
		return "it is empty"
	case is.Size != f.Size:
		return fmt.Sprintf("it has %d bytes, not %d", is.Size, f.Size)
	case is.Time == f.Time:
		return ""
	}
	switch sum, err := digest(filepath.Join(root, f.Path)); {
	case err != nil:
		return "it cannot be read: " + err.Error()
	case sum != f.SHA256:
		return "its content is another"
	}
	return ""
}

func (f File) kind() string {
	if f.Type == Plain {
		return "plain file"
	}
	return string(f.Type)
}
