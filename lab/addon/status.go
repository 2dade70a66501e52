package addon

import (
	"context"
	"slices"

	"k8slab/lab/kube"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// Status is the status of one add-on in the lab.
type Status struct {
	Name      string `json:"name"`
	Purpose   string `json:"purpose"`
	Wanted    bool   `json:"wanted"`    // cluster.yaml lists it, or one that needs it
	Installed bool   `json:"installed"` // all of its workloads, or objects, are in the cluster
	Ready     int    `json:"ready"`     // pods
	Want      int    `json:"want"`      // pods
}

// List lists all add-ons for a lab that is not up: none is installed.
func List(l state.Lab) ([]Status, error) {
	wanted, err := Resolve(l.Cluster.Addons)
	if err != nil {
		return nil, err
	}
	var all []Status
	for _, a := range All() {
		isWanted := slices.ContainsFunc(wanted, func(w Addon) bool { return w.Name == a.Name })
		all = append(all, Status{Name: a.Name, Purpose: a.Purpose, Wanted: isWanted})
	}
	return all, nil
}

// ReadStatus lists all add-ons, with what the cluster has of them.
func ReadStatus(ctx context.Context, s *session.Session, v *session.Admin) ([]Status, error) {
	all, err := List(s.Lab)
	if err != nil {
		return nil, err
	}
	for i, a := range All() {
		if err := statusOf(ctx, v, a, &all[i]); err != nil {
			return nil, err
		}
		switch a.Name { // those that have no pods
		case "sops":
			all[i].Installed = HasSops(s, nil)
		case "proxy":
			values, err := addonValues(s, nil)
			if err != nil {
				return nil, err
			}
			manifest, err := a.Manifest(values)
			if err != nil {
				return nil, err
			}
			if all[i].Installed, err = v.Kube.UpToDate(ctx, manifest); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// statusOf adds to the status what the cluster has of the add-on.
func statusOf(ctx context.Context, v *session.Admin, a Addon, s *Status) error {
	s.Installed = true
	for _, w := range a.Workloads {
		ready, want, err := workload(ctx, v, w)
		if kube.NotFound(err) {
			s.Installed = false
			continue
		}
		if err != nil {
			return err
		}
		s.Ready, s.Want = s.Ready+ready, s.Want+want
	}
	return nil
}
