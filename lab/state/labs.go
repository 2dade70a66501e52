package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Names are the names of this user's labs, in alphabetical order.
func Names() ([]string, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	ids, err := filepath.Glob(filepath.Join(root, "[^.]*", "id"))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = filepath.Base(filepath.Dir(id))
	}
	return names, nil
}

// MadeWith is the path of the cluster.yaml that the lab was made with.
func MadeWith(name string) (string, error) {
	names, err := Names()
	if err != nil {
		return "", err
	}
	if !slices.Contains(names, name) {
		there := "there is none"
		if len(names) > 0 {
			there = "there are: " + strings.Join(names, ", ")
		}
		return "", fmt.Errorf("no lab %q; %s", name, there)
	}
	d, err := Open(name)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(d.Path(MadeFile)); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("no machine of lab %q was made yet, so only its cluster.yaml describes it; next: labctl -c FILE up, or labctl -c FILE down", name)
	}
	return d.Path(MadeFile), nil
}

// UsesImage notes the newest image directory of a kind: image, disk or bundle.
func (d Dir) UsesImage(kind, dir string) error {
	return errors.Join(d.KeepImage(dir), d.Write(kind, []byte(dir)))
}

// KeepImage protects an image directory from being pruned as long as the lab exists: a machine needs the image that it was made from.
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

// imagesFile lists the image directories that the lab uses, one a line.
const imagesFile = "images"

// ImagesInUse lists the image directories that this user's labs use.
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

// RunLog returns the path for the log of a run, and removes the oldest logs of the lab.
func RunLog(lab, verb string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, ".logs", lab) // no lab has such a name
	const kept = 50
	old, _ := filepath.Glob(filepath.Join(dir, "*.jsonl")) // in order of time, by their names
	for len(old) >= kept {
		_ = os.Remove(old[0])
		_ = os.Remove(strings.TrimSuffix(old[0], ".jsonl") + ".log") // an onboarding's, in levels
		old = old[1:]
	}
	return filepath.Join(dir, fmt.Sprintf("%s-%s-%d.jsonl", time.Now().UTC().Format("20060102T150405"), verb, os.Getpid())), nil
}
