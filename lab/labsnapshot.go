package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/event"
	"k8slab/lab/host"
	"k8slab/lab/machine"
)

// WholeSnapshot is the whole lab at one moment: memory, devices and disks of all its virtual machines, saved while all were paused.
type WholeSnapshot struct {
	Name    string    `json:"name"`
	Time    time.Time `json:"time"`
	Nodes   []string  `json:"nodes"`             // whose machines have it
	Missing []string  `json:"missing,omitempty"` // nodes of the lab whose machines do not: it cannot be restored
}

// labSnapshotBudget bounds what libvirt does to all machines. The memory of a machine of 4 GiB was saved in 10 s and restored in 2 s.
const labSnapshotBudget = 5 * time.Minute

var errContainerSnapshot = fmt.Errorf("%w: save etcd instead (labctl etcd snapshot save FILE), recreate the lab (labctl down, then labctl up, which takes a minute), or set libvirt.uri: qemu:///system", machine.ErrNoSnapshots)

// LabSnapshots lists the lab's snapshots, the oldest first. One that an interrupted save left has nodes missing.
func (l *Lab) LabSnapshots(ctx context.Context) ([]WholeSnapshot, error) {
	if err := l.haveVMs(); err != nil {
		return nil, err
	}
	if err := l.open(); err != nil {
		return nil, err
	}
	return l.labSnapshots(ctx)
}

// haveVMs refuses a lab that is not there, and one of containers.
func (l *Lab) haveVMs() error {
	if !l.state.exists() {
		return ErrNotUp
	}
	if l.uri == host.Containers {
		return errContainerSnapshot
	}
	return nil
}

func (l *Lab) labSnapshots(ctx context.Context) ([]WholeSnapshot, error) {
	byNode := map[string][]machine.Snapshot{}
	var names []string
	for _, n := range l.cluster.Members() {
		found, err := l.machines.Snapshots(ctx, n.Name)
		if err != nil {
			return nil, err
		}
		byNode[n.Name] = found
		names = append(names, n.Name)
	}
	return gather(names, byNode), nil
}

// gather makes the lab's snapshots of those of its machines, the oldest first.
func gather(nodes []string, byNode map[string][]machine.Snapshot) []WholeSnapshot {
	all := []WholeSnapshot{}
	at := func(name string) int {
		return slices.IndexFunc(all, func(s WholeSnapshot) bool { return s.Name == name })
	}
	for _, n := range nodes {
		for _, s := range byNode[n] {
			i := at(s.Name)
			if i < 0 {
				i = len(all)
				all = append(all, WholeSnapshot{Name: s.Name, Time: s.Time})
			}
			all[i].Nodes = append(all[i].Nodes, n)
			if s.Time.Before(all[i].Time) {
				all[i].Time = s.Time
			}
		}
	}
	for i, s := range all {
		all[i].Missing = slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return slices.Contains(s.Nodes, n) })
	}
	slices.SortStableFunc(all, func(a, b WholeSnapshot) int { return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.Name, b.Name)) })
	return all
}

var snapshotName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,38}[a-z0-9])?$`)

// LabSnapshotSave saves the whole lab at one moment. What an interrupted save of the name left is replaced, a whole snapshot is not.
func (l *Lab) LabSnapshotSave(ctx context.Context, name string) error {
	if !snapshotName.MatchString(name) {
		return fmt.Errorf("snapshot name %q: use up to 40 of a-z, 0-9, - and ., with a letter or digit at both ends", name)
	}
	return l.withSnapshots(ctx, "labctl snapshot save", func(ctx context.Context, all []WholeSnapshot) error {
		if i := slices.IndexFunc(all, func(s WholeSnapshot) bool { return s.Name == name }); i >= 0 && len(all[i].Missing) == 0 {
			return fmt.Errorf("there is a snapshot %s of %s; labctl snapshot delete %s removes it", name, all[i].Time.Local().Format(time.DateTime), name)
		}
		if err := l.allRun(ctx); err != nil {
			return err
		}
		if err := l.everyMachine(func(n string) error { return l.machines.DeleteSnapshot(ctx, n, name) }); err != nil {
			return err
		}
		step := l.events.Start("", "snapshot "+name, labSnapshotBudget)
		return step.End(l.saveAll(ctx, name, step))
	})
}

// saveAll finishes what libvirt has begun also when it is interrupted: half of a save is machines that are off, without their memory.
func (l *Lab) saveAll(ctx context.Context, name string, step *event.Step) (err error) {
	whole, cancel := finishing(ctx)
	defer cancel()
	step.Progress("pausing all machines")
	defer func() {
		after, cancel := finishing(ctx) // also when libvirt used up the other one
		defer cancel()
		if err != nil {
			err = errors.Join(err, l.everyMachine(func(n string) error { return l.machines.DeleteSnapshot(after, n, name) }))
		}
		err = errors.Join(err, l.goOn(after))
	}()
	if err := l.everyMachine(func(n string) error { return l.machines.Suspend(whole, n) }); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	step.Progress("saving memory and disks")
	return l.everyMachine(func(n string) error { return l.machines.SaveSnapshot(whole, n, name) })
}

// finishing is the context for what must not be left half done: it has a budget of its own.
func finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.WithoutCancel(ctx), labSnapshotBudget, fmt.Errorf("%s budget ran out", labSnapshotBudget))
}

// restorable says why the snapshot cannot be restored.
func restorable(name string, all []WholeSnapshot) error {
	var names []string
	for _, s := range all {
		switch {
		case s.Name != name:
			names = append(names, s.Name)
		case len(s.Missing) > 0:
			return fmt.Errorf("snapshot %s has nothing of %s: their machines were made later, or saving was interrupted; labctl snapshot delete %s removes it",
				name, strings.Join(s.Missing, ", "), name)
		default:
			return nil
		}
	}
	return fmt.Errorf("no snapshot %q; there are: %s", name, cmp.Or(strings.Join(names, ", "), "none (labctl snapshot save NAME)"))
}

// LabSnapshotDelete deletes the snapshot from every machine that has it.
func (l *Lab) LabSnapshotDelete(ctx context.Context, name string) error {
	return l.withSnapshots(ctx, "labctl snapshot delete", func(ctx context.Context, all []WholeSnapshot) error {
		i := slices.IndexFunc(all, func(s WholeSnapshot) bool { return s.Name == name })
		if i < 0 {
			return restorable(name, all)
		}
		step := l.events.Start("", "snapshot "+name, labSnapshotBudget)
		return step.End(l.everyMachine(func(n string) error { return l.machines.DeleteSnapshot(ctx, n, name) }))
	})
}

// withSnapshots does something with the lab of virtual machines for itself, and with the snapshots that it has.
func (l *Lab) withSnapshots(ctx context.Context, command string, do func(context.Context, []WholeSnapshot) error) error {
	release, err := lock(l.cluster.Name, command)
	if err != nil {
		return err
	}
	defer release()
	if err := l.haveVMs(); err != nil {
		return err
	}
	if err := l.connectHost(ctx); err != nil { // which starts libvirt, as after a restart of the computer
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, labSnapshotBudget+apiBudget+leaseBudget+proofBudget, errors.New("its budget ran out"))
	defer cancel()
	all, err := l.labSnapshots(ctx)
	if err != nil {
		return err
	}
	return do(ctx, all)
}

// allRun wants every machine to run: a snapshot of some is none of the lab.
func (l *Lab) allRun(ctx context.Context) error {
	var not []string
	for _, n := range l.cluster.Members() {
		state, err := l.machines.State(ctx, n.Name)
		if err != nil {
			return err
		}
		if state != machine.Running {
			not = append(not, fmt.Sprintf("%s is %s", n.Name, state))
		}
	}
	if len(not) > 0 {
		return fmt.Errorf("a snapshot is of the whole lab, and %s; run labctl up first", strings.Join(not, ", "))
	}
	return nil
}

func (l *Lab) everyMachine(do func(node string) error) error {
	return together(l.cluster.Members(), func(n config.Node) error { return do(n.Name) })
}

// goOn lets all machines run again and sets their clocks, which stood still, or went back.
func (l *Lab) goOn(ctx context.Context) error {
	return together(l.cluster.Members(), func(n config.Node) error {
		if err := l.machines.Resume(ctx, n.Name); err != nil {
			return err
		}
		return l.setClock(ctx, n)
	})
}
