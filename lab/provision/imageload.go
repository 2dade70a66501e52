package provision

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/event"
	"k8slab/lab/image"
	"k8slab/lab/machine"
	"k8slab/lab/node"
	"k8slab/lab/session"
)

// ImportBudget bounds the import of all images on one node. It is long, because several nodes share this computer's disk.
const ImportBudget = 5 * time.Minute

// ImagesLoaded is what LoadImages did on one node.
type ImagesLoaded struct {
	Node   string   `json:"node"`
	Images []string `json:"images"`
	Left   string   `json:"left,omitempty"` // why it has none of them
}

// LoadImages imports an archive on the named nodes, or on all whose machines run, all at once. A node that has an image by the same name
// gets this one instead. What it did before it failed on some of the nodes is returned with the error.
func LoadImages(ctx context.Context, s *session.Session, a *image.Archive, names []string) ([]ImagesLoaded, error) {
	nodes, left, err := loadable(ctx, s, names)
	if err != nil {
		return nil, err
	}
	loaded, err := session.FromEachNode(nodes, func(n config.Node) (ImagesLoaded, error) {
		limit := ImportBudget + time.Duration(a.Size>>20)*time.Second // 1 MiB/s is slow for a disk that many share
		step := s.Events.Start(n.Name, "load images", limit*time.Duration(s.TimeScale()))
		if err := step.End(loadOn(ctx, s, n.Name, a, limit, step)); err != nil {
			return ImagesLoaded{Node: n.Name, Images: []string{}, Left: err.Error()}, err
		}
		return ImagesLoaded{Node: n.Name, Images: a.Names}, nil
	})
	return append(loaded, left...), err
}

// loadable are the nodes to load images on, and those that are left out because their machines do not run. A node that was named must run.
func loadable(ctx context.Context, s *session.Session, names []string) (nodes []config.Node, left []ImagesLoaded, err error) {
	for _, name := range names {
		if _, err := s.Member(name); err != nil {
			return nil, nil, err
		}
	}
	var errs []error
	for _, n := range s.Cluster.Members() {
		if len(names) > 0 && !slices.Contains(names, n.Name) {
			continue
		}
		state, err := s.Machines.State(ctx, n.Name)
		switch {
		case err != nil:
			errs = append(errs, err)
		case state == machine.Running:
			nodes = append(nodes, n)
		case len(names) > 0:
			errs = append(errs, fmt.Errorf("%s: its machine is %s; next: labctl up", n.Name, state))
		default:
			left = append(left, ImagesLoaded{Node: n.Name, Images: []string{}, Left: "its machine is " + string(state)})
		}
	}
	if len(nodes) == 0 && len(errs) == 0 {
		errs = append(errs, errors.New("no machine of the lab runs; next: labctl up"))
	}
	return nodes, left, errors.Join(errs...)
}

// loadOn imports the archive on one node, and checks that the node then has the images by the names that kubelet looks for.
func loadOn(ctx context.Context, s *session.Session, name string, a *image.Archive, limit time.Duration, step *event.Step) error {
	ctx, cancel := s.Within(ctx, limit)
	defer cancel()
	archive, err := a.Open()
	if err != nil {
		return err
	}
	defer func() { _ = archive.Close() }()
	if err := ImportArchive(ctx, s, name, &progressReader{from: archive, step: step}); err != nil {
		if strings.Contains(err.Error(), "no space left on device") {
			return fmt.Errorf("%w\nnext: free space, see labctl ssh %s -- df -h /var/lib/containerd", err, name)
		}
		return err
	}
	has, err := ImagesOn(ctx, s, name)
	if err != nil {
		return err
	}
	for short, full := range a.Renamed {
		if !slices.Contains(has, short) { // containerd has completed the name, as it does for docker's archives
			continue
		}
		tag := node.Command{Argv: []string{"ctr", "--namespace", "k8s.io", "images", "tag", "--force", short, full}}
		if err := s.Nodes[name].Run(ctx, tag); err != nil {
			return err
		}
		has = append(has, full)
	}
	missing := slices.DeleteFunc(slices.Clone(a.Names), func(full string) bool { return slices.Contains(has, full) })
	if len(missing) > 0 {
		return fmt.Errorf("%s: after the import containerd does not have %s; next: labctl logs %s --unit containerd", name, strings.Join(missing, ", "), name)
	}
	return nil
}

// ImagesOn are the names of the images that the node's containerd has.
func ImagesOn(ctx context.Context, s *session.Session, name string) ([]string, error) {
	out, err := s.Nodes[name].Read(ctx, "ctr", "--namespace", "k8s.io", "images", "list", "--quiet")
	return strings.Fields(out), err
}

// ImportArchive streams an archive into the node's containerd. It pins the images: kubelet's garbage collection would remove them, and no
// registry is reachable to pull them again.
func ImportArchive(ctx context.Context, s *session.Session, name string, archive io.Reader) error {
	return s.Nodes[name].Run(ctx, node.Command{Stdin: archive, Argv: []string{
		"ctr", "--namespace", "k8s.io", "images", "import", "--local", "--snapshotter", "overlayfs", "--label", "io.cri-containerd.pinned=pinned", "-",
	}})
}

// progressReader shows every two seconds how much was read.
type progressReader struct {
	from io.Reader
	step *event.Step
	read int64
	said time.Time
}

func (r *progressReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.read += int64(n)
	if time.Since(r.said) > 2*time.Second {
		r.said = time.Now()
		r.step.Progress("%d MiB sent", r.read>>20)
	}
	return n, err
}
