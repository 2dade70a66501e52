package provision

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8slab/lab/event"
	"k8slab/lab/host"
	"k8slab/lab/kubefile"
	"k8slab/lab/machine"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// Down removes everything that the lab made on this computer. With adopted it also removes the lab's machines that vagrant made; without,
// it refuses to remove anything while there are such machines. After an interruption it can be run again.
func Down(ctx context.Context, l state.Lab, events *event.Stream, o session.Options, adopted bool) error {
	step := events.Start("", "down", 0)
	if _, err := os.Stat(l.Path()); os.IsNotExist(err) {
		step.EndWith(fmt.Sprintf("nothing to remove: lab %q does not exist", l.Cluster.Name))
		return nil
	}
	return step.End(down(ctx, l, events, o, adopted))
}

func down(ctx context.Context, l state.Lab, events *event.Stream, o session.Options, adopted bool) error {
	if l.Exists() {
		if err := removeAll(ctx, l, events, o, adopted); err != nil {
			return err
		}
	}
	if err := kubefile.Remove(ctx, l); err != nil {
		return err
	}
	// The id and the daemon's directory go last: after an interruption they lead to what is left to remove. So does the lab's description,
	// for --lab.
	entries, err := os.ReadDir(l.Path())
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.Contains([]string{state.MadeFile, "id", "libvirt"}, e.Name()) {
			if err := os.RemoveAll(l.Path(e.Name())); err != nil {
				return err
			}
		}
	}
	if err := os.RemoveAll(l.Path("id")); err != nil {
		return err
	}
	return os.RemoveAll(l.Path())
}

func removeAll(ctx context.Context, l state.Lab, events *event.Stream, o session.Options, adopted bool) error {
	id, err := l.ID()
	if err != nil {
		return err
	}
	dir := session.DaemonDir(l)
	if err := removeObjects(ctx, l, events, o, adopted); err != nil {
		return err
	}
	// Also when labctl and its daemon were killed at once: what they left is found by the lab's UUID.
	if err := host.Stop(ctx, dir); err != nil {
		return err
	}
	if err := machine.RemovePartition(ctx, session.Partition(l, id)); err != nil {
		return err
	}
	if err := host.ScopeEnds(ctx, session.Scope(l, id)); err != nil {
		return err
	}
	return errors.Join(host.ForgetKernel(id), host.NoAutostart(ctx, session.CgroupName(l.Cluster.Name, id)))
}

// removeObjects removes the lab's domains and network from the daemon that has them.
func removeObjects(ctx context.Context, l state.Lab, events *event.Stream, o session.Options, adopted bool) error {
	h, err := session.Connect(l)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, host.ErrStarting) {
		return refuseVagrantDisks(l, adopted) // the lab's own daemon is gone: host.Stop ends its processes, and its objects are files of the state
	}
	if err != nil {
		return err
	}
	s, err := session.Open(l, h, events, o)
	if err != nil {
		return err
	}
	defer s.Close()
	keepPulled(ctx, s)
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, errors.New("2m0s budget ran out"))
	defer cancel()
	machines, err := s.Machines.List(ctx)
	if err != nil {
		if h.Own { // a hung daemon of the lab's own: host.Stop ends it and everything in its namespace
			return refuseVagrantDisks(l, adopted)
		}
		return err
	}
	if err := refuseVagrantMachines(machines); err != nil && !adopted {
		return err
	}
	errs := make([]error, len(machines))
	var wg sync.WaitGroup
	for i, m := range machines {
		wg.Go(func() {
			step := events.Start(m.Node, "delete", 0)
			errs[i] = step.End(s.Machines.Delete(ctx, m.Node))
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := s.Libvirt.DeleteNetwork(ctx); err != nil {
		var foreign *machine.ForeignError
		if !errors.As(err, &foreign) {
			return fmt.Errorf("network: %w", err)
		}
	}
	return s.Libvirt.DeleteAllDisks(ctx)
}

// refuseVagrantDisks is refuseVagrantMachines without a daemon to ask: it looks for vagrant's disks.
func refuseVagrantDisks(l state.Lab, adopted bool) error {
	machines, err := machine.VagrantDisks(host.OwnFile(session.DaemonDir(l), session.PoolDir(l)), l.Cluster.Name)
	if err != nil || adopted {
		return err
	}
	return refuseVagrantMachines(machines)
}

// refuseVagrantMachines refuses to remove machines that vagrant made and still manages.
func refuseVagrantMachines(machines []machine.Machine) error {
	var names []string
	for _, m := range machines {
		if m.Maker != machine.Labctl {
			names = append(names, m.Node)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return fmt.Errorf("vagrant made the machines of %s; nothing was removed; next: vagrant destroy %s, and this again; or labctl down --adopted, which removes them too",
		strings.Join(names, ", "), strings.Join(names, " "))
}
