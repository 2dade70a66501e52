package fact

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"k8slab/lab/event"
	"k8slab/lab/join"
)

// Peer is another machine, whose ports are dialled.
type Peer struct {
	Name, Role, IP string
}

// Options of the collecting inside a node.
type Options struct {
	Role     string        // that the machine is to have
	Endpoint string        // HOST:PORT of the cluster's API server; "" is not asked for
	Since    time.Duration // how far back journals are read; 0 is the last boot
	Recent   bool          // read no more of them than can explain what is wrong now
	Peers    []Peer
	Patience int // how many times longer than usual each question may take; 0 is once, and more where the processor is emulated
}

// NoTexts as Options.Since has no journal and no log read. An older labnode reads that much of them.
const NoTexts = time.Nanosecond

// The limits inside a node. A healthy one takes a fraction of them.
const (
	nodeLimit    = 4500 * time.Millisecond // of everything
	questionTime = 3500 * time.Millisecond // of one question
)

// collector gathers the facts of the machine that it runs on, each kind by itself.
type collector struct {
	m        join.Machine
	o        Options
	patience time.Duration // see join.Machine
	stream   streamFunc    // runs a program whose output may be large

	mu   sync.Mutex
	node Node
}

// Collect reads what the machine says of itself. It does not fail: what could not be read is in Errors.
func Collect(ctx context.Context, m join.Machine, o Options) Node {
	return collect(ctx, m, o, streamProgram)
}

func collect(ctx context.Context, m join.Machine, o Options, stream streamFunc) Node {
	m.AtLeast = o.Patience
	m.Run = remembered(m.Run)
	patience := m.Patience()
	ctx, cancel := context.WithTimeoutCause(ctx, patience*nodeLimit, fmt.Errorf("no answer within %s", patience*nodeLimit))
	defer cancel()
	began := time.Now()
	c := &collector{m: m, o: o, patience: patience, stream: stream}
	c.node = Node{Time: m.Now().UTC(), Units: map[string]Unit{}, Errors: map[string]string{}}
	early := c.etcdMetrics(ctx)
	questions := c.organs()
	maps.Copy(questions, map[string]func(context.Context) error{
		"facts": c.facts, "checks": c.checks, "member": c.member, "units": c.units, "certificates": c.certificates,
		"dials": c.dials, "overlay": c.overlay, "machine": c.machine, "network": c.network, "containers": c.containers, "texts": c.texts,
		"files": c.files,
	})
	c.all(ctx, questions)
	c.etcdDisk(early, c.laterMetrics(ctx, early))
	c.mu.Lock()
	defer c.mu.Unlock()
	node := c.node
	node.Errors = maps.Clone(node.Errors) // a question that is still at work may write
	node.Units = maps.Clone(node.Units)
	node.Organs = slices.Clone(node.Organs)
	settled(&node)
	node.Elapsed = time.Since(began).Round(time.Millisecond).Seconds()
	return node
}

// remembered runs each program once: several questions ask for the same, such as the packet filter's rules. A program that failed is run again.
func remembered(run func(context.Context, ...string) (string, error)) func(context.Context, ...string) (string, error) {
	type answer struct {
		sync.Mutex
		known bool
		text  string
	}
	var answers sync.Map
	return func(ctx context.Context, argv ...string) (string, error) {
		kept, _ := answers.LoadOrStore(strings.Join(argv, "\x00"), &answer{})
		a := kept.(*answer)
		a.Lock()
		defer a.Unlock()
		if a.known {
			return a.text, nil
		}
		text, err := run(ctx, argv...)
		a.text, a.known = text, err == nil
		return text, err
	}
}

// all asks everything at once and waits no longer than the whole may take. An emulated machine is asked one thing after another: all at
// once would take it as long, and every answer would come too late.
func (c *collector) all(ctx context.Context, questions map[string]func(context.Context) error) {
	var g errgroup.Group
	if c.m.Emulated() {
		g.SetLimit(1)
	}
	for name, ask := range questions {
		g.Go(func() error {
			limit := c.patience * questionTime
			ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- guarded(ctx, ask) }()
			select {
			case err := <-done:
				c.failed(name, err)
			case <-ctx.Done():
				select {
				case err := <-done:
					c.failed(name, err)
				case <-time.After(500 * time.Millisecond): // its own error says more
					c.failed(name, context.Cause(ctx))
				}
			}
			return nil
		})
	}
	_ = g.Wait()
}

// guarded turns a panic into an error, so that the other questions still get their answers.
func guarded(ctx context.Context, ask func(context.Context) error) (err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("this program failed: %v", broken)
		}
	}()
	return ask(ctx)
}

func (c *collector) failed(what string, err error) {
	if err == nil {
		return
	}
	c.set(func(n *Node) { n.Errors[what] = event.Redact(err.Error()) })
}

// organs are the questions about a member's organs.
func (c *collector) organs() map[string]func(context.Context) error {
	all := map[string]func(context.Context) error{}
	for _, o := range wanted(c.m) {
		all[o.asked()] = func(ctx context.Context) error {
			w := &measurer{m: c.m, patience: c.patience, again: c.o.Patience > 1}
			result, err := w.take(ctx, o)
			if errors.Is(err, errSkipped) {
				return nil
			}
			c.set(func(n *Node) {
				n.Certificates = append(n.Certificates, w.dated...)
				if err == nil {
					n.Organs = append(n.Organs, result)
				}
			})
			return err
		}
	}
	return all
}

func (c *collector) set(change func(*Node)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.node)
}

func (c *collector) facts(ctx context.Context) error {
	facts, err := join.ReadFacts(ctx, c.m)
	records := join.Records(c.m)
	c.set(func(n *Node) { n.Facts, n.Records = facts, records })
	return err
}

func (c *collector) checks(ctx context.Context) error {
	t := join.Target{ControlPlane: c.o.Role == "control-plane", Endpoint: c.o.Endpoint}
	for _, p := range c.o.Peers {
		if p.Role == "control-plane" {
			t.Peers = append(t.Peers, p.IP)
		}
	}
	checks := join.Examine(ctx, c.m, t)
	c.set(func(n *Node) { n.Checks = checks })
	return nil
}

// member asks for the checks of a member, also on one that has lost its kubeconfig.
func (c *collector) member(ctx context.Context) error {
	if !c.m.Exists("/etc/kubernetes/kubelet.conf") && !c.m.Exists("/var/lib/k8slab/joined") {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.patience*questionTime-300*time.Millisecond) // each check says itself what it waited for
	defer cancel()
	checks := join.Validate(ctx, c.m, join.Target{})
	c.set(func(n *Node) { n.Member = checks })
	return nil
}

// serviceNames are the units that a node is about. Distributions name them differently: one that is not there has no state.
var serviceNames = []string{"kubelet", "containerd", "crio", "keepalived", "ssh", "sshd", "k8slab-kubeadm", "k8slab-join"}

// units keeps what the services do.
func (c *collector) units(ctx context.Context) error {
	found, err := c.services(ctx)
	if err != nil {
		return err
	}
	for name, u := range found {
		unit := unitFrom(u)
		c.set(func(n *Node) { n.Units[name] = unit })
		if pid := u["MainPID"]; name == "kubelet" && pid != "" && pid != "0" {
			line, _ := c.m.Read("/proc/" + pid + "/cmdline")
			flags := strings.FieldsFunc(line, func(r rune) bool { return r == 0 })
			c.set(func(n *Node) { n.Flags = flags })
		}
	}
	return nil
}

// services asks systemd for the properties of the services, by their names without ".service".
func (c *collector) services(ctx context.Context) (map[string]map[string]string, error) {
	argv := []string{"systemctl", "show", "--timestamp=unix",
		"--property=Id,LoadState,ActiveState,SubState,Result,MainPID,StateChangeTimestamp,ExecMainStartTimestamp,UnitFileState,TriggeredBy"}
	for _, name := range serviceNames {
		argv = append(argv, name+".service")
	}
	out, err := c.m.Run(ctx, argv...)
	if err != nil {
		return nil, err
	}
	found := map[string]map[string]string{}
	for id, u := range join.ParseUnits(out) {
		found[strings.TrimSuffix(id, ".service")] = u
	}
	return found, nil
}

func unitFrom(u map[string]string) Unit {
	unit := Unit{
		Load: u["LoadState"], Active: u["ActiveState"], Sub: u["SubState"], Result: u["Result"],
		Since: unixTime(u["StateChangeTimestamp"]), Started: unixTime(u["ExecMainStartTimestamp"]), Boot: u["UnitFileState"],
	}
	if u["TriggeredBy"] != "" { // a socket starts it
		unit.Boot = ""
	}
	return unit
}

// unixTime reads systemd's "@1700000000"; the zero time for anything else.
func unixTime(s string) time.Time {
	seconds, err := strconv.ParseInt(strings.TrimPrefix(s, "@"), 10, 64)
	if err != nil || seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

func (c *collector) containers(ctx context.Context) error {
	if c.o.Role == "" && !c.m.HasRuntime() {
		return nil
	}
	_, all, err := join.Containers(ctx, c.m)
	c.set(func(n *Node) { n.Containers = all })
	return err
}

func (c *collector) files(ctx context.Context) error {
	found, err := differences(ctx, c.m.Path("/"))
	c.set(func(n *Node) { n.Files = found })
	return err
}
