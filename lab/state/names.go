package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
