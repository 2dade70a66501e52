// Package cluster forms the lab's cluster out of machines that answer: it initialises a control plane, gets every node in, one after another
// where etcd wants that, clears what is in the way of a join, and takes nodes out again.
package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
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
	"k8slab/lab/wait"
)

// tokenTTL is the life of a bootstrap token. Each is deleted as soon as its join has ended.
const tokenTTL = 30 * time.Minute

// ImageImport gives the nodes the images that pods of every node need, beside those of the node image.
type ImageImport = func(context.Context, []config.Node) error

// Run is one run of labctl on the cluster of an opened lab: as it finds the cluster, and changes it.
type Run struct {
	*session.Session
	Admin  *session.Admin // nil before there is a cluster
	DryRun bool           // change nothing
	// Boot makes the machine of a node that has no facts yet, because its making waits for the control plane before; nil where all are made.
	Boot func(context.Context, config.Node) error

	images         ImageImport
	certificateKey string // "" until a control plane has to join
	retired        bool   // nothing of its own is left in the cluster

	mu     sync.Mutex
	facts  map[string]join.Facts // of the nodes that answered
	failed map[string]error      // why joins failed, by node
}

// New is the cluster of the nodes that answered with these facts.
func New(s *session.Session, facts map[string]join.Facts, images ImageImport) *Run {
	return &Run{Session: s, facts: facts, images: images}
}

// Close closes the administrator's connections.
func (c *Run) Close() {
	if c.Admin != nil {
		c.Admin.Close()
	}
}

// Initialise gets a control plane that runs the cluster: the first one that has joined, or a new cluster on the first of cluster.yaml.
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
	var err error
	if c.Admin, err = s.OpenAdmin(ctx, joined[0], joined); err != nil {
		return err
	}
	if err := c.dropStale(ctx); err != nil {
		return err
	}
	step := s.Events.Start("", "API server", c.StabilizeBudget())
	err = wait.For(ctx, "the API server at "+s.Endpoint(), c.StabilizeBudget(), s.Pace(), session.ShowWaiting(step, c.Admin.Kube.Ready))
	if err != nil {
		err = fmt.Errorf("%w\nnext: labctl logs %s --unit kubelet", err, joined[0].Name)
	}
	if err := step.End(err); err != nil {
		return err
	}
	return s.SaveKubeconfig(c.Admin)
}

func (c *Run) joinBudget() time.Duration {
	return time.Duration(c.Cluster.Tuning.JoinMaxWaitSeconds) * time.Second
}

// FinishRunning waits for a kubeadm that an earlier, killed run left at work. Whether it succeeded, the node's facts then say.
func (c *Run) FinishRunning(ctx context.Context) error {
	return session.ForEachNode(c.Cluster.Members(), func(n config.Node) error { return c.Finish(ctx, n) })
}

// Finish waits for the kubeadm that is at work on the node, started by an earlier run or by hand: one that is killed between the addition
// of its etcd member and its promotion leaves a stale learner.
func (c *Run) Finish(ctx context.Context, n config.Node) error {
	if !c.Fact(n).Running() {
		return nil
	}
	step := c.Events.Start(n.Name, "kubeadm (already running)", c.joinBudget())
	var err error
	if c.Fact(n).JoinRunning() {
		if c.Admin != nil && n.Role == config.ControlPlane {
			defer (&nodeJoin{Run: c, node: n, step: step}).showLearner(ctx)()
		}
		_, err = followJoin(ctx, c.Session, n.Name, c.joinBudget(), step)
	} else {
		err = awaitInit(ctx, c.Session, n.Name, c.joinBudget(), step)
	}
	if err != nil && ctx.Err() == nil { // its failure is repaired like any other
		step.EndWith(err.Error())
		err = nil
	}
	_ = step.End(err)
	if err != nil {
		return err
	}
	return c.refreshFacts(ctx, n)
}

// refreshFacts reads the node's facts anew.
func (c *Run) refreshFacts(ctx context.Context, n config.Node) error {
	f, err := c.ReadFacts(ctx, c.Nodes[n.Name])
	if err == nil {
		c.setFact(n, f)
	}
	return err
}

// Fact is what the node told of itself; nothing of one that did not answer.
func (c *Run) Fact(n config.Node) join.Facts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.facts[n.Name]
}

func (c *Run) setFact(n config.Node, f join.Facts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.facts[n.Name] = f
}

// Answers tells whether the node has told what it is.
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

// joinFailed keeps why the node's join failed, and returns it.
func (c *Run) joinFailed(n config.Node, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil {
		c.failed = map[string]error{}
	}
	c.failed[n.Name] = err
	return err
}

// JoinedControlPlanes are those on which kubeadm finished. The first of them speaks for the cluster.
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
	if err := runInit(ctx, s, n.Name, initDocuments(s, n, id+"."+secret, c.certificateKey), c.joinBudget(), step); err != nil {
		return step.End(err)
	}
	return step.End(c.refreshFacts(ctx, n))
}

// NetworkPlugin deploys the pod network and the probe, unless the cluster has them as they should be.
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

// tokenMark begins the description of the lab's own bootstrap tokens.
const tokenMark = "labctl: "

// certificatesMark begins the description of the token by whose expiry kubeadm removes the uploaded certificates. It gives nobody access;
// without it they are removed at once (kubeadm, copycerts.go).
const certificatesMark = "Proxy for managing TTL for the kubeadm-certs secret"

// joinMark describes the tokens of the node's joins.
func joinMark(node string) string { return tokenMark + "join of " + node }

// Retire deletes the lab's bootstrap tokens that are left, init's own and those of killed runs, and the certificates that it uploaded. A join
// that an earlier run left at work keeps its token: the kubelet of a control plane needs it last of all.
func (c *Run) Retire(ctx context.Context) error {
	if c.DryRun || c.retired {
		return nil
	}
	ids, err := c.Admin.Kube.BootstrapTokens(ctx, tokenMark)
	if err != nil {
		return err
	}
	for _, n := range c.Cluster.Members() {
		if !c.Fact(n).JoinRunning() {
			continue
		}
		needed, err := c.Admin.Kube.BootstrapTokens(ctx, joinMark(n.Name))
		if err != nil {
			return err
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(needed, id) })
	}
	if c.certificateKey != "" {
		uploads, err := c.Admin.Kube.BootstrapTokens(ctx, certificatesMark)
		if err != nil {
			return err
		}
		ids = append(ids, uploads...)
	}
	for _, id := range ids {
		if err := c.Admin.Kube.DeleteBootstrapToken(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// newCertificateKey is a random AES-256 key in hexadecimal.
func newCertificateKey() (string, error) {
	key := make([]byte, 32)
	_, err := rand.Read(key)
	return hex.EncodeToString(key), err
}
