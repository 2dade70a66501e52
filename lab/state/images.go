package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// UsesImage notes the newest image directory of a kind: image, disk or bundle.
func (d Dir) UsesImage(kind, dir string) error {
	return errors.Join(d.KeepImage(dir), d.Write(kind, []byte(dir)))
}

// KeepImage keeps an image directory from being pruned until the lab is gone: a machine needs the one that it was made from, which need not
// be the newest.
func (d Dir) KeepImage(dir string) error {
	used, err := os.ReadFile(d.Path(imagesFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if slices.Contains(strings.Split(string(used), "\n"), dir) {
		return nil
	}
	return d.Write(imagesFile, append(used, dir+"\n"...))
}

// imagesFile has the image directories that something of the lab is made from, one a line.
const imagesFile = "images"

// ImagesInUse lists the image directories that labs of this user are made from.
func ImagesInUse() ([]string, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(root, "[^.]*", imagesFile))
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, f := range files {
		used, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, strings.Split(strings.TrimSpace(string(used)), "\n")...)
	}
	return dirs, nil
}
