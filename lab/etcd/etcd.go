// Package etcd asks and changes the membership of one etcd cluster, over connections the caller dials, judges which members are in the way
// of a join, and saves and checks snapshots. It refuses a removal that would cost the quorum, and neither waits for anything nor touches a
// machine.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// callTimeout bounds one question to one member, connecting included, unless Config.Patience makes it longer.
const callTimeout = 3 * time.Second

// DialFunc opens a connection to a member's address.
type DialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// Config says how to reach a cluster.
type Config struct {
	Endpoints     []string // https URLs; the members found there supply their own
	CA, Cert, Key []byte   // PEM
	Dial          DialFunc
	Mutated       func(what string) error // called before every change is asked for, and an error refuses it; may be nil
	Patience      int                     // how many times callTimeout a call may take, for members on emulated processors; 0 is once
}

// Member is one entry of the cluster's member list.
type Member struct {
	ID         uint64
	Name       string
	PeerURLs   []string
	ClientURLs []string
	Learner    bool
	Started    bool
}

// String names the member in errors; one that never started has no name.
func (m Member) String() string {
	if m.Name != "" {
		return fmt.Sprintf("%s (%x)", m.Name, m.ID)
	}
	return fmt.Sprintf("%x at %v", m.ID, m.PeerURLs)
}

// State is what a member was found in when it was asked about itself.
type State string

// The states. Err has the details.
const (
	Serving    State = "serving"     // it answers as itself and knows a leader
	NotStarted State = "not-started" // it was added, and has no name yet
	Silent     State = "silent"      // nobody answers at its client URLs
	Displaced  State = "displaced"   // another member answers at its client URLs
	Leaderless State = "leaderless"  // it answers and knows no leader
)

// Status is what a member says of itself.
type Status struct {
	Member      Member
	State       State
	Healthy     bool  // it answered as itself and follows or is a leader
	Err         error // why it is not healthy
	Leader      bool
	LeaderID    uint64 // whom it takes for the leader
	RaftIndex   uint64
	RaftApplied uint64
	RaftTerm    uint64
	DBSize      int64 // bytes
	Version     string
	Alarms      []string // raised for this member, whoever reports them: NOSPACE, CORRUPT
	Errors      []string // the alarms it knows of, its own and others', and its errors
}

// remote asks one member, found at an endpoint.
type remote interface {
	// members are those that a quorum knows, or with local those that this member remembers.
	members(ctx context.Context, endpoint string, local bool) ([]Member, error)
	status(ctx context.Context, endpoint string) (answer, error)
	remove(ctx context.Context, endpoint string, id uint64) error
	// lead has the leader at the endpoint hand over to another member.
	lead(ctx context.Context, endpoint string, to uint64) error
	snapshot(ctx context.Context, endpoint string, w io.Writer) error
	// compact forgets all revisions but the latest.
	compact(ctx context.Context, endpoint string) error
	defragment(ctx context.Context, endpoint string) error
	// disarm takes back a member's alarm that it has no space.
	disarm(ctx context.Context, endpoint string, id uint64) error
}

// answer is a member's reply about itself.
type answer struct {
	id, leader           uint64
	learner              bool
	index, applied, term uint64
	dbSize, revision     int64
	version              string
	errors               []string
}

// errLeaderChanged is a remote's word that another leader was elected while it asked the old one: the same question has an answer now.
var errLeaderChanged = errors.New("etcdserver: leader changed")

// electionTries is how often a member is asked the same when its leader changes: each try waits for a leader.
const electionTries = 3

// errNoMember is a remote's word that the member to change is not in the cluster.
var errNoMember = errors.New("member not found")

// errUnsettled is a remote's word that it has not been connected to a quorum for 5 s (etcd's HealthInterval), and so changes no members.
var errUnsettled = errors.New("etcdserver: unhealthy cluster")

// Client talks to one cluster. It keeps no connections between calls, so none can go stale while machines stop and start. It is safe for
// concurrent use.
type Client struct {
	remote  remote
	mutated func(what string) error
	timeout time.Duration
	closed  context.Context
	close   context.CancelFunc

	mu        sync.Mutex
	endpoints []string // the one that answered last comes first
}

// New makes a client without connecting.
func New(cfg Config) (*Client, error) {
	r, err := newGRPC(cfg)
	if err != nil {
		return nil, fmt.Errorf("make etcd client: %w", err)
	}
	c := newClient(r, cfg.Endpoints, cfg.Mutated)
	c.timeout *= time.Duration(max(cfg.Patience, 1))
	return c, nil
}

func newClient(r remote, endpoints []string, mutated func(string) error) *Client {
	if mutated == nil {
		mutated = func(string) error { return nil }
	}
	closed, cancel := context.WithCancel(context.Background())
	return &Client{
		remote: r, mutated: mutated, timeout: callTimeout,
		closed: closed, close: cancel, endpoints: slices.Clone(endpoints),
	}
}

// Close ends the calls under way and fails later ones.
func (c *Client) Close() error {
	c.close()
	return nil
}

// bound gives one call its time, and its end when the client is closed.
func (c *Client) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	stop := context.AfterFunc(c.closed, cancel)
	return ctx, func() { stop(); cancel() }
}

// Members lists the cluster's members as a quorum knows them, from the first endpoint that can say.
func (c *Client) Members(ctx context.Context) ([]Member, error) { return c.list(ctx, false) }

func (c *Client) list(ctx context.Context, local bool) ([]Member, error) {
	var failed error
	for _, endpoint := range c.order() {
		members, err := c.membersAt(ctx, endpoint, local)
		if err == nil {
			c.prefer(endpoint)
			return members, nil
		}
		err = fmt.Errorf("at %s: %w", endpoint, err)
		if failed != nil {
			err = fmt.Errorf("%w; %w", failed, err)
		}
		failed = err
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("list etcd members: %w", failed)
}

func (c *Client) membersAt(ctx context.Context, endpoint string, local bool) ([]Member, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	for tries := 1; ; tries++ {
		members, err := c.remote.members(ctx, endpoint, local)
		if !errors.Is(err, errLeaderChanged) || tries == electionTries || ctx.Err() != nil {
			return members, err
		}
	}
}

func (c *Client) order() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.endpoints)
}

// prefer asks an endpoint first from now on, so that a machine that is gone costs its timeout once and not every time.
func (c *Client) prefer(endpoint string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.endpoints, endpoint)
	c.endpoints = slices.Insert(slices.Delete(c.endpoints, i, i+1), 0, endpoint)
}
