package provision

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/event"
	"k8slab/lab/image"
	"k8slab/lab/machine"
	"k8slab/lab/session"
)

// pulledDir is where the first control plane has what the caches of the add-on registry pulled, a directory per registry, as distribution lays
// them out.
const pulledDir = "/var/lib/k8slab/pulled"

// blobDir is where such a directory has files that never change: their names are the digests of their contents.
const blobDir = "docker/registry/v2/blobs"

// keepBudget bounds how long `down` copies what caches pulled.
const keepBudget = 5 * time.Minute

// copier copies directories between a node and this computer: *node.Node.
type copier interface {
	Send(ctx context.Context, src, dst string) error
	ReceiveNew(ctx context.Context, src, dst string, without []string) error
}

// keptPulled is the directory of this computer's image cache that is for all labs what pulledDir is for one.
func keptPulled() (string, error) {
	dir, err := image.CacheDir()
	return filepath.Join(dir, "pulled"), err
}

// cached are the registries that have a cache.
func cached(c *config.Cluster) (all []config.Registry) {
	for _, r := range c.Registries {
		if r.Cache {
			all = append(all, r)
		}
	}
	return all
}

// keepPulled copies into this computer's image cache what the lab's caches of registries have pulled and it lacks. Without that the lab can go
// all the same: the next one pulls it again.
func keepPulled(ctx context.Context, s *session.Session) {
	registries, first := cached(s.Cluster), s.Cluster.ControlPlanes()[0].Name
	if len(registries) == 0 {
		return
	}
	step := s.Events.Start(first, "pulled images", keepBudget)
	ctx, cancel := context.WithTimeoutCause(ctx, keepBudget, fmt.Errorf("%s budget ran out", keepBudget))
	defer cancel()
	err := reachable(ctx, s, first)
	for i := 0; err == nil && i < len(registries); i++ {
		step.Progress("keeping those of %s for the next lab", registries[i].Name)
		err = keepPulledOf(ctx, s, first, registries[i])
	}
	if err != nil {
		step.EndWith("not all are kept, so that the next lab pulls them again: " + err.Error())
		return
	}
	_ = step.End(nil)
}

// reachable fails soon for a machine that does not run or does not answer.
func reachable(ctx context.Context, s *session.Session, node string) error {
	ctx, cancel := s.Within(ctx, 15*time.Second)
	defer cancel()
	state, err := s.MachineState(ctx, node)
	if err == nil && state != machine.Running {
		err = fmt.Errorf("the machine is %s", state)
	}
	if err == nil {
		_, err = s.Nodes[node].Read(ctx, "true")
	}
	return err
}

func keepPulledOf(ctx context.Context, s *session.Session, node string, r config.Registry) error {
	kept, err := keptPulled()
	if err == nil {
		err = os.MkdirAll(kept, 0o755)
	}
	if err != nil {
		return err
	}
	has, err := blobsIn(filepath.Join(kept, r.DirName()))
	if err != nil {
		return err
	}
	is := path.Join(pulledDir, r.DirName())
	if _, err := s.Nodes[node].Read(ctx, "test", "-d", is); err != nil {
		if session.Status(err) == 1 { // nothing was pulled
			return nil
		}
		return err
	}
	return s.Nodes[node].(copier).ReceiveNew(ctx, is, kept, has)
}

// blobsIn lists the blobs of a kept directory, relative to it.
func blobsIn(dir string) (blobs []string, err error) {
	err = filepath.WalkDir(filepath.Join(dir, blobDir), func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		blobs = append(blobs, strings.TrimPrefix(file, dir+"/"))
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return blobs, err
}

// GivePulled copies to the first control plane, for the caches of the add-on registry, what this computer kept of those of earlier labs. A
// cache that has something stays as it is.
func GivePulled(ctx context.Context, s *session.Session, step *event.Step) error {
	on := s.Nodes[s.Cluster.ControlPlanes()[0].Name]
	dir, err := keptPulled()
	if err != nil {
		return err
	}
	for _, r := range cached(s.Cluster) {
		kept := filepath.Join(dir, r.DirName())
		if _, err := os.Stat(kept); err != nil {
			continue
		}
		to := path.Join(pulledDir, r.DirName())
		if _, err := on.Read(ctx, "test", "-d", to); err == nil {
			continue
		}
		step.Progress("registry: copying the images of %s that are kept", r.Name)
		arriving := to + ".new" // whose name it loses when it is whole
		err = errors.Join(session.Do(ctx, on, "rm", "-rf", arriving), session.Do(ctx, on, "mkdir", "-p", pulledDir))
		if err == nil {
			err = on.(copier).Send(ctx, kept, arriving)
		}
		if err == nil {
			err = session.Do(ctx, on, "mv", "-T", arriving, to)
		}
		if err != nil {
			return fmt.Errorf("give the cache of %s what %s has: %w", r.Name, kept, err)
		}
		now := time.Now()
		_ = os.Chtimes(dir, now, now) // by which `labctl image prune` decides
	}
	return nil
}
