package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8slab/lab/machine"
)

// Entry is a lab of this user's.
type Entry struct {
	Name       string    `json:"name"`
	Kubernetes string    `json:"kubernetes,omitempty"` // version; "" while no machine was made
	URI        string    `json:"uri,omitempty"`
	Network    string    `json:"network,omitempty"`
	Machines   int       `json:"machines"` // that were made
	Running    int       `json:"running"`  // of them
	Made       time.Time `json:"made"`
	Problem    string    `json:"problem,omitempty"` // why it is not known what runs
}

// List lists this user's labs by name. It looks at each for a moment and changes nothing.
func List(ctx context.Context) ([]Entry, error) {
	names, err := Names()
	if err != nil {
		return nil, err
	}
	all := []Entry{}
	for _, name := range names {
		e, err := entryOf(ctx, name)
		if err != nil {
			e.Problem = err.Error()
		}
		all = append(all, e)
	}
	return all, nil
}

// Names are the names of this user's labs, in alphabetical order.
func Names() ([]string, error) {
	root, err := StateDir()
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
	s, err := openState(name)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(s.path(madeFile)); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("no machine of lab %q was made yet, so only its cluster.yaml describes it; next: labctl -c FILE up, or labctl -c FILE down", name)
	}
	return s.path(madeFile), nil
}

func entryOf(ctx context.Context, name string) (Entry, error) {
	e := Entry{Name: name}
	s, err := openState(name)
	if err != nil {
		return e, err
	}
	if info, err := os.Stat(s.path("id")); err == nil {
		e.Made = info.ModTime().UTC().Truncate(time.Second)
	}
	made, err := s.made()
	if err != nil || made == nil {
		return e, err
	}
	e.Kubernetes, e.URI, e.Network = made.Kubernetes.Version, made.Libvirt.URI, made.Network.CIDR.String()
	l, err := New(made, Options{})
	if err != nil {
		return e, err
	}
	defer l.Close()
	e.Machines = len(l.cluster.Members())
	if err := l.open(); err != nil {
		return e, err
	}
	ctx, cancel := l.within(ctx, 3*time.Second)
	defer cancel()
	machines, err := l.machines.List(ctx)
	for _, m := range machines {
		if m.State == machine.Running {
			e.Running++
		}
	}
	return e, err
}
