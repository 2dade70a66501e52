package bringup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8slab/config"
	"k8slab/lab/addon"
	"k8slab/lab/cluster"
	"k8slab/lab/health"
	"k8slab/lab/join"
	"k8slab/lab/session"
	"k8slab/lab/wait"
)

// PodNetwork is the manifest of a pod network, which somebody chose. The zero value is none.
type PodNetwork struct {
	File     string
	Manifest []byte
}

// Forming is what `up` does with machines that exist: it forms a cluster of them, or adds to theirs the machines that are in none.
type Forming struct {
	Steps []string // what will be done, for a person; none where there is nothing to form

	*session.Session
	network PodNetwork
	facts   map[string]join.Facts
	exists  bool          // a control plane has joined
	outside []config.Node // machines that are in no cluster
}

// NewForming looks at every machine, and says what will be done. It changes nothing. The error says what must be done to a machine before.
func NewForming(ctx context.Context, s *session.Session, network PodNetwork) (*Forming, error) {
	f, err := examine(ctx, s, network)
	if err != nil || len(f.outside) == 0 {
		return f, err
	}
	repairs, err := f.check(ctx)
	if err != nil {
		return nil, err
	}
	f.describe(repairs)
	return f, nil
}

// Form does what NewForming said, and proves the cluster healthy. Run again after an interruption, it goes on.
func Form(ctx context.Context, s *session.Session, network PodNetwork) error {
	f, err := examine(ctx, s, network) // somebody may have changed a machine since
	if err != nil || len(f.outside) == 0 {
		return err
	}
	c := cluster.New(s, f.facts, addon.Importer(s))
	defer c.Close()
	err = f.run(ctx, c)
	if c.Admin != nil && ctx.Err() == nil { // joins that go on without labctl need their tokens: the next run deletes them
		err = errors.Join(err, c.Retire(ctx))
	}
	return err
}

func (f *Forming) run(ctx context.Context, c *cluster.Run) error {
	if first := f.Cluster.ControlPlanes()[0]; !f.exists && !c.Fact(first).Running() {
		if err := f.prepare(ctx, first); err != nil {
			return err
		}
	}
	if err := c.Initialise(ctx); err != nil {
		return err
	}
	if err := f.podNetwork(ctx, c); err != nil {
		return err
	}
	outside, err := f.without(ctx, c)
	if err != nil {
		return err
	}
	if err := c.JoinNodes(ctx, outside); err != nil {
		return err
	}
	if err := c.Retire(ctx); err != nil { // before the proof, in which a run that is killed would leave them
		return err
	}
	return health.Prove(ctx, f.Session, c.Admin, false)
}

// prepare repairs what kubeadm init would stop at. Joins repair their machines themselves.
func (f *Forming) prepare(ctx context.Context, n config.Node) error {
	step := f.Events.Start(n.Name, "preflight", session.RepairBudget)
	bad := session.FirstBad(f.Checked(ctx, n.Name, session.RepairBudget, append(f.preflight(n), "--fix")...))
	if bad == nil {
		return step.End(nil)
	}
	return step.End(fmt.Errorf("%s: %s: %s\nnext: %s", n.Name, bad.ID, bad.Evidence, bad.Hint))
}

const (
	pluginBudget  = 5 * time.Minute  // until a pod network's image is pulled and its first pod runs
	pluginPresent = 20 * time.Second // until kubelet has noticed one that is there
)

// podNetwork applies the manifest, and waits until the pod network works on a control plane: no join is proven without.
func (f *Forming) podNetwork(ctx context.Context, c *cluster.Run) error {
	step := f.Events.Start("", "pod network", pluginBudget)
	budget := pluginPresent
	if len(f.network.Manifest) > 0 {
		budget = pluginBudget
		err := wait.For(ctx, "the API server to take the pod network", time.Minute, f.Pace(), func(ctx context.Context) error {
			return c.Admin.Kube.Apply(ctx, f.network.Manifest)
		})
		if err != nil {
			return step.End(fmt.Errorf("apply %s: %w", f.network.File, err))
		}
	}
	err := wait.For(ctx, "a control plane to be Ready", budget, f.Pace(), session.ShowWaiting(step, func(ctx context.Context) error {
		nodes, err := c.Admin.Kube.Nodes(ctx)
		if err != nil {
			return err
		}
		for _, n := range c.JoinedControlPlanes() {
			k := session.FindNode(nodes, n.Name)
			switch {
			case k == nil:
				err = errors.Join(err, fmt.Errorf("%s has no Node yet", n.Name))
			case k.Ready:
				return nil
			default:
				err = errors.Join(err, fmt.Errorf("%s is not Ready: %s", n.Name, k.Reason))
			}
		}
		return err
	}))
	switch {
	case err == nil || ctx.Err() != nil:
	case len(f.network.Manifest) > 0:
		err = fmt.Errorf("%w\nnext: labctl diagnose; when the pod network of %s works, labctl up again", err, f.network.File)
	default:
		err = fmt.Errorf("the cluster is initialised, and waits for a pod network: %w\n"+
			"next: labctl up --pod-network FILE, with the manifest of the one that you want; "+
			"or install it your own way (labctl kubectl, labctl kubeconfig), and then labctl up, which joins the other machines", err)
	}
	return step.End(err)
}

// without are the machines to be joined that are no members: a join that an earlier run began may have ended well meanwhile.
func (f *Forming) without(ctx context.Context, c *cluster.Run) (nodes []config.Node, err error) {
	registered, err := c.Admin.Kube.Nodes(ctx)
	for _, n := range f.outside {
		if !c.IsMember(n, registered) {
			nodes = append(nodes, n)
		}
	}
	return nodes, err
}
