package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"k8slab/config"
	"k8slab/lab/addon"
	"k8slab/lab/event"
	"k8slab/lab/image"
	"k8slab/lab/kube"
	"k8slab/lab/wait"
)

const (
	// addonsBudget bounds the time until the add-ons' pods are ready. metrics-server is when it has read metrics twice, 15 s apart.
	addonsBudget = 5 * time.Minute
	// importBudget bounds the import of all images on one node; several nodes share this computer's disk.
	importBudget = 5 * time.Minute
)

// addons are those that cluster.yaml lists and those that they need.
func (l *Lab) addons() ([]addon.Addon, error) { return addon.Resolve(l.cluster.Addons) }

// InstallAddons puts the named add-ons, and those that they need, into the cluster that runs, and waits until they are ready. Nodes that join
// later get their images only if cluster.yaml lists the add-ons.
func (l *Lab) InstallAddons(ctx context.Context, names []string) error {
	wanted, err := addon.Resolve(names)
	if err != nil {
		return err
	}
	return l.onCluster(ctx, "labctl addons install", func(c *forming) error { return c.install(ctx, wanted) })
}

// install brings the add-ons from whatever state they are in to ready ones.
func (c *forming) install(ctx context.Context, addons []addon.Addon) error {
	if len(addons) == 0 {
		return nil
	}
	l := c.lab
	if err := l.importImages(ctx, l.cluster.Members(), addons); err != nil {
		return err
	}
	budget := addonsBudget * time.Duration(l.Patience())
	step := l.events.Start("", "add-ons", budget)
	values := l.addonValues(addons)
	for _, a := range addons {
		if err := c.apply(ctx, a, values, step); err != nil {
			return step.End(err)
		}
		if err := c.complete(ctx, a, values, step); err != nil {
			return step.End(err)
		}
	}
	return step.End(c.awaitAddons(ctx, addons, budget, step))
}

// apply applies the add-on's objects, unless the cluster has them as they should be.
func (c *forming) apply(ctx context.Context, a addon.Addon, values addon.Values, step *event.Step) error {
	manifest, err := c.lab.objects(ctx, a, values)
	if err != nil || len(manifest) == 0 {
		return err
	}
	current, err := c.view.kube.UpToDate(ctx, manifest)
	if err != nil || current {
		return err
	}
	step.Progress("%s: applying its objects", a.Name)
	return wait.For(ctx, "the API server to take "+a.Name, time.Minute, c.lab.pace(), func(ctx context.Context) error {
		return c.view.kube.Apply(ctx, manifest)
	})
}

// awaitAddons waits until every workload of the add-ons is ready, and shows what it waits for.
func (c *forming) awaitAddons(ctx context.Context, addons []addon.Addon, budget time.Duration, step *event.Step) error {
	step.Progress("waiting for their pods")
	err := wait.For(ctx, "the add-ons to be ready", budget, c.lab.pace(), telling(step, func(ctx context.Context) error { return c.view.addonsReady(ctx, addons) }))
	if err != nil {
		err = fmt.Errorf("%w\nnext: labctl kubectl get pods -A -o wide; labctl kubectl describe pod -n NAMESPACE POD", err)
	}
	return err
}

func (v *view) addonsReady(ctx context.Context, addons []addon.Addon) error {
	var errs []error
	for _, a := range addons {
		for _, w := range a.Workloads {
			errs = append(errs, v.workloadReady(ctx, w))
		}
		if a.Name == "flux" {
			errs = append(errs, v.fluxReady(ctx))
		}
	}
	return errors.Join(errs...)
}

func (v *view) workloadReady(ctx context.Context, w addon.Workload) error {
	ready, want, err := v.workload(ctx, w)
	if err == nil && (want == 0 || ready < want) {
		err = fmt.Errorf("%s: %d of %d pods ready", w, ready, want)
	}
	return err
}

func (v *view) workload(ctx context.Context, w addon.Workload) (ready, want int, err error) {
	if w.Kind == addon.DaemonSet {
		return v.kube.DaemonSet(ctx, w.Namespace, w.Name)
	}
	return v.kube.Deployment(ctx, w.Namespace, w.Name)
}

// importImages gives each of the nodes the add-ons' images that it lacks, all nodes at once. What the cache lacks is built first. An image
// that a node has stays, as the node's other images do: it is its name that counts.
func (l *Lab) importImages(ctx context.Context, nodes []config.Node, addons []addon.Addon) error {
	refs := imagesOf(addons)
	if len(refs) == 0 {
		return nil
	}
	missing := make([][]string, len(nodes)) // by the node's place
	at := func(n config.Node) int { return slices.Index(nodes, n) }
	err := together(nodes, func(n config.Node) error {
		has, err := l.imagesOn(ctx, n.Name)
		missing[at(n)] = missingImages(refs, has)
		return err
	})
	needed := slices.DeleteFunc(refs, func(ref string) bool {
		return !slices.ContainsFunc(missing, func(m []string) bool { return slices.Contains(m, ref) })
	})
	if err != nil || len(needed) == 0 {
		return err
	}
	program, err := l.labnode()
	if err != nil {
		return err
	}
	archives, err := image.AddonImages(ctx, needed, program, l.events)
	if err != nil {
		return err
	}
	return together(nodes, func(n config.Node) error {
		if len(missing[at(n)]) == 0 {
			return nil
		}
		step := l.events.Start(n.Name, "add-on images", importBudget*time.Duration(l.Patience()))
		return step.End(l.importArchives(ctx, n.Name, missing[at(n)], archives, step))
	})
}

// importArchives imports the archives on the node, one after another.
func (l *Lab) importArchives(ctx context.Context, name string, refs []string, archives map[string]string, step *event.Step) error {
	ctx, cancel := l.within(ctx, importBudget)
	defer cancel()
	for _, ref := range refs {
		step.Progress("%s", ref)
		f, err := os.Open(archives[ref])
		if err != nil {
			return err
		}
		err = l.importArchive(ctx, name, f)
		_ = f.Close()
		if err != nil {
			return fmt.Errorf("import %s: %w\nnext: labctl logs %s --unit containerd", ref, err, name)
		}
	}
	return nil
}

// imagesOf are the images of the add-ons, each once.
func imagesOf(addons []addon.Addon) []string {
	var refs []string
	for _, a := range addons {
		for _, ref := range a.Images {
			if !slices.Contains(refs, ref) {
				refs = append(refs, ref)
			}
		}
	}
	return refs
}

// missingImages are those of refs that are not among containerd's, whose names are in full.
func missingImages(refs, has []string) []string {
	return slices.DeleteFunc(slices.Clone(refs), func(ref string) bool {
		return slices.Contains(has, "docker.io/"+ref) || slices.Contains(has, ref)
	})
}

// AddonStatus is what one add-on is in the lab.
type AddonStatus struct {
	Name      string `json:"name"`
	Purpose   string `json:"purpose"`
	Wanted    bool   `json:"wanted"`    // cluster.yaml lists it, or one that needs it
	Installed bool   `json:"installed"` // all of its workloads are in the cluster
	Ready     int    `json:"ready"`     // pods
	Want      int    `json:"want"`      // pods
}

// Addons lists all add-ons. It changes nothing; of a lab that is not up, none is installed.
func (l *Lab) Addons(ctx context.Context) ([]AddonStatus, error) {
	wanted, err := l.addons()
	if err != nil {
		return nil, err
	}
	var all []AddonStatus
	for _, a := range addon.All() {
		isWanted := slices.ContainsFunc(wanted, func(w addon.Addon) bool { return w.Name == a.Name })
		all = append(all, AddonStatus{Name: a.Name, Purpose: a.Purpose, Wanted: isWanted})
	}
	ctx, cancel := l.within(ctx, statusBudget)
	defer cancel()
	if err := l.open(); errors.Is(err, ErrNotUp) {
		return all, nil
	} else if err != nil {
		return nil, err
	}
	v, err := l.anyView(ctx)
	if err != nil {
		return nil, err
	}
	defer v.close()
	for i, a := range addon.All() {
		if err := v.addonStatus(ctx, a, &all[i]); err != nil {
			return nil, err
		}
		if a.Name == "sops" { // which has no pods
			all[i].Installed = l.hasSops(nil)
		}
	}
	return all, nil
}

// addonStatus adds what the cluster has of the add-on.
func (v *view) addonStatus(ctx context.Context, a addon.Addon, s *AddonStatus) error {
	s.Installed = true
	for _, w := range a.Workloads {
		ready, want, err := v.workload(ctx, w)
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
