// Package machine makes, runs and removes the lab's libvirt domains and their network: system containers (lxc) or virtual machines
// (qemu), told apart only here. Every object carries the lab's identity, and objects that do not are never touched.
package machine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/digitalocean/go-libvirt"
	"github.com/gofrs/flock"

	"k8slab/lab/wait"
)

// State is what a domain does.
type State string

// The states of a domain.
const (
	Absent  State = "absent"
	Silent  State = "silent" // its SSH server does not answer; only of machines that labctl did not make
	Running State = "running"
	Paused  State = "paused"
	Off     State = "off"
	Crashed State = "crashed"
)

// Config of the machines of one lab.
type Config struct {
	URI           string // qemu:///system or lxc:///system
	Socket        string // of the daemon
	NetworkSocket string // of the network driver: another daemon where libvirt is modular
	StorageSocket string // of the storage driver: another daemon where libvirt is modular
	Lab           string // name
	ID            string // UUID of this lab, which marks its objects
	Dir           string // where containers' disks are, a directory per node
	Pool          string // storage pool for virtual machines
	PoolDir       string // its directory, if labctl makes the pool
	Partition     string // path of the containers' cgroup partition, "" for the daemon's default
	KVM           bool   // hardware virtualization works
	Mutated       func(what string)
}

// Lab is the machines of one lab.
type Lab struct {
	cfg      Config
	domains  *conn
	nets     *conn
	storage  *conn
	defining sync.Mutex
}

// Open returns the lab's machines. It connects when first used.
func Open(cfg Config) *Lab {
	l := &Lab{cfg: cfg, domains: newConn(cfg.Socket, cfg.URI), storage: newConn(cfg.StorageSocket, storageURI)}
	l.nets = l.domains
	if cfg.NetworkSocket != cfg.Socket {
		l.nets = newConn(cfg.NetworkSocket, networkURI)
	}
	if l.cfg.Mutated == nil {
		l.cfg.Mutated = func(string) {}
	}
	return l
}

// Close closes the connections.
func (l *Lab) Close() {
	l.domains.close()
	l.nets.close()
	l.storage.close()
}

// Machine is one domain of the lab.
type Machine struct {
	Node  string
	State State
	ID    string // UUID of the domain
	Maker Maker
}

func (l *Lab) domainName(node string) string { return l.cfg.Lab + "-" + node }

func (l *Lab) dir(node string) string { return filepath.Join(l.cfg.Dir, node) }

// MAC is the fixed hardware address of a node of a lab, in QEMU's range for locally made devices.
func MAC(labID, node string) string {
	h := sha256.Sum256([]byte(labID + "/" + node))
	return fmt.Sprintf("52:54:00:%02x:%02x:%02x", h[0], h[1], h[2])
}

// Ensure makes the machine if it is absent, starts it if it is off and resumes it if it is paused. An existing machine keeps its size and
// image.
func (l *Lab) Ensure(ctx context.Context, spec Spec) error {
	dom, state, err := l.lookup(ctx, spec.Node)
	if err != nil {
		return err
	}
	switch state {
	case Running:
		return nil
	case Paused:
		return l.Resume(ctx, spec.Node)
	case Crashed: // libvirt keeps a crashed machine for inspection, and counts it as active
		if err := l.PowerOff(ctx, spec.Node); err != nil {
			return err
		}
	case Absent:
		if err := l.makeDisk(ctx, spec); err != nil {
			return fmt.Errorf("%s: disk: %w", spec.Node, err)
		}
		text, err := l.describe(ctx, spec)
		if err != nil {
			return err
		}
		// One after another: libvirt's validation, by libxml2, is not safe for two threads the first time ("Unable to parse RNG").
		l.defining.Lock()
		err = l.change(ctx, "define "+l.domainName(spec.Node), func(v *libvirt.Libvirt) (err error) {
			dom, err = v.DomainDefineXMLFlags(text, libvirt.DomainDefineValidate)
			return err
		})
		l.defining.Unlock()
		if err != nil {
			return err
		}
	}
	return l.start(ctx, spec.Node, dom)
}

// startLock is taken for each start of a container on this computer. libvirt asks the kernel for a free loop device and then attaches the
// disk to it: if two do so at once, one fails ("Device or resource busy"). Only root can make a file there.
const startLock = "/run/k8slab-start.lock"

// startBudget bounds the wait for all other starts on this computer.
const startBudget = 2 * time.Minute

func (l *Lab) start(ctx context.Context, node string, dom libvirt.Domain) error {
	if l.container() {
		if err := l.linkLoops(node); err != nil {
			return err
		}
		lock := flock.New(startLock)
		err := wait.For(ctx, "the start of other containers", startBudget, 10*time.Millisecond, func(context.Context) error {
			switch free, err := lock.TryLock(); {
			case err != nil:
				return wait.Hopeless(err)
			case !free:
				return errors.New("another process starts one")
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("start %s: %s: %w", dom.Name, startLock, err)
		}
		defer func() { _ = lock.Close() }()
	}
	return again(func() error {
		return l.change(ctx, "start "+dom.Name, func(v *libvirt.Libvirt) error {
			_, err := v.DomainCreateWithFlags(dom, 0)
			return err
		})
	})
}

// change is a call that changes something, and is reported.
func (l *Lab) change(ctx context.Context, what string, do func(*libvirt.Libvirt) error) error {
	l.cfg.Mutated("libvirt " + what)
	return l.domains.call(ctx, what, do)
}

// State returns what the node's machine does.
func (l *Lab) State(ctx context.Context, node string) (State, error) {
	_, state, err := l.lookup(ctx, node)
	return state, err
}

// PowerOff ends the machine at once, like pulling the plug.
func (l *Lab) PowerOff(ctx context.Context, node string) error {
	dom, state, err := l.lookup(ctx, node)
	if err != nil || state == Absent || state == Off {
		return err
	}
	// libvirt can fail when a container's cgroups vanish while it ends the processes in them. The next attempt finds them gone.
	return wait.For(ctx, "power off "+dom.Name, powerOffBudget, 100*time.Millisecond, func(ctx context.Context) error {
		if l.container() {
			if err := thaw(containerCgroup(dom.ID)); err != nil {
				return err
			}
		}
		err := l.change(ctx, "power off "+dom.Name, func(v *libvirt.Libvirt) error { return v.DomainDestroyFlags(dom, 0) })
		if is(err, libvirt.ErrOperationInvalid) || is(err, libvirt.ErrNoDomain) { // it has ended
			return nil
		}
		return err
	})
}

const powerOffBudget = 20 * time.Second

// Suspend stops the machine's processors; its memory and devices stay.
func (l *Lab) Suspend(ctx context.Context, node string) error {
	dom, state, err := l.lookup(ctx, node)
	if err != nil || state == Paused {
		return err
	}
	return l.change(ctx, "suspend "+dom.Name, func(v *libvirt.Libvirt) error { return v.DomainSuspend(dom) })
}

// Resume undoes Suspend.
func (l *Lab) Resume(ctx context.Context, node string) error {
	dom, state, err := l.lookup(ctx, node)
	if err != nil || state == Running {
		return err
	}
	return l.change(ctx, "resume "+dom.Name, func(v *libvirt.Libvirt) error { return v.DomainResume(dom) })
}

// Delete removes the machine and its disk. An absent machine's disk is removed too.
func (l *Lab) Delete(ctx context.Context, node string) error {
	if err := l.PowerOff(ctx, node); err != nil {
		return err
	}
	dom, state, err := l.lookup(ctx, node)
	if err != nil {
		return err
	}
	if err := l.deleteNodesVolumes(ctx, node); err != nil {
		return err
	}
	if state != Absent {
		err := l.change(ctx, "undefine "+dom.Name, func(v *libvirt.Libvirt) error {
			return v.DomainUndefineFlags(dom, l.undefineFlags())
		})
		if err != nil && !is(err, libvirt.ErrNoDomain) {
			return err
		}
	}
	for link := range l.loops(node) {
		if err := os.RemoveAll(link); err != nil {
			return err
		}
	}
	return os.RemoveAll(l.dir(node))
}

func (l *Lab) undefineFlags() libvirt.DomainUndefineFlagsValues {
	if l.container() {
		return 0 // its driver knows no flags
	}
	return libvirt.DomainUndefineManagedSave | libvirt.DomainUndefineSnapshotsMetadata | libvirt.DomainUndefineNvram
}

func (l *Lab) container() bool { return strings.HasPrefix(l.cfg.URI, "lxc:") }

// List returns the lab's machines, including those that cluster.yaml no longer has.
func (l *Lab) List(ctx context.Context) ([]Machine, error) {
	var doms []libvirt.Domain
	err := l.domains.call(ctx, "list domains", func(v *libvirt.Libvirt) (err error) {
		doms, _, err = v.ConnectListAllDomains(1, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	var machines []Machine
	for _, dom := range doms {
		mark, err := l.mark(ctx, dom)
		if is(err, libvirt.ErrNoDomain) { // gone since it was listed
			continue
		}
		if err != nil {
			return nil, err
		}
		if mark.ID != l.cfg.ID {
			continue
		}
		state, err := l.state(ctx, dom)
		if err != nil {
			return nil, err
		}
		machines = append(machines, Machine{Node: mark.Node, State: state, ID: uuidString(dom.UUID), Maker: mark.Maker})
	}
	return machines, nil
}

// lookup finds the node's domain. A domain of its name that is not this lab's is an error.
func (l *Lab) lookup(ctx context.Context, node string) (dom libvirt.Domain, state State, err error) {
	name := l.domainName(node)
	err = l.domains.call(ctx, "look up "+name, func(v *libvirt.Libvirt) (err error) {
		dom, err = v.DomainLookupByName(name)
		return err
	})
	if is(err, libvirt.ErrNoDomain) {
		return dom, Absent, nil
	}
	if err != nil {
		return dom, "", err
	}
	mark, err := l.mark(ctx, dom)
	if is(err, libvirt.ErrNoDomain) { // gone since it was found
		return dom, Absent, nil
	}
	if err != nil {
		return dom, "", err
	}
	if mark.ID != l.cfg.ID {
		return dom, "", &ForeignError{Kind: "domain", Name: name, Owner: mark.Lab}
	}
	state, err = l.state(ctx, dom)
	return dom, state, err
}

func (l *Lab) state(ctx context.Context, dom libvirt.Domain) (State, error) {
	var code int32
	err := l.domains.call(ctx, "state of "+dom.Name, func(v *libvirt.Libvirt) (err error) {
		code, _, err = v.DomainGetState(dom, 0)
		return err
	})
	if err != nil {
		return "", err
	}
	switch libvirt.DomainState(code) {
	case libvirt.DomainRunning, libvirt.DomainBlocked, libvirt.DomainShutdown:
		return Running, nil
	case libvirt.DomainPaused, libvirt.DomainPmsuspended:
		return Paused, nil
	case libvirt.DomainCrashed:
		return Crashed, nil
	default:
		return Off, nil
	}
}
