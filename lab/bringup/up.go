package bringup

import (
	"context"
	"fmt"
	"slices"

	"k8slab/config"
	"k8slab/lab/addon"
	"k8slab/lab/cluster"
	"k8slab/lab/health"
	"k8slab/lab/machine"
	"k8slab/lab/provision"
	"k8slab/lab/session"
)

// Up brings the lab from any state to a proven healthy cluster, or to the end of the given stage.
func Up(ctx context.Context, s *session.Session, until Stage) error {
	up := &upRun{Session: s, maker: provision.For(s)}
	defer up.close()
	for _, stage := range stages {
		if err := stage.run(up, ctx); err != nil || stage.name == until {
			return err
		}
	}
	return nil
}

// upRun is what the stages of one `up` share.
type upRun struct {
	*session.Session
	maker   *provision.Maker
	missing []config.Node // nodes that had no machine when it began
	boot    machine.Boot  // what their machines boot from
	first   []config.Node // nodes whose machines are made before the cluster; the staggered ones come later
	run     *cluster.Run
}

func (u *upRun) close() {
	if u.run != nil {
		u.run.Close()
	}
}

// image builds the images for machines that are missing. An existing machine keeps the image that it was made from.
func (u *upRun) image(ctx context.Context) (err error) {
	if u.Reconfigures() {
		if err := checkOptions(ctx, u.reconfigured()); err != nil {
			return err
		}
	}
	if u.missing, err = provision.Absent(ctx, u.Session); err != nil || len(u.missing) == 0 {
		return err
	}
	if err := provision.WarnSize(u.Lab, u.Events, u.missing); err != nil {
		return err
	}
	if u.boot, err = u.maker.Image(ctx); err != nil {
		return err
	}
	if err := checkOptions(ctx, u.Session); err != nil {
		return err
	}
	return addon.BuildImages(ctx, u.Session)
}

// checkOptions has the programs of the image check what cluster.yaml has for them.
func checkOptions(ctx context.Context, s *session.Session) error {
	if s.Libvirt == nil || !cluster.HasOptions(s.Cluster) {
		return nil
	}
	img, err := provision.NodeImage(ctx, s)
	if err != nil {
		return err
	}
	return cluster.CheckOptions(ctx, s, img)
}

func (u *upRun) network(ctx context.Context) error {
	if err := u.Settle(u.Cluster.Members()...); err != nil {
		return err
	}
	return provision.Network(ctx, u.Session)
}

// machines makes those that are missing after those that exist run: a new control plane would take the virtual IP from one that does not
// know it yet.
func (u *upRun) machines(ctx context.Context) error {
	later := u.Cluster.Staggered(u.missing)
	u.first = slices.DeleteFunc(u.Cluster.Members(), func(n config.Node) bool { return config.HasNode(later, n.Name) })
	exist := slices.DeleteFunc(slices.Clone(u.first), func(n config.Node) bool { return config.HasNode(u.missing, n.Name) })
	if err := u.maker.Boot(ctx, exist, u.boot); err != nil {
		return err
	}
	return u.maker.Boot(ctx, slices.DeleteFunc(slices.Clone(u.first), func(n config.Node) bool { return config.HasNode(exist, n.Name) }), u.boot)
}

// initialise requires every machine to answer: if a control plane were silent, it might make a second cluster beside that one's.
func (u *upRun) initialise(ctx context.Context) error {
	facts, err := u.Facts(ctx, u.first)
	if err != nil {
		if slices.ContainsFunc(u.Cluster.ControlPlanes(), func(n config.Node) bool { return facts[n.Name].Joined }) {
			err = fmt.Errorf("%w\nnext: labctl repair, which restarts a machine that gives no answer; "+
				"labctl repair --up-to recreate makes it anew", err)
		}
		return err
	}
	u.run = cluster.New(u.Session, facts, addon.Importer(u.Session))
	u.run.Boot = func(ctx context.Context, n config.Node) error { return u.maker.Boot(ctx, []config.Node{n}, u.boot) }
	return u.run.Initialise(ctx)
}

func (u *upRun) networkPlugin(ctx context.Context) error { return u.run.NetworkPlugin(ctx) }

func (u *upRun) join(ctx context.Context) error { return u.run.JoinAll(ctx) }

func (u *upRun) addons(ctx context.Context) error {
	addons, err := addon.Wanted(u.Session)
	if err != nil {
		return err
	}
	return addon.Install(ctx, u.Session, u.run.Admin, addons)
}

func (u *upRun) proof(ctx context.Context) error {
	if err := health.Prove(ctx, u.Session, u.run.Admin, len(u.missing) == 0); err != nil {
		return err
	}
	return u.run.Retire(ctx)
}
