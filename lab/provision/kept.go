package provision

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8slab/lab/atomicfile"
	"k8slab/lab/event"
	"k8slab/lab/image"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// keptImages is the directory of the lab's state with the archives that were loaded into all nodes: machines that are made later get them too.
// Beside each is the list of its images.
const keptImages = "loaded-images"

// keep has machines that are made later get the archive. One with the same images takes its place.
func keep(l state.Lab, a *image.Archive) error {
	sum := sha256.Sum256([]byte(strings.Join(a.Names, "\n")))
	file := l.Path(keptImages, hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	names, err := json.Marshal(a.Names)
	if err != nil {
		return err
	}
	if err := atomicfile.Replace(file+".tar", atomicfile.Private, func(w io.Writer) error { return a.Copy(w) }); err != nil {
		return fmt.Errorf("keep the archive for machines that are made later: %w", err)
	}
	return atomicfile.Write(file+".json", atomicfile.Private, names)
}

// KeptImages are the images that were loaded into all nodes, with the file of the archive of each.
func KeptImages(l state.Lab) (map[string]string, error) {
	lists, err := filepath.Glob(l.Path(keptImages, "*.json"))
	kept := map[string]string{}
	for _, list := range lists {
		text, readErr := os.ReadFile(list)
		var names []string
		if err = errors.Join(err, readErr); readErr == nil {
			err = errors.Join(err, json.Unmarshal(text, &names))
		}
		for _, name := range names {
			kept[name] = strings.TrimSuffix(list, ".json") + ".tar"
		}
	}
	return kept, err
}

// LoadKept imports a kept archive on a node.
func LoadKept(ctx context.Context, s *session.Session, name, file string, step *event.Step) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	a, err := image.OpenArchiveFile(f)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return loadOn(ctx, s, name, a, loadBudget(a), step)
}

// loadBudget bounds the import of an archive: 1 MiB/s is slow for a disk that many share.
func loadBudget(a *image.Archive) time.Duration {
	return ImportBudget + time.Duration(a.Size>>20)*time.Second
}
