package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"k8slab/config"
	"k8slab/lab/join"
	"k8slab/lab/machine"
)

// moment is what a snapshot has of a machine: memory, disk and, of a control plane, the cluster in its etcd.
type moment struct {
	at      time.Time
	facts   join.Facts
	files   map[string]string
	voter   bool
	members []member
	objects []byte
}

// Snapshots lists the machine's.
func (m worldMachines) Snapshots(_ context.Context, name string) (all []machine.Snapshot, err error) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	for id, saved := range m.w.box(name).saved {
		all = append(all, machine.Snapshot{Name: id, Time: saved.at})
	}
	return all, m.w.called("libvirt: snapshots of " + name)
}

// SaveSnapshot takes three steps, as libvirt's does: the machine is off while its disk is saved.
func (m worldMachines) SaveSnapshot(_ context.Context, name, id string) error {
	var memory moment
	err := m.do(name, "save memory of", func(b *box) {
		for _, other := range m.w.machines {
			if other.state == machine.Running {
				m.w.broken = fmt.Errorf("%s is saved while %s runs", name, other.node.Name)
			}
		}
		memory, b.state = m.w.momentOf(b), machine.Off
	})
	if err != nil {
		return err
	}
	if err := m.do(name, "save snapshot "+id+" of", func(b *box) {
		if b.saved == nil {
			b.saved = map[string]moment{}
		}
		b.saved[id] = memory
	}); err != nil {
		return err
	}
	return m.do(name, "restore memory of", func(b *box) { b.state = machine.Paused })
}

// RevertSnapshot makes the machine what it was; it stays paused.
func (m worldMachines) RevertSnapshot(_ context.Context, name, id string) error {
	if err := m.do(name, "power off", func(b *box) { b.state = machine.Off }); err != nil {
		return err
	}
	missing := false
	err := m.do(name, "revert to snapshot "+id, func(b *box) {
		saved, there := b.saved[id]
		if missing = !there; missing {
			return
		}
		b.facts, b.files, b.voter, b.state = saved.facts, maps.Clone(saved.files), saved.voter, machine.Paused
		if b.node.Role == config.ControlPlane {
			m.w.members, m.w.objects = nil, map[string]object{}
			for _, one := range saved.members {
				m.w.members = append(m.w.members, &one)
			}
			_ = json.Unmarshal(saved.objects, &m.w.objects)
		}
	})
	if missing {
		err = fmt.Errorf("%s has no snapshot %s", name, id)
	}
	return err
}

// DeleteSnapshot deletes what is there.
func (m worldMachines) DeleteSnapshot(_ context.Context, name, id string) error {
	m.w.mu.Lock()
	_, there := m.w.box(name).saved[id]
	m.w.mu.Unlock()
	if !there {
		return nil
	}
	return m.do(name, "delete snapshot "+id+" of", func(b *box) { delete(b.saved, id) })
}

// momentOf is the machine as it is. The caller has the lock.
func (w *world) momentOf(b *box) moment {
	now := moment{at: time.Now().Truncate(time.Second), facts: b.facts, files: maps.Clone(b.files), voter: b.voter}
	if b.node.Role == config.ControlPlane {
		for _, one := range w.members {
			now.members = append(now.members, *one)
		}
		now.objects, _ = json.Marshal(w.objects)
	}
	return now
}
