package provision

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8slab/config"
	"k8slab/lab/event"
	"k8slab/lab/host"
	"k8slab/lab/image"
	"k8slab/lab/machine"
	"k8slab/lab/node"
	"k8slab/lab/session"
)

// Maker makes the machines of an opened lab.
type Maker struct {
	*session.Session

	bundling sync.Mutex
	bundled  image.Bundle
}

// For returns the Maker of the session's machines.
func For(s *session.Session) *Maker { return &Maker{Session: s} }

// Image builds what machines boot from, and uploads it to libvirt's storage pool if they need it there.
func (m *Maker) Image(ctx context.Context) (machine.Boot, error) {
	if m.Libvirt == nil { // machines that exist already have an image
		return machine.Boot{}, nil
	}
	boot, err := m.bootFiles(ctx)
	if err != nil || m.URI == host.Containers {
		return boot, err
	}
	step := m.Events.Start("", "storage pool", 0)
	boot, err = m.Libvirt.Publish(ctx, boot, func(done, size int64) { step.Progress("uploading: %d of %d MiB", done>>20, size>>20) })
	return boot, step.End(err)
}

func (m *Maker) bootFiles(ctx context.Context) (machine.Boot, error) {
	if m.URI == host.Containers {
		img, err := NodeImage(ctx, m.Session)
		return machine.Boot{Root: img.Root()}, err
	}
	if base := m.Cluster.Image.Base; base != "" {
		if _, err := m.bundle(ctx); err != nil {
			return machine.Boot{}, err
		}
		id, err := image.FileID(base)
		return machine.Boot{Base: base, ID: id}, err
	}
	_, disk, err := BuildDisk(ctx, m.Session)
	return bootFrom(disk), err
}

// NodeImage builds the image with the programs of the lab's nodes, from which also machines with a stock image get them.
func NodeImage(ctx context.Context, s *session.Session) (image.Image, error) {
	program, err := s.LabnodeBinary()
	if err != nil {
		return image.Image{}, err
	}
	img, err := image.Build(ctx, image.SpecOf(s.Cluster, program), s.Events)
	if err != nil {
		return img, err
	}
	return img, s.UsesImage("image", img.Dir)
}

// BuildDisk builds the node image and the disk of it.
func BuildDisk(ctx context.Context, s *session.Session) (image.Image, image.Disk, error) {
	img, err := NodeImage(ctx, s)
	if err != nil {
		return img, image.Disk{}, err
	}
	disk, err := img.BuildDisk(ctx, s.Events)
	if err == nil {
		err = s.UsesImage("disk", filepath.Dir(disk.Base))
	}
	return img, disk, err
}

func bootFrom(disk image.Disk) machine.Boot {
	return machine.Boot{Base: disk.Base, Kernel: disk.Kernel, Initrd: disk.Initrd, Cmdline: disk.Cmdline, ID: disk.ID}
}

// UploadedImages lists the images that were uploaded to this computer's libvirt.
func UploadedImages(ctx context.Context) ([]image.Entry, error) {
	return uploaded(func(socket string) ([]machine.Base, error) { return machine.Bases(ctx, socket) })
}

// PruneUploadedImages removes images that no machine uses and that were uploaded before the time.
func PruneUploadedImages(ctx context.Context, before time.Time) ([]image.Entry, error) {
	return uploaded(func(socket string) ([]machine.Base, error) { return machine.PruneBases(ctx, socket, before) })
}

func uploaded(get func(storageSocket string) ([]machine.Base, error)) ([]image.Entry, error) {
	h, err := host.Computers(host.VirtualMachines)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	bases, err := get(h.StorageSocket())
	var entries []image.Entry
	for _, b := range bases {
		entries = append(entries, image.Entry{Name: "pool " + b.Pool + ": " + b.Name, Size: b.Size, Used: b.Last})
	}
	return entries, err
}

// ImportBudget bounds the import of all images on one node. It is long, because several nodes share this computer's disk.
const ImportBudget = 5 * time.Minute

// ImagesLoaded is what LoadImages did on one node.
type ImagesLoaded struct {
	Node   string   `json:"node"`
	Images []string `json:"images"`
	Left   string   `json:"left,omitempty"` // why it has none of them
}

// LoadImages imports an archive on the named nodes, or on all whose machines run, all at once. A node that has an image by the same name
// gets this one instead. What all nodes get, machines that are made later get too. What it did before it failed on some of the nodes is returned with the error.
func LoadImages(ctx context.Context, s *session.Session, a *image.Archive, names []string) ([]ImagesLoaded, error) {
	nodes, left, err := loadable(ctx, s, names)
	if err != nil {
		return nil, err
	}
	kept := make(chan error, 1)
	go func() {
		if len(names) > 0 || s.Cluster.OverSSH() {
			kept <- nil
			return
		}
		kept <- keep(s.Lab, a)
	}()
	loaded, err := session.FromEachNode(nodes, func(n config.Node) (ImagesLoaded, error) {
		limit := loadBudget(a)
		step := s.Events.Start(n.Name, "load images", limit*time.Duration(s.TimeScale()))
		if err := step.End(loadOn(ctx, s, n.Name, a, limit, step)); err != nil {
			return ImagesLoaded{Node: n.Name, Images: []string{}, Left: err.Error()}, err
		}
		return ImagesLoaded{Node: n.Name, Images: a.Names}, nil
	})
	return append(loaded, left...), errors.Join(err, <-kept)
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
		if has[short] == "" { // containerd has completed the name, as it does for docker's archives
			continue
		}
		tag := node.Command{Argv: []string{"ctr", "--namespace", "k8s.io", "images", "tag", "--force", short, full}}
		if err := s.Nodes[name].Run(ctx, tag); err != nil {
			return err
		}
		has[full] = has[short]
	}
	missing := slices.DeleteFunc(slices.Clone(a.Names), func(full string) bool { return has[full] != "" })
	if len(missing) > 0 {
		return fmt.Errorf("%s: after the import containerd does not have %s; next: labctl logs %s --unit containerd", name, strings.Join(missing, ", "), name)
	}
	return nil
}

// ImagesOn are the images that the node's containerd has: the digest of each manifest, by the image's name.
func ImagesOn(ctx context.Context, s *session.Session, name string) (map[string]string, error) {
	out, err := s.Nodes[name].Read(ctx, "ctr", "--namespace", "k8s.io", "images", "list")
	has := map[string]string{}
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 2 { // its name, type and digest
			has[fields[0]] = fields[2]
		}
	}
	return has, err
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
