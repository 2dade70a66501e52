package provision

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
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// Snapshot is the whole lab at one moment: memory, devices and disks of all its virtual machines, saved while all were paused.
type Snapshot struct {
	Name    string    `json:"name"`
	Time    time.Time `json:"time"`
	Nodes   []string  `json:"nodes"`             // whose machines have it
	Missing []string  `json:"missing,omitempty"` // nodes of the lab whose machines do not: it cannot be restored
}

// SnapshotBudget bounds what libvirt does to all machines. The memory of a machine of 4 GiB was saved in 10 s and restored in 2 s.
const SnapshotBudget = 5 * time.Minute

var errContainerSnapshot = fmt.Errorf("%w: save etcd instead (labctl etcd snapshot save FILE), recreate the lab (labctl down, then labctl up, which takes a minute), or set libvirt.uri: qemu:///system", machine.ErrNoSnapshots)

// snapshotter is a source of machines that can be saved and restored whole.
type snapshotter interface {
	SaveSnapshot(ctx context.Context, node, name string) error
	RevertSnapshot(ctx context.Context, node, name string) error
	DeleteSnapshot(ctx context.Context, node, name string) error
	Snapshots(ctx context.Context, node string) ([]machine.Snapshot, error)
}

// saverOf is what saves and restores the lab's machines.
func saverOf(s *session.Session) (snapshotter, error) {
	if m, ok := s.Machines.(snapshotter); ok {
		return m, nil
	}
	return nil, fmt.Errorf("lab %s: its machines cannot be saved and restored: only libvirt's can", s.Cluster.Name)
}

// HaveVMs refuses a lab that is not there, and one of containers.
func HaveVMs(l state.Lab) error {
	if !l.Exists() {
		return state.ErrNotUp
	}
	if l.URI == host.Containers {
		return errContainerSnapshot
	}
	return nil
}

// Snapshots lists the lab's snapshots, the oldest first. One that an interrupted save left has nodes missing.
func Snapshots(ctx context.Context, s *session.Session) ([]Snapshot, error) {
	machines, err := saverOf(s)
	if err != nil {
		return nil, err
	}
	byNode := map[string][]machine.Snapshot{}
	var names []string
	for _, n := range s.Cluster.Members() {
		found, err := machines.Snapshots(ctx, n.Name)
		if err != nil {
			return nil, err
		}
		byNode[n.Name] = found
		names = append(names, n.Name)
	}
	return gather(names, byNode), nil
}

// gather makes the lab's snapshots of those of its machines, the oldest first.
func gather(nodes []string, byNode map[string][]machine.Snapshot) []Snapshot {
	all := []Snapshot{}
	at := func(name string) int {
		return slices.IndexFunc(all, func(s Snapshot) bool { return s.Name == name })
	}
	for _, n := range nodes {
		for _, s := range byNode[n] {
			i := at(s.Name)
			if i < 0 {
				i = len(all)
				all = append(all, Snapshot{Name: s.Name, Time: s.Time})
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
	slices.SortStableFunc(all, func(a, b Snapshot) int { return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.Name, b.Name)) })
	return all
}

var snapshotName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,38}[a-z0-9])?$`)

// CheckSnapshotName refuses what no snapshot can be called.
func CheckSnapshotName(name string) error {
	if !snapshotName.MatchString(name) {
		return fmt.Errorf("snapshot name %q: use up to 40 of a-z, 0-9, - and ., with a letter or digit at both ends", name)
	}
	return nil
}

// SaveSnapshot saves the whole lab at one moment. What an interrupted save of the name left is replaced, a whole snapshot is not.
func SaveSnapshot(ctx context.Context, s *session.Session, name string) error {
	all, err := Snapshots(ctx, s)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(all, func(s Snapshot) bool { return s.Name == name }); i >= 0 && len(all[i].Missing) == 0 {
		return fmt.Errorf("there is a snapshot %s of %s; labctl snapshot delete %s removes it", name, all[i].Time.Local().Format(time.DateTime), name)
	}
	if err := allRun(ctx, s); err != nil {
		return err
	}
	machines, err := saverOf(s)
	if err != nil {
		return err
	}
	if err := everyMachine(s, func(n string) error { return machines.DeleteSnapshot(ctx, n, name) }); err != nil {
		return err
	}
	step := s.Events.Start("", "snapshot "+name, SnapshotBudget)
	return step.End(saveAll(ctx, s, machines, name, step))
}

// saveAll finishes what libvirt has begun also when it is interrupted: half of a save is machines that are off, without their memory.
func saveAll(ctx context.Context, s *session.Session, machines snapshotter, name string, step *event.Step) (err error) {
	whole, cancel := finishing(ctx)
	defer cancel()
	step.Progress("pausing all machines")
	defer func() {
		after, cancel := finishing(ctx) // also when libvirt used up the other one
		defer cancel()
		if err != nil {
			err = errors.Join(err, everyMachine(s, func(n string) error { return machines.DeleteSnapshot(after, n, name) }))
		}
		err = errors.Join(err, goOn(after, s))
	}()
	if err := everyMachine(s, func(n string) error { return s.Machines.Suspend(whole, n) }); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	step.Progress("saving memory and disks")
	return everyMachine(s, func(n string) error { return machines.SaveSnapshot(whole, n, name) })
}

// finishing is the context for what must not be left half done: it has a budget of its own.
func finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.WithoutCancel(ctx), SnapshotBudget, fmt.Errorf("%s budget ran out", SnapshotBudget))
}

// restorable says why the snapshot cannot be restored.
func restorable(name string, all []Snapshot) error {
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

// DeleteSnapshot deletes the snapshot from every machine that has it.
func DeleteSnapshot(ctx context.Context, s *session.Session, name string) error {
	all, err := Snapshots(ctx, s)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(s Snapshot) bool { return s.Name == name }) {
		return restorable(name, all)
	}
	machines, err := saverOf(s)
	if err != nil {
		return err
	}
	step := s.Events.Start("", "snapshot "+name, SnapshotBudget)
	return step.End(everyMachine(s, func(n string) error { return machines.DeleteSnapshot(ctx, n, name) }))
}

// allRun wants every machine to run: a snapshot of some is none of the lab.
func allRun(ctx context.Context, s *session.Session) error {
	var not []string
	for _, n := range s.Cluster.Members() {
		state, err := s.Machines.State(ctx, n.Name)
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

func everyMachine(s *session.Session, do func(node string) error) error {
	return session.ForEachNode(s.Cluster.Members(), func(n config.Node) error { return do(n.Name) })
}

// goOn lets all machines run again and sets their clocks, which stood still, or went back.
func goOn(ctx context.Context, s *session.Session) error {
	return session.ForEachNode(s.Cluster.Members(), func(n config.Node) error {
		if err := s.Machines.Resume(ctx, n.Name); err != nil {
			return err
		}
		return setClock(ctx, s, n)
	})
}
