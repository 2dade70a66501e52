package diagnose

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8slab/lab/diagnose/fact"
	"k8slab/lab/event"
	"k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/node"
)

// Machine is one machine of a lab, and the ways to look at it.
type Machine struct {
	Name, Role, IP string
	// State is what its domain does.
	State func(context.Context) (string, error)
	// Read runs a command on it that changes nothing and returns its output, also when it failed.
	Read func(ctx context.Context, argv ...string) (string, error)
	// Bring has Sources.Labnode on it, and limits its time itself; nil where it always is.
	Bring func(context.Context) error
	// Console is what it last wrote to its console, "" when there is none.
	Console func() string
}

// Sources are where facts come from. Without Peers, the cluster may be anybody's, and Open is its one way to it, for the control plane "".
type Sources struct {
	Lab      string
	Labnode  string        // on every machine
	Endpoint string        // HOST:PORT of the API server, as nodes should reach it
	Since    time.Duration // how far back texts are read; 0 is from the last boot on
	Recent   bool          // read no more of them than can explain what is wrong now
	Machines []Machine
	// Patience is how many times the limits everything may take: machines whose processor is emulated need more; 0 is once.
	Patience int
	// AtOnce is how many machines may collect at the same time, because they share this computer's processors; 0 is all.
	AtOnce int
	// Peers are all machines of the lab, of which Machines may be a part.
	Peers []fact.Peer
	// Open asks the cluster through one control plane, with the credentials that are there.
	Open func(ctx context.Context, controlPlane string) (Cluster, error)
	// Want is what the cluster's own documents must say; nil of a cluster that is not a lab's.
	Want *kube.Want
	// Uplink tells whether nodes can reach a registry.
	Uplink bool
	// Upgrade is what is known of an upgrade that has begun and not ended, "" for none.
	Upgrade string
	// Existing tells that labctl did not make the cluster: much in it may be meant that in a lab is a fault.
	Existing bool
	// Prove measures what must hold in a healthy cluster; nil where nobody knows that.
	Prove func(context.Context, Cluster) []fact.Organ
}

// within bounds one part of the collecting.
func (s Sources) within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	limit *= time.Duration(s.Patience)
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
}

// The limits of the collecting. A machine that is off costs one of each.
const (
	stateLimit   = 3 * time.Second // a domain's state
	connectLimit = 5 * time.Second // until a machine has answered at all
	openLimit    = 4 * time.Second // until a control plane has given its credentials
	apiQuestion  = 3 * time.Second
	insideLimit  = 7 * time.Second         // the collecting inside a machine, which ends sooner by itself
	etcdLimit    = 6500 * time.Millisecond // without a quorum each member that is silent costs its time twice
	proofLimit   = 6 * time.Second         // a pod gives up reaching another after 3 s
	judgeTime    = time.Second             // what is left of the caller's time for what comes after the collecting
)

// Collect gathers the facts of a live cluster, everything at once. A machine that does not answer is a fact, not an error. One that was
// only too slow is asked again when the others are done, with twice the time: on a busy computer a late answer proves nothing. What has no
// better answer shortly before ctx ends stays as it was.
func Collect(ctx context.Context, s Sources) fact.Facts {
	f := fact.Facts{Lab: s.Lab, Uplink: s.Uplink, Upgrade: s.Upgrade, Time: time.Now().UTC(), Since: s.Since, Endpoint: s.Endpoint,
		Part: len(s.Machines) < len(s.Peers), Machines: make([]fact.Machine, len(s.Machines))}
	s.Patience = max(s.Patience, 1)
	s.look(ctx, &f, func(fact.Machine) bool { return true }, true)
	if s.Patience == 1 { // else each has had all the time that there is
		s.Patience = 2
		end, limited := ctx.Deadline()
		if !limited {
			end = time.Now().Add(time.Minute) // longer than it can take
		}
		again, cancel := context.WithDeadline(ctx, end.Add(-judgeTime))
		defer cancel()
		first := f
		s.look(again, &f, late, slices.ContainsFunc(f.Proof, func(o fact.Organ) bool { return o.Late }))
		if again.Err() != nil {
			f.API, f.Etcd, f.Proof = first.API, first.Etcd, first.Proof
		}
	}
	return f
}

// look asks the wanted machines, and the cluster if it is wanted. An earlier answer of a machine stays until a better one comes.
func (s Sources) look(ctx context.Context, f *fact.Facts, wanted func(fact.Machine) bool, cluster bool) {
	slots := make(chan struct{}, cmp.Or(s.AtOnce, len(s.Machines)))
	var wg sync.WaitGroup
	if cluster {
		wg.Go(func() { s.cluster(ctx, f) })
	}
	for i, m := range s.Machines {
		if !wanted(f.Machines[i]) {
			continue
		}
		wg.Go(func() {
			if told := s.machine(ctx, m, slots); told.Inside != nil || f.Machines[i].Inside == nil {
				f.Machines[i] = told
			}
		})
	}
	wg.Wait()
}

// machine asks a machine and its domain, both at once: either can be dead.
func (s Sources) machine(ctx context.Context, m Machine, slots chan struct{}) fact.Machine {
	out := fact.Machine{Name: m.Name, Role: m.Role, IP: m.IP}
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	var wg sync.WaitGroup
	wg.Go(func() {
		ctx, cancel := s.within(ctx, stateLimit)
		defer cancel()
		state, err := m.State(ctx)
		out.State, out.StateError = state, errorText(err)
		if err == nil && state != stateRunning {
			giveUp(errors.New("its machine is " + state))
		}
	})
	wg.Go(func() { s.inside(ctx, m, &out, slots) })
	wg.Wait()
	if out.SSH != "" && m.Console != nil {
		out.Console = event.Redact(m.Console())
	}
	return out
}

// inside has the machine collect its facts. A short first question finds out whether it answers at all, so that a machine that is off costs
// little time.
func (s Sources) inside(ctx context.Context, m Machine, out *fact.Machine, slots chan struct{}) {
	connect, cancel := s.within(ctx, connectLimit)
	_, err := m.Read(connect, "true")
	out.Late = errors.Is(connect.Err(), context.DeadlineExceeded)
	cancel()
	if err != nil {
		out.SSH = errorText(err)
		return
	}
	slots <- struct{}{}
	defer func() { <-slots }()
	if m.Bring != nil {
		if err := m.Bring(ctx); err != nil {
			out.Late = errors.Is(err, context.DeadlineExceeded)
			blame(out, err)
			return
		}
	}
	work, cancel := s.within(ctx, insideLimit)
	defer cancel()
	out.Sent = time.Now().UTC()
	text, err := m.Read(work, s.command(m)...)
	out.Received = time.Now().UTC()
	var inside fact.Node
	if jsonErr := json.Unmarshal([]byte(text), &inside); jsonErr != nil {
		if err == nil {
			err = jsonErr
		}
		out.Late, out.NoLabnode = errors.Is(work.Err(), context.DeadlineExceeded), cannotRun(err)
		blame(out, err)
		return
	}
	out.Inside = &inside
}

// blame says what kept labnode from collecting: the connection, or something of its own.
func blame(out *fact.Machine, err error) {
	if errors.Is(err, node.ErrLost) {
		out.SSH = errorText(err)
		return
	}
	out.Labnode = errorText(err)
}

// cannotRun reports whether a program is missing, is not one, or is so damaged that it crashes at once.
func cannotRun(err error) bool {
	exit, ended := errors.AsType[*node.ExitError](err)
	return ended && slices.Contains([]int{126, 127, 128 + 4, 128 + 7, 128 + 11}, exit.Status) // and SIGILL, SIGBUS, SIGSEGV
}

// lateAnswer is where an answer counts as late: the shortest limit of a question inside a machine is 2 s.
const lateAnswer = 1900 * time.Millisecond

// late tells whether the machine might have told more with more time. Checks that ask the cluster do not count: mostly they are late
// because the cluster is ill, and would be late again with twice the time.
func late(m fact.Machine) bool {
	n := m.Inside
	if n == nil {
		return m.Late
	}
	failed := func(c join.Check) bool {
		return (c.Result == join.Blocked || c.Result == join.Fixable) && c.Elapsed >= lateAnswer && c.ID.Traits().Local
	}
	return len(n.Errors) > 0 && n.Elapsed >= lateAnswer.Seconds() || slices.ContainsFunc(n.Checks, failed) || slices.ContainsFunc(n.Member, failed)
}

func (s Sources) command(m Machine) []string {
	argv := []string{s.Labnode, "collect", "--role", m.Role, "--endpoint", s.Endpoint, "--since", s.Since.String()}
	if s.Recent {
		argv = append(argv, "--recent")
	}
	if s.Patience > 1 {
		argv = append(argv, "--patience", strconv.Itoa(s.Patience))
	}
	for _, p := range s.peersOf(m) {
		argv = append(argv, "--peer", p.Name+"="+p.Role+"="+p.IP)
	}
	return argv
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return event.Redact(err.Error())
}

// cluster asks the API server and etcd through the first control plane that can: none is waited for after another.
func (s Sources) cluster(ctx context.Context, f *fact.Facts) {
	var api fact.API
	var members fact.Etcd
	var proof []fact.Organ
	defer func() { f.API, f.Etcd, f.Proof = api, members, proof }()
	opening, cancel := s.within(ctx, openLimit)
	via, c, err := openFirst(opening, s.ways(), s.Open)
	cancel()
	if err != nil {
		api.Error, members.Error = errorText(err), errorText(err)
		return
	}
	defer c.Close()
	api.Via, members.Via = via, via
	var wg sync.WaitGroup
	if s.Prove != nil {
		wg.Go(func() {
			ctx, cancel := s.within(ctx, proofLimit)
			defer cancel()
			proof = s.Prove(ctx, c)
		})
	}
	wg.Go(func() {
		ctx, cancel := s.within(ctx, apiQuestion)
		defer cancel()
		askAPI(ctx, c.Kube, s.Want, s.Existing, &api)
	})
	if c.Etcd != nil {
		wg.Go(func() {
			ctx, cancel := s.within(ctx, etcdLimit)
			defer cancel()
			askEtcd(ctx, c.Etcd, &members)
		})
	}
	wg.Wait()
	for i := range proof {
		proof[i].Error = event.Redact(proof[i].Error)
	}
}

// ways are the control planes through which the cluster can be asked.
func (s Sources) ways() (controlPlanes []string) {
	if len(s.Peers) == 0 && s.Open != nil {
		return []string{""}
	}
	for _, p := range s.Peers {
		if p.Role == roleControlPlane && s.Open != nil {
			controlPlanes = append(controlPlanes, p.Name)
		}
	}
	return controlPlanes
}

// In a large cluster, a worker dials its control planes and some of the other workers: all would be a quarter of a million ways among 500.
const (
	dialsAll     = 32 // most peers of which every one is dialled
	dialledPeers = 16 // workers that a worker dials in a larger cluster, each dialled by as many
)

// peersOf are the peers that the machine dials: all, or for a worker in a large cluster the control planes and the workers that follow it.
func (s Sources) peersOf(m Machine) []fact.Peer {
	var others, workers []fact.Peer
	at := 0 // how many workers come before it
	for _, p := range s.Peers {
		switch {
		case p.Name == m.Name:
			at = len(workers)
		case p.Role == roleControlPlane:
			others = append(others, p)
		default:
			workers = append(workers, p)
		}
	}
	if m.Role == roleControlPlane || len(s.Peers)-1 <= dialsAll {
		return append(others, workers...)
	}
	for i := range min(dialledPeers, len(workers)) {
		others = append(others, workers[(at+i)%len(workers)])
	}
	return others
}
