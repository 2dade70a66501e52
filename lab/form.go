package lab

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8slab/config"
	"k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/wait"
)

// tokenTTL is the life of a bootstrap token. Each is deleted as soon as its join has ended.
const tokenTTL = 30 * time.Minute

// forming is the making of a cluster out of booted machines.
type forming struct {
	lab            *Lab
	facts          map[string]join.Facts
	view           *view
	certificateKey string // "" until a control plane has to join
	dryRun         bool   // change nothing
	retired        bool   // nothing of its own is left in the cluster
	// boot makes the machine of a node that has no facts yet, because its making waits for the control plane before; nil where all are made.
	boot func(context.Context, config.Node) error
	// failed has why the joins failed, by node.
	failed map[string]error
	mu     sync.Mutex
}

func (c *forming) close() {
	if c.view != nil {
		c.view.close()
	}
}

// initialise gets a control plane that runs the cluster: the first one that has joined, or a new cluster on the first of cluster.yaml.
func (c *forming) initialise(ctx context.Context) error {
	l := c.lab
	if err := c.finishRunning(ctx); err != nil {
		return err
	}
	joined := c.joinedControlPlanes()
	if len(joined) == 0 {
		first := l.cluster.ControlPlanes()[0]
		if err := c.kubeadmInit(ctx, first); err != nil {
			return err
		}
		joined = []config.Node{first}
	}
	var err error
	if c.view, err = l.openView(ctx, joined[0], joined); err != nil {
		return err
	}
	if err := c.dropStale(ctx); err != nil {
		return err
	}
	step := l.events.Start("", "API server", c.stabilize())
	err = wait.For(ctx, "the API server at "+l.endpoint(), c.stabilize(), l.pace(), telling(step, c.view.kube.Ready))
	if err != nil {
		err = fmt.Errorf("%w\nnext: labctl logs %s --unit kubelet", err, joined[0].Name)
	}
	if err := step.End(err); err != nil {
		return err
	}
	return l.saveKubeconfig(c.view)
}

func (c *forming) stabilize() time.Duration {
	return time.Duration(c.lab.cluster.Tuning.CPStabilizeTimeoutSeconds) * time.Second
}

func (c *forming) joinBudget() time.Duration {
	return time.Duration(c.lab.cluster.Tuning.JoinMaxWaitSeconds) * time.Second
}

// finishRunning waits for a kubeadm that an earlier, killed run left at work. Whether it succeeded, the node's facts then say.
func (c *forming) finishRunning(ctx context.Context) error {
	return together(c.lab.cluster.Members(), func(n config.Node) error { return c.finish(ctx, n) })
}

// finish waits for the kubeadm that is at work on the node, started by an earlier run or by hand: one that is killed between the addition
// of its etcd member and its promotion leaves a stale learner.
func (c *forming) finish(ctx context.Context, n config.Node) error {
	if !c.fact(n).Running() {
		return nil
	}
	step := c.lab.events.Start(n.Name, "kubeadm (already running)", c.joinBudget())
	var err error
	if c.fact(n).JoinRunning() {
		if c.view != nil && n.Role == config.ControlPlane {
			defer (&joining{forming: c, node: n, step: step}).showLearner(ctx)()
		}
		_, err = c.lab.followJoin(ctx, n.Name, c.joinBudget(), step)
	} else {
		err = c.lab.awaitInit(ctx, n.Name, c.joinBudget(), step)
	}
	if err != nil && ctx.Err() == nil { // its failure is repaired like any other
		step.EndWith(err.Error())
		err = nil
	}
	_ = step.End(err)
	if err != nil {
		return err
	}
	return c.look(ctx, n)
}

// look reads the node's facts anew.
func (c *forming) look(ctx context.Context, n config.Node) error {
	f, err := c.lab.readFacts(ctx, c.lab.nodes[n.Name])
	if err == nil {
		c.setFact(n, f)
	}
	return err
}

func (c *forming) fact(n config.Node) join.Facts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.facts[n.Name]
}

func (c *forming) setFact(n config.Node, f join.Facts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.facts[n.Name] = f
}

// joinFailed keeps why the node's join failed, and returns it.
func (c *forming) joinFailed(n config.Node, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil {
		c.failed = map[string]error{}
	}
	c.failed[n.Name] = err
	return err
}

// joinedControlPlanes are those on which kubeadm finished. The first of them speaks for the cluster.
func (c *forming) joinedControlPlanes() []config.Node {
	return c.lab.restoredFirst(slices.DeleteFunc(c.lab.cluster.ControlPlanes(), func(n config.Node) bool { return !c.fact(n).Joined }))
}

func (c *forming) kubeadmInit(ctx context.Context, n config.Node) error {
	l := c.lab
	step := l.events.Start(n.Name, "kubeadm init", c.joinBudget())
	if c.fact(n).Dirty {
		step.Progress("cleaning up after an interrupted one")
		if err := l.reset(ctx, n.Name); err != nil {
			return step.End(err)
		}
	}
	id, secret := kube.NewToken()
	var err error
	if c.certificateKey, err = newCertificateKey(); err != nil {
		return step.End(err)
	}
	if err := l.runInit(ctx, n.Name, l.initDocuments(n, id+"."+secret, c.certificateKey), c.joinBudget(), step); err != nil {
		return step.End(err)
	}
	return step.End(c.look(ctx, n))
}

// networkPlugin deploys the pod network and the probe, unless the cluster has them as they should be.
func (c *forming) networkPlugin(ctx context.Context) error {
	manifest, err := c.lab.manifests()
	if err != nil {
		return err
	}
	current, err := c.view.kube.UpToDate(ctx, manifest)
	if err != nil || current {
		return err
	}
	step := c.lab.events.Start("", "network plugin", time.Minute)
	return step.End(wait.For(ctx, "the API server to take the pod network", time.Minute, c.lab.pace(), func(ctx context.Context) error {
		return c.view.kube.Apply(ctx, manifest)
	}))
}

// tokenMark begins the description of the lab's own bootstrap tokens.
const tokenMark = "labctl: "

// certificatesMark begins the description of the token by whose expiry kubeadm removes the uploaded certificates. It gives nobody access;
// without it they are removed at once (kubeadm, copycerts.go).
const certificatesMark = "Proxy for managing TTL for the kubeadm-certs secret"

// joinMark describes the tokens of the node's joins.
func joinMark(node string) string { return tokenMark + "join of " + node }

// retire deletes the lab's bootstrap tokens that are left, init's own and those of killed runs, and the certificates that it uploaded. A join
// that an earlier run left at work keeps its token: the kubelet of a control plane needs it last of all.
func (c *forming) retire(ctx context.Context) error {
	if c.dryRun || c.retired {
		return nil
	}
	ids, err := c.view.kube.BootstrapTokens(ctx, tokenMark)
	if err != nil {
		return err
	}
	for _, n := range c.lab.cluster.Members() {
		if !c.fact(n).JoinRunning() {
			continue
		}
		needed, err := c.view.kube.BootstrapTokens(ctx, joinMark(n.Name))
		if err != nil {
			return err
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(needed, id) })
	}
	if c.certificateKey != "" {
		uploads, err := c.view.kube.BootstrapTokens(ctx, certificatesMark)
		if err != nil {
			return err
		}
		ids = append(ids, uploads...)
	}
	for _, id := range ids {
		if err := c.view.kube.DeleteBootstrapToken(ctx, id); err != nil {
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
