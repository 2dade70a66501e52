// Package upgrade takes the cluster of an opened lab to another version of Kubernetes, in kubeadm's order: the first control plane, the other
// control planes one after another, the workers. It looks for what would stop it before it changes anything, saves what can be needed to go
// back, and goes on where an earlier run ended. What kubeadm does it leaves to kubeadm.
// https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/kubeadm-upgrade/
package upgrade

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8slab/config"
	"k8slab/lab/backup"
	"k8slab/lab/cluster"
	"k8slab/lab/health"
	"k8slab/lab/image"
	"k8slab/lab/kube"
	"k8slab/lab/provision"
	"k8slab/lab/session"
	"k8slab/lab/state"
	"k8slab/lab/symptom"
)

// Options of an upgrade.
type Options struct {
	Version string   // of Kubernetes, to which
	Workers int      // are drained and upgraded at once
	Ignore  []string // causes that do not stop the upgrade, if they are found before it
	Plan    *Plan    // if it is not nil, it gets what would be done, and nothing is
}

// upgrade is one run of an upgrade.
type upgrade struct {
	*cluster.Run
	options Options
	after   *cluster.Run // the same with the lab as the upgrade leaves it
	image   image.Image  // of the new version
	release image.Release

	noting sync.Mutex // of record
	record state.Upgrade
}

// open finds out what the upgrade is of, and builds what it brings.
func open(ctx context.Context, c *cluster.Run, o Options) (*upgrade, error) {
	if err := complete(c); err != nil {
		return nil, err
	}
	is, err := c.Admin.Kube.ClusterConfiguration(ctx)
	if err != nil {
		return nil, err
	}
	u := &upgrade{Run: c, options: o, record: state.Upgrade{From: is.KubernetesVersion, To: o.Version}}
	begun, err := c.Upgrading()
	if err != nil {
		return nil, err
	}
	if begun != nil {
		if begun.To != o.Version {
			return nil, fmt.Errorf("an upgrade to %s has begun and not ended; next: labctl upgrade %[1]s ends it", begun.To)
		}
		u.record = *begun
	}
	if err := follows(u.record.From, o.Version); err != nil {
		return nil, err
	}
	if c.Cluster.Image.From != "" {
		return nil, errors.New("the lab's node image was fetched (image.from), and an upgrade builds the next one; next: labctl down, and labctl up with the other image")
	}
	described := *c.Cluster
	described.Kubernetes.Version, described.Kubernetes.Source = o.Version, c.Described.Kubernetes.Source
	after := *c.Session
	after.Cluster = &described
	u.after = c.Of(&after)
	if u.image, err = provision.NodeImage(ctx, &after); err != nil {
		return nil, err
	}
	u.release, err = u.image.Release(ctx, o.Version)
	return u, err
}

// complete refuses a cluster of which a node cannot be upgraded now.
func complete(c *cluster.Run) error {
	var errs []error
	for _, n := range c.Cluster.Members() {
		if !c.Answers(n.Name) {
			errs = append(errs, fmt.Errorf("%s: it does not answer over SSH; next: labctl up, which starts its machine", n.Name))
		} else if !c.Fact(n).Joined {
			errs = append(errs, fmt.Errorf("%s: it has not joined the cluster; next: labctl up", n.Name))
		}
	}
	return errors.Join(errs...)
}

// Run upgrades the cluster. It builds the node image of the version first, if the cache does not have it.
func Run(ctx context.Context, c *cluster.Run, o Options) error {
	c.DryRun = o.Plan != nil
	if err := errors.Join(c.FinishRunning(ctx), c.AwaitAPI(ctx)); err != nil {
		return err
	}
	u, err := open(ctx, c, o)
	if err != nil {
		return err
	}
	switch has, err := u.hasVersion(ctx); {
	case err != nil:
		return err
	case o.Plan != nil:
		*o.Plan, err = u.plan(ctx)
		return err
	case has:
		u.Events.Start("", "upgrade", 0).EndWith("the cluster has " + o.Version + " already")
		return health.Prove(ctx, u.after.Session, u.Admin, true)
	}
	if err := errors.Join(u.recall(ctx), u.pass(ctx)); err != nil {
		return err
	}
	if err := u.save(ctx); err != nil {
		return err
	}
	if err := u.bring(ctx); err != nil {
		return err
	}
	if err := u.etcdPath(ctx); err != nil {
		return err
	}
	for i, n := range u.Cluster.ControlPlanes() {
		if err := u.controlPlane(ctx, n, i == 0); err != nil {
			return u.explain(n, err)
		}
	}
	workers := u.Cluster.Workers()
	for batch := range slices.Chunk(workers, max(o.Workers, 1)) {
		if err := session.ForEachNode(batch, func(n config.Node) error { return u.explain(n, u.worker(ctx, n)) }); err != nil {
			return err
		}
	}
	if err := health.Prove(ctx, u.after.Session, u.Admin, false); err != nil {
		return err
	}
	return u.Upgraded(u.after.Cluster.Kubernetes)
}

// hasVersion tells whether the cluster has the version already. Kubelets get it last.
func (u *upgrade) hasVersion(ctx context.Context) (bool, error) {
	nodes, err := u.Admin.Kube.Nodes(ctx)
	older := func(n kube.Node) bool { return n.KubeletVersion != u.options.Version }
	return err == nil && len(u.record.Done) == 0 && u.record.From == u.options.Version && !slices.ContainsFunc(nodes, older), err
}

// pass refuses the upgrade if something would stop it, and shows what may.
func (u *upgrade) pass(ctx context.Context) error {
	step := u.Events.Start("", "preflight", 0)
	findings, err := u.preflight(ctx)
	if err != nil {
		return step.End(err)
	}
	if slices.ContainsFunc(findings, func(f symptom.Finding) bool { return f.Level == symptom.Fail }) {
		return step.End(&BlockedError{u.options.Version, findings})
	}
	for _, f := range findings {
		step.Progress("warning: %s%s: %s", f.Symptom, on(f.Node), f.Evidence[0].Text)
	}
	return step.End(nil)
}

// explain says what to do about a node that was not upgraded.
func (u *upgrade) explain(n config.Node, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: upgrade to %s: %w\nnext: labctl diagnose; labctl upgrade %[2]s goes on from here", n.Name, u.options.Version, err)
}

// The steps that are noted when they are done. Some end with the name of a node.
const (
	stepSave     = "save"
	stepPrograms = "programs of "
	stepKubeadm  = "kubeadm on "
	stepKubelet  = "kubelet of "
)

func (u *upgrade) done(step string) bool {
	u.noting.Lock()
	defer u.noting.Unlock()
	return slices.Contains(u.record.Done, step)
}

// step does what is not done yet, and notes that it is.
func (u *upgrade) step(name string, do func() error) error {
	if u.done(name) {
		return nil
	}
	if err := do(); err != nil {
		return err
	}
	u.noting.Lock()
	defer u.noting.Unlock()
	u.record.Done = append(u.record.Done, name)
	return u.Note(u.record)
}

// recall takes from the record what is no longer so, because somebody has put an older manifest back.
func (u *upgrade) recall(ctx context.Context) error {
	return session.ForEachNode(u.Cluster.ControlPlanes(), func(n config.Node) error {
		if !u.done(stepKubeadm + n.Name) {
			return nil
		}
		is, err := u.after.KubeadmUpgraded(ctx, n)
		if err != nil || is {
			return err
		}
		u.noting.Lock()
		defer u.noting.Unlock()
		u.record.Done = slices.DeleteFunc(u.record.Done, func(step string) bool { return step == stepKubeadm+n.Name })
		return u.Note(u.record)
	})
}

// save saves etcd's data, and the files of every node, before the first change.
func (u *upgrade) save(ctx context.Context) error {
	return u.step(stepSave, func() error {
		_, err := backup.Take(ctx, u.Session, u.Admin, "labctl upgrade", u.Cluster.Members())
		return err
	})
}
