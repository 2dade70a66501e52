// Package cluster forms the lab's cluster out of machines that answer over SSH: it initialises the first control plane, joins the other
// nodes, clears what is in the way of a join, and takes nodes out again. Making machines is lab/provision's job.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8slab/config"
	"k8slab/lab/health"
	"k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/session"
	"k8slab/lab/state"
	"k8slab/lab/wait"
)

// ImageImport imports onto the nodes the container images that are not part of the node image. It says which each lacked, or in a dry run
// lacks.
type ImageImport = func(ctx context.Context, nodes []config.Node, dryRun bool) (lacking map[string][]string, err error)

// Run is one run of labctl on the cluster of an opened lab, with what it has learned of the cluster.
type Run struct {
	*session.Session
	Admin  *session.Admin // nil before there is a cluster
	DryRun bool           // change nothing
	// Boot makes the machine of a staggered control plane when its turn comes; nil where all machines exist.
	Boot func(context.Context, config.Node) error

	images         ImageImport
	certificateKey string // "" until a control plane has to join
	retired        bool   // Retire has run

	mu     sync.Mutex
	facts  map[string]join.Facts // by node, of those that answered
	failed map[string]error      // by node, why its join failed

	joinSide  clusterSide
	restoring sync.Mutex
}

// New starts a run with the facts of the nodes that answered.
func New(s *session.Session, facts map[string]join.Facts, images ImageImport) *Run {
	return &Run{Session: s, facts: facts, images: images}
}

// Of is the run with another description of its lab. It shares the administrator's connections.
func (c *Run) Of(s *session.Session) *Run {
	of := New(s, c.facts, c.images)
	of.Admin = c.Admin
	return of
}

// Close closes the administrator's connections.
func (c *Run) Close() {
	if c.Admin != nil {
		c.Admin.Close()
	}
}

// Initialise opens the existing cluster through a control plane that has joined. If there is none, it runs kubeadm init on the first
// control plane.
func (c *Run) Initialise(ctx context.Context) error {
	s := c.Session
	if err := c.FinishRunning(ctx); err != nil {
		return err
	}
	joined := c.JoinedControlPlanes()
	if len(joined) == 0 {
		first := s.Cluster.ControlPlanes()[0]
		if err := c.kubeadmInit(ctx, first); err != nil {
			return err
		}
		joined = []config.Node{first}
	}
	if err := c.openAdmin(ctx, joined); err != nil {
		return err
	}
	if err := c.dropStale(ctx); err != nil {
		return err
	}
	if err := c.AwaitAPI(ctx); err != nil {
		return err
	}
	return s.SaveKubeconfig(ctx, c.Admin)
}

// AwaitAPI waits until an API server answers at the cluster's endpoint.
func (c *Run) AwaitAPI(ctx context.Context) error {
	step := c.Events.Start("", "API server", c.StabilizeBudget())
	err := wait.For(ctx, "the API server at "+c.Endpoint(), c.StabilizeBudget(), c.Pace(), session.ShowWaiting(step, c.Admin.Kube.Ready))
	if err != nil {
		err = fmt.Errorf("%w\nnext: labctl logs %s --unit kubelet", err, c.JoinedControlPlanes()[0].Name)
	}
	return step.End(err)
}

// openAdmin opens the cluster with the credentials of the first of its control planes that the API server knows. While no API server
// answers, those of the first that has any do.
func (c *Run) openAdmin(ctx context.Context, joined []config.Node) error {
	var errs []error
	for _, n := range joined {
		v, err := c.OpenAdmin(ctx, n, joined)
		if err == nil {
			err = works(ctx, c.Session, v)
		}
		switch {
		case v == nil || v.Kube == nil:
		case err == nil:
			if c.Admin != nil {
				c.Admin.Close()
			}
			c.Admin = v
			return nil
		case c.Admin == nil:
			c.Admin = v
		default:
			v.Close()
		}
		errs = append(errs, err)
	}
	if c.Admin != nil {
		return nil
	}
	return fmt.Errorf("%w\nnext: labctl repair", errors.Join(errs...))
}

// works says why the API server does not answer the administrator, nil if it does.
func works(ctx context.Context, s *session.Session, v *session.Admin) error {
	ctx, cancel := s.Within(ctx, 4*time.Second)
	defer cancel()
	_, err := v.Kube.Nodes(ctx)
	return err
}

func (c *Run) joinBudget() time.Duration {
	return time.Duration(c.Cluster.Tuning.JoinMaxWaitSeconds) * time.Second
}

// FinishRunning waits for every kubeadm that an earlier, killed run left running. The nodes' facts then say whether it succeeded.
func (c *Run) FinishRunning(ctx context.Context) error {
	return session.ForEachNode(c.Cluster.Members(), func(n config.Node) error { return c.Finish(ctx, n) })
}

// Finish waits for a kubeadm that runs on the node, started by an earlier run or by hand. It must not be killed: between adding its etcd
// member and promoting it, that would leave a stale learner.
func (c *Run) Finish(ctx context.Context, n config.Node) error {
	if !c.Fact(n).Running() {
		return nil
	}
	step := c.Events.Start(n.Name, "kubeadm (already running)", c.joinBudget())
	var err error
	if c.Fact(n).JoinRunning() {
		if c.Admin != nil {
			defer (&nodeJoin{Run: c, node: n, step: step}).showOthers(ctx)()
		}
		_, err = followJoin(ctx, c.Session, n.Name, c.joinBudget(), step)
	} else {
		err = awaitInit(ctx, c.Session, n.Name, c.joinBudget(), step)
	}
	if err != nil && ctx.Err() == nil { // the next join repairs what a failed one left
		step.EndWith(err.Error())
		err = nil
	}
	_ = step.End(err)
	if err != nil {
		return err
	}
	return c.RefreshFacts(ctx, n)
}

// ImportImages imports onto the nodes, unless DryRun, the container images that they lack and that are not part of the node image. It says
// which those are.
func (c *Run) ImportImages(ctx context.Context, nodes []config.Node) (lacking map[string][]string, err error) {
	return c.images(ctx, nodes, c.DryRun)
}

// RefreshFacts reads the node's facts again.
func (c *Run) RefreshFacts(ctx context.Context, n config.Node) error {
	f, err := c.ReadFacts(ctx, c.Nodes[n.Name])
	if err == nil {
		c.setFact(n, f)
	}
	return err
}

// Fact is the node's facts; empty if it did not answer.
func (c *Run) Fact(n config.Node) join.Facts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.facts[n.Name]
}

// machineID is the machine-id of a node's machine: labctl gave it to a lab's; another's is "" where the machine did not answer.
func (c *Run) machineID(name string) string {
	if c.Cluster.OverSSH() {
		return c.Fact(config.Node{Name: name}).MachineID
	}
	return state.MachineID(c.ID, name)
}

func (c *Run) setFact(n config.Node, f join.Facts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.facts[n.Name] = f
}

// Answers tells whether the node's facts are known.
func (c *Run) Answers(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, answers := c.facts[name]
	return answers
}

// Failures are why joins failed in this run, by node.
func (c *Run) Failures() map[string]error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.failed)
}

// joinFailed remembers why the node's join failed, and returns it.
func (c *Run) joinFailed(n config.Node, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil {
		c.failed = map[string]error{}
	}
	c.failed[n.Name] = err
	return err
}

// JoinedControlPlanes are those on which kubeadm finished, a restored one first. The cluster is opened through the first.
func (c *Run) JoinedControlPlanes() []config.Node {
	return c.RestoredFirst(slices.DeleteFunc(c.Cluster.ControlPlanes(), func(n config.Node) bool { return !c.Fact(n).Joined }))
}

func (c *Run) kubeadmInit(ctx context.Context, n config.Node) error {
	s := c.Session
	step := s.Events.Start(n.Name, "kubeadm init", c.joinBudget())
	if c.Fact(n).Dirty {
		step.Progress("cleaning up after an interrupted one")
		if err := reset(ctx, s, n.Name); err != nil {
			return step.End(err)
		}
	}
	id, secret := kube.NewToken()
	var err error
	if c.certificateKey, err = newCertificateKey(); err != nil {
		return step.End(err)
	}
	documents := initDocuments(s, n, id+"."+secret, c.certificateKey)
	if f := c.Fact(n); s.Cluster.OverSSH() && f.RuntimeActive == "active" { // the machine may have several runtimes
		documents[0].(object)["nodeRegistration"].(object)["criSocket"] = "unix://" + f.RuntimeSocket
	}
	documents = append(documents, c.ownProxy()...)
	if err := runInit(ctx, s, n.Name, documents, c.joinBudget(), step); err != nil {
		return step.End(err)
	}
	return step.End(c.RefreshFacts(ctx, n))
}

// ownProxy is what kubeadm is told of kube-proxy on machines that exist: something only where FixedConntrack.
func (c *Run) ownProxy() []any {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.Cluster.OverSSH() || !FixedConntrack(c.facts) {
		return nil
	}
	return []any{proxyConfiguration()}
}

// OwnProxy is ownProxy as kubeadm reads it.
func (c *Run) OwnProxy() (string, error) { return marshal(c.ownProxy()) }

// NetworkPlugin deploys the pod network and the probe, unless they are up to date.
func (c *Run) NetworkPlugin(ctx context.Context) error {
	manifest, err := health.Manifests(c.Session)
	if err != nil {
		return err
	}
	current, err := c.Admin.Kube.UpToDate(ctx, manifest)
	if err != nil || current {
		return err
	}
	step := c.Events.Start("", "network plugin", time.Minute)
	return step.End(wait.For(ctx, "the API server to take the pod network", time.Minute, c.Pace(), func(ctx context.Context) error {
		return c.Admin.Kube.Apply(ctx, manifest)
	}))
}

// Retire deletes all bootstrap tokens of the lab: that of kubeadm init and those that killed runs left. It also deletes the certificates that
// this run uploaded, or a killed one: it has left the token of an init or of a control plane's join. A join that still runs keeps its token,
// because a control plane's kubelet needs it until the end.
func (c *Run) Retire(ctx context.Context) error {
	if c.DryRun || c.retired {
		return nil
	}
	ids, err := c.Admin.Kube.BootstrapTokens(ctx, tokenMark)
	if err != nil {
		return err
	}
	uploaded := c.certificateKey != ""
	if len(ids) > 0 {
		inits, err := c.Admin.Kube.BootstrapTokens(ctx, initMark)
		if err != nil {
			return err
		}
		uploaded = uploaded || len(inits) > 0
	}
	for _, n := range c.Cluster.Members() {
		running := c.Fact(n).JoinRunning()
		if len(ids) == 0 || !running && n.Role != config.ControlPlane {
			continue
		}
		own, err := c.Admin.Kube.BootstrapTokens(ctx, joinMark(n.Name))
		if err != nil {
			return err
		}
		if running {
			ids = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(own, id) })
		} else if len(own) > 0 {
			uploaded = true
		}
	}
	if uploaded {
		uploads, err := c.Admin.Kube.BootstrapTokens(ctx, certificatesMark)
		if err != nil {
			return err
		}
		ids = append(uploads, ids...) // first: the others tell of them
	}
	for _, id := range ids {
		if err := c.Admin.Kube.DeleteBootstrapToken(ctx, id); err != nil {
			return err
		}
	}
	c.retired = true
	return nil
}
