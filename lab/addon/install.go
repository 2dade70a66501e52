package addon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"k8slab/config"
	"k8slab/lab/event"
	"k8slab/lab/image"
	"k8slab/lab/provision"
	"k8slab/lab/session"
	"k8slab/lab/wait"
)

// addonsBudget bounds the wait for the add-ons' pods. metrics-server is ready only after it has read metrics twice, 15 s apart.
const addonsBudget = 5 * time.Minute

// Wanted are the add-ons that cluster.yaml lists, and those that they need.
func Wanted(s *session.Session) ([]Addon, error) { return Resolve(s.Cluster.Addons) }

// installer installs add-ons into the cluster of an opened lab.
type installer struct {
	*session.Session
	admin *session.Admin
}

// Install installs the add-ons, whatever state they are in, and waits until they are ready.
func Install(ctx context.Context, s *session.Session, v *session.Admin, addons []Addon) error {
	if len(addons) == 0 {
		return nil
	}
	if s.Cluster.Network.Proxy == "" && slices.ContainsFunc(addons, func(a Addon) bool { return a.Name == "proxy" }) {
		return errors.New("the add-on proxy tells pods of network.proxy, and cluster.yaml has none; next: write it there")
	}
	if err := ImportImages(ctx, s, s.Cluster.Members(), addons); err != nil {
		return err
	}
	budget := addonsBudget * time.Duration(s.TimeScale())
	step := s.Events.Start("", "add-ons", budget)
	values, err := addonValues(s, addons)
	if err != nil {
		return step.End(err)
	}
	i := installer{s, v}
	for _, a := range addons {
		if err := i.apply(ctx, a, values, step); err != nil {
			return step.End(err)
		}
		if err := i.complete(ctx, a, values, step); err != nil {
			return step.End(err)
		}
	}
	return step.End(i.awaitReady(ctx, addons, budget, step))
}

// apply applies the add-on's objects, unless they are up to date.
func (c installer) apply(ctx context.Context, a Addon, values Values, step *event.Step) error {
	manifest, err := objects(ctx, c.Session, a, values)
	if err != nil || len(manifest) == 0 {
		return err
	}
	current, err := c.admin.Kube.UpToDate(ctx, manifest)
	if err != nil || current {
		return err
	}
	if a.Name == "registry" {
		if err := provision.GivePulled(ctx, c.Session, step); err != nil {
			return err
		}
	}
	step.Progress("%s: applying its objects", a.Name)
	return wait.For(ctx, "the API server to take "+a.Name, time.Minute, c.Pace(), func(ctx context.Context) error {
		return c.admin.Kube.Apply(ctx, manifest)
	})
}

// awaitReady waits until every workload of the add-ons is ready, and shows what it waits for.
func (c installer) awaitReady(ctx context.Context, addons []Addon, budget time.Duration, step *event.Step) error {
	step.Progress("waiting for their pods")
	err := wait.For(ctx, "the add-ons to be ready", budget, c.Pace(), session.ShowWaiting(step, func(ctx context.Context) error { return Ready(ctx, c.admin, addons) }))
	if err != nil {
		err = fmt.Errorf("%w\nnext: labctl kubectl get pods -A -o wide; labctl kubectl describe pod -n NAMESPACE POD", err)
	}
	return err
}

// Ready says which workloads of the add-ons are not ready, and why.
func Ready(ctx context.Context, v *session.Admin, addons []Addon) error {
	var errs []error
	for _, a := range addons {
		for _, w := range a.Workloads {
			errs = append(errs, workloadReady(ctx, v, w))
		}
		if a.Name == "flux" {
			errs = append(errs, fluxReady(ctx, v))
		}
	}
	return errors.Join(errs...)
}

func workloadReady(ctx context.Context, v *session.Admin, w Workload) error {
	ready, want, err := workload(ctx, v, w)
	if err == nil && (want == 0 || ready < want) {
		err = fmt.Errorf("%s: %d of %d pods ready", w, ready, want)
	}
	return err
}

func workload(ctx context.Context, v *session.Admin, w Workload) (ready, want int, err error) {
	if w.Kind == DaemonSet {
		return v.Kube.DaemonSet(ctx, w.Namespace, w.Name)
	}
	return v.Kube.Deployment(ctx, w.Namespace, w.Name)
}

// Importer imports onto nodes the images of the add-ons that cluster.yaml lists, and those that were loaded into all nodes. It says what each node lacked, or in a dry run lacks.
func Importer(s *session.Session) func(ctx context.Context, nodes []config.Node, dryRun bool) (map[string][]string, error) {
	return func(ctx context.Context, nodes []config.Node, dryRun bool) (map[string][]string, error) {
		addons, err := Wanted(s)
		if err != nil {
			return nil, err
		}
		kept, err := provision.KeptImages(s.Lab)
		if err != nil {
			return nil, err
		}
		refs := slices.Concat(ImagesOf(addons), slices.Sorted(maps.Keys(kept)))
		lacking, err := lackingImages(ctx, s, nodes, refs)
		if err != nil || dryRun {
			return lacking, err
		}
		return lacking, importLacking(ctx, s, nodes, lacking, kept)
	}
}

// ImportImages imports onto all the nodes at once the add-ons' images that each lacks. Images that the cache lacks are built first. A node
// that has an image by the same name keeps it.
func ImportImages(ctx context.Context, s *session.Session, nodes []config.Node, addons []Addon) error {
	lacking, err := lackingImages(ctx, s, nodes, ImagesOf(addons))
	if err != nil {
		return err
	}
	return importLacking(ctx, s, nodes, lacking, nil)
}

// lackingImages are those of refs that nodes do not have, by node.
func lackingImages(ctx context.Context, s *session.Session, nodes []config.Node, refs []string) (map[string][]string, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	missing, err := session.FromEachNode(nodes, func(n config.Node) ([]string, error) {
		has, err := provision.ImagesOn(ctx, s, n.Name)
		return missingImages(refs, has), err
	})
	lacking := map[string][]string{}
	for i, n := range nodes {
		if len(missing[i]) > 0 {
			lacking[n.Name] = missing[i]
		}
	}
	return lacking, err
}

// importLacking imports the images, of which kept has archives, and the others are add-ons'.
func importLacking(ctx context.Context, s *session.Session, nodes []config.Node, lacking map[string][]string, kept map[string]string) error {
	var needed []string
	for _, n := range nodes {
		for _, ref := range lacking[n.Name] {
			if kept[ref] == "" && !slices.Contains(needed, ref) {
				needed = append(needed, ref)
			}
		}
	}
	archives := map[string]string{}
	if len(needed) > 0 {
		program, err := s.LabnodeBinary()
		if err != nil {
			return err
		}
		if archives, err = image.AddonImages(ctx, needed, s.Cluster.Image.Distribution, program, s.Events); err != nil {
			return err
		}
	}
	return session.ForEachNode(nodes, func(n config.Node) error {
		lacks := lacking[n.Name]
		if len(lacks) == 0 {
			return nil
		}
		step := s.Events.Start(n.Name, "images", 0)
		return step.End(importArchives(ctx, s, n.Name, lacks, archives, kept, step))
	})
}

// importArchives imports the archives on the node, one after another.
func importArchives(ctx context.Context, s *session.Session, name string, refs []string, archives, kept map[string]string, step *event.Step) error {
	var loaded []string // archives that may have several of the images
	for _, ref := range refs {
		if file := kept[ref]; file != "" && !slices.Contains(loaded, file) {
			loaded = append(loaded, file)
			if err := provision.LoadKept(ctx, s, name, file, step); err != nil {
				return err
			}
		}
	}
	ctx, cancel := s.Within(ctx, provision.ImportBudget)
	defer cancel()
	for _, ref := range refs {
		if kept[ref] != "" {
			continue
		}
		step.Progress("%s", ref)
		f, err := os.Open(archives[ref])
		if err != nil {
			return err
		}
		err = provision.ImportArchive(ctx, s, name, f)
		_ = f.Close()
		if err != nil {
			return fmt.Errorf("import %s: %w\nnext: labctl logs %s --unit containerd", ref, err, name)
		}
	}
	return nil
}

// ImagesOf are the images of the add-ons, each once.
func ImagesOf(addons []Addon) []string {
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

// missingImages are those of refs that containerd, whose names are complete, does not have.
func missingImages(refs []string, has map[string]string) []string {
	return slices.DeleteFunc(slices.Clone(refs), func(ref string) bool {
		return has["docker.io/"+ref] != "" || has[ref] != ""
	})
}

// BuildImages builds the images of cluster.yaml's add-ons, and the sops command. It runs before there is a cluster, which a compiler would
// slow down.
func BuildImages(ctx context.Context, s *session.Session) error {
	addons, err := Wanted(s)
	if err != nil || len(addons) == 0 {
		return err
	}
	program, err := s.LabnodeBinary()
	if err != nil {
		return err
	}
	if _, err = image.AddonImages(ctx, ImagesOf(addons), s.Cluster.Image.Distribution, program, s.Events); err != nil || !HasSops(s, addons) {
		return err
	}
	_, err = image.Sops(ctx, s.Events)
	return err
}
