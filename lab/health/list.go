package health

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"k8slab/lab/machine"
	"k8slab/lab/session"
	"k8slab/lab/state"
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
	names, err := state.Names()
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

func entryOf(ctx context.Context, name string) (Entry, error) {
	e := Entry{Name: name}
	d, err := state.Open(name)
	if err != nil {
		return e, err
	}
	if info, err := os.Stat(d.Path("id")); err == nil {
		e.Made = info.ModTime().UTC().Truncate(time.Second)
	}
	made, err := d.Made()
	if err != nil || made == nil {
		return e, err
	}
	e.Kubernetes, e.URI, e.Network = made.Kubernetes.Version, made.Libvirt.URI, made.Network.CIDR.String()
	l, err := state.Read(made)
	if err != nil {
		return e, err
	}
	e.Machines = len(l.Cluster.Members())
	h, err := session.Connect(l)
	if errors.Is(err, fs.ErrNotExist) {
		return e, state.ErrNotUp
	}
	if err != nil {
		return e, err
	}
	open, err := session.Open(l, h, nil, session.Options{})
	if err != nil {
		return e, err
	}
	defer open.Close()
	ctx, cancel := open.Within(ctx, 3*time.Second)
	defer cancel()
	machines, err := open.Machines.List(ctx)
	for _, m := range machines {
		if m.State == machine.Running {
			e.Running++
		}
	}
	return e, err
}
