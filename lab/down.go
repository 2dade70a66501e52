package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8slab/lab/host"
	"k8slab/lab/machine"
)

// Down removes everything that the lab made on this computer, and with adopted also the machines of it that vagrant made: without, those
// keep it from removing anything. What else it did not make stays. Interrupted, it is run again.
func (l *Lab) Down(ctx context.Context, adopted bool) error {
	release, err := lock(l.cluster.Name, "labctl down")
	if err != nil {
		return err
	}
	defer release()
	step := l.events.Start("", "down", 0)
	if _, err := os.Stat(l.state.dir); os.IsNotExist(err) {
		step.EndWith(fmt.Sprintf("nothing to remove: lab %q does not exist", l.cluster.Name))
		return nil
	}
	return step.End(l.down(ctx, adopted))
}

func (l *Lab) down(ctx context.Context, adopted bool) error {
	if l.state.exists() {
		if err := l.removeAll(ctx, adopted); err != nil {
			return err
		}
	}
	// What says which daemon had the machines goes when there is nothing left to remove from it, and what describes the lab last, so that --lab finds
	// it after an interruption.
	entries, err := os.ReadDir(l.state.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.Contains([]string{madeFile, "id", "libvirt"}, e.Name()) {
			if err := os.RemoveAll(l.state.path(e.Name())); err != nil {
				return err
			}
		}
	}
	if err := os.RemoveAll(l.state.path("id")); err != nil {
		return err
	}
	return os.RemoveAll(l.state.dir)
}

func (l *Lab) removeAll(ctx context.Context, adopted bool) error {
	id, err := l.state.id()
	if err != nil {
		return err
	}
	dir := l.state.path("libvirt")
	if err := l.removeObjects(ctx, adopted); err != nil {
		return err
	}
	// Also after a run whose processes were all killed at once: what they left is found by the lab's identity.
	if err := host.Stop(ctx, dir); err != nil {
		return err
	}
	if err := machine.RemovePartition(ctx, l.partition(id)); err != nil {
		return err
	}
	if err := host.ScopeEnds(ctx, l.scope(id)); err != nil {
		return err
	}
	return errors.Join(host.ForgetKernel(id), host.NoAutostart(ctx, cgroupName(l.cluster.Name, id)))
}

// removeObjects removes the lab's domains and network from the daemon that has them.
func (l *Lab) removeObjects(ctx context.Context, adopted bool) error {
	h, err := l.connect()
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, host.ErrStarting) {
		return l.noVagrantDisks(adopted) // an own daemon that is gone: its processes are ended by host.Stop, its objects are files of the state
	}
	if err != nil {
		return err
	}
	if err := l.attach(h); err != nil {
		return err
	}
	defer l.machines.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, errors.New("2m0s budget ran out"))
	defer cancel()
	machines, err := l.machines.List(ctx)
	if err != nil {
		if h.Own { // a hung daemon of our own is ended with everything in its namespace
			return l.noVagrantDisks(adopted)
		}
		return err
	}
	if err := notOurs(machines); err != nil && !adopted {
		return err
	}
	errs := make([]error, len(machines))
	var wg sync.WaitGroup
	for i, m := range machines {
		wg.Go(func() {
			step := l.events.Start(m.Node, "delete", 0)
			errs[i] = step.End(l.machines.Delete(ctx, m.Node))
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := l.machines.DeleteNetwork(ctx); err != nil {
		var foreign *machine.ForeignError
		if !errors.As(err, &foreign) {
			return fmt.Errorf("network: %w", err)
		}
	}
	return l.machines.DeleteAllDisks(ctx)
}

// noVagrantDisks is notOurs where no daemon says who made what.
func (l *Lab) noVagrantDisks(adopted bool) error {
	machines, err := machine.VagrantDisks(host.OwnFile(l.state.path("libvirt"), l.poolDir()), l.cluster.Name)
	if err != nil || adopted {
		return err
	}
	return notOurs(machines)
}

// notOurs refuses to remove machines that vagrant made and believes to have.
func notOurs(machines []machine.Machine) error {
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
