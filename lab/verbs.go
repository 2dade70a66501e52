package lab

import (
	"context"
	"errors"

	"k8slab/lab/addon"
	"k8slab/lab/bringup"
	"k8slab/lab/cluster"
	"k8slab/lab/diagnose"
	"k8slab/lab/etcdadmin"
	"k8slab/lab/health"
	"k8slab/lab/image"
	"k8slab/lab/provision"
	"k8slab/lab/repair"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// Up brings the lab from whatever state it is in to a proven healthy cluster, or to the end of the given stage.
func (l *Lab) Up(ctx context.Context, until bringup.Stage) error {
	return l.with(ctx, access{verb: "labctl up", makes: true, check: func(closed state.Lab) error {
		if err := errors.Join(closed.CheckDescribed(), provision.CheckBase(closed), l.checkNew(closed), provision.CheckWhole(closed)); err != nil {
			return err
		}
		return provision.CheckHost(ctx, closed)
	}}, func(s *session.Session) error { return bringup.Up(ctx, s, until) })
}

// checkNew refuses a lab that does not exist yet and that cannot be made here, before anything of it is made.
func (l *Lab) checkNew(closed state.Lab) error {
	err := provision.CheckSize(closed)
	if err == nil && !closed.Exists() {
		_, err = l.options.LabnodeBinary()
	}
	return err
}

// Plan is what up would do, and what of it is done in the lab that exists. It changes nothing. With an error, the steps are there all the same.
func (l *Lab) Plan(ctx context.Context) ([]bringup.Step, error) {
	steps, err := ask(ctx, l, access{within: health.StatusBudget}, bringup.Plan)
	if errors.Is(err, state.ErrNotUp) {
		err = nil
	}
	if steps == nil {
		steps = bringup.NewPlan(l.found.Cluster)
	}
	return steps, err
}

// Down removes everything that the lab made on this computer, and with adopted also the machines of it that vagrant made: without, those
// keep it from removing anything. What else it did not make stays. Interrupted, it is run again.
func (l *Lab) Down(ctx context.Context, adopted bool) error {
	release, err := state.Lock(l.Name(), "labctl down")
	if err != nil {
		return err
	}
	defer release()
	return provision.Down(ctx, l.found, l.events, l.options, adopted)
}

// Status looks at the lab; it changes nothing and does not wait for another labctl.
func (l *Lab) Status(ctx context.Context) (health.Status, error) {
	st, err := ask(ctx, l, access{within: health.StatusBudget}, health.ReadStatus)
	if errors.Is(err, state.ErrNotUp) {
		st, err = health.Closed(l.found), nil
		st.Problems = []string{state.ErrNotUp.Error()}
	}
	return st, err
}

// Healthy returns what of the proof that `up` gives does not hold now. It looks once.
func (l *Lab) Healthy(ctx context.Context) error {
	_, err := askAdmin(ctx, l, access{within: health.StatusBudget}, func(ctx context.Context, s *session.Session, v *session.Admin) (struct{}, error) {
		return struct{}{}, errors.Join(health.Healthy(ctx, s, v)...)
	})
	return err
}

// Traces lists what the cluster still has of a node: its Node, its etcd member, a join that is at work on its machine. It looks once.
func (l *Lab) Traces(ctx context.Context, name string) ([]string, error) {
	return askAdmin(ctx, l, access{within: health.StatusBudget}, func(ctx context.Context, s *session.Session, v *session.Admin) ([]string, error) {
		return health.Traces(ctx, s, v, name)
	})
}

// Diagnose looks at the lab and says what is wrong with it. It changes nothing, does not wait for another labctl, and takes what does not
// answer for a fact.
func (l *Lab) Diagnose(ctx context.Context, o health.DiagnoseOptions) (diagnose.Report, error) {
	if err := o.Check(l.found); err != nil {
		return diagnose.Report{}, err
	}
	return ask(ctx, l, access{}, func(ctx context.Context, s *session.Session) (diagnose.Report, error) {
		return health.Diagnose(ctx, s, o)
	})
}

// Join gets one node into the cluster. A healthy member is left as it is; one that is not healthy is an error that says why.
func (l *Lab) Join(ctx context.Context, name string) error {
	return l.onNode(ctx, "labctl join", name, (*cluster.Run).Join)
}

// Rejoin resets the node, whatever it is, and joins it again.
func (l *Lab) Rejoin(ctx context.Context, name string) error {
	return l.onNode(ctx, "labctl rejoin", name, (*cluster.Run).Rejoin)
}

// Reset takes the node out of the cluster: its etcd member, what kubeadm did on the machine, its Node, and the pods that ran there, in
// this order.
func (l *Lab) Reset(ctx context.Context, name string) error {
	return l.onNode(ctx, "labctl reset", name, (*cluster.Run).Reset)
}

// Remove takes the node out of the cluster as Reset does, deletes its machine and its disk, and forgets that it was there. Of a machine that
// does not answer nothing is undone.
func (l *Lab) Remove(ctx context.Context, name string) error {
	return l.onNode(ctx, "labctl reset", name, (*cluster.Run).Remove)
}

// JoinCommand makes a bootstrap token, uploads the certificates that a control plane needs, and returns the command to join with. The
// cluster's CA is pinned.
func (l *Lab) JoinCommand(ctx context.Context, controlPlane bool) (cluster.JoinCommand, error) {
	return askAdmin(ctx, l, access{verb: "labctl join-command"}, func(ctx context.Context, s *session.Session, v *session.Admin) (cluster.JoinCommand, error) {
		return cluster.MakeJoinCommand(ctx, s, v, controlPlane)
	})
}

// Repair makes the repairs that are safe, or with dryRun says which it would make: see repair.Run.
func (l *Lab) Repair(ctx context.Context, dryRun bool) (found []repair.Repaired, err error) {
	err = l.onCluster(ctx, "labctl repair", func(c *cluster.Run) error {
		c.DryRun = dryRun
		found, err = repair.Run(ctx, c)
		return err
	})
	return found, err
}

// EtcdMembers looks at the members of etcd. It changes nothing, and needs no quorum.
func (l *Lab) EtcdMembers(ctx context.Context) (etcdadmin.Status, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, etcdadmin.MembersBudget, errors.New("no answer within 30s"))
	defer cancel()
	return askAdmin(ctx, l, access{}, etcdadmin.Members)
}

// CleanLearners removes the learners that no join will promote, or with dryRun only says what it would do. It returns its verdict on every
// member, also with an error.
func (l *Lab) CleanLearners(ctx context.Context, dryRun bool) ([]etcdadmin.Verdict, error) {
	if dryRun {
		return askAdmin(ctx, l, access{}, etcdadmin.CleanDryRun)
	}
	return askAdmin(ctx, l, access{verb: "labctl etcd clean-learners"}, func(ctx context.Context, s *session.Session, v *session.Admin) ([]etcdadmin.Verdict, error) {
		removed, left, err := etcdadmin.Clean(ctx, s, v, "")
		return etcdadmin.Verdicts(removed, left), err
	})
}

// SnapshotSave saves etcd's database to a file that only its owner can read, whole or not at all. It needs one voter that runs, not a
// quorum.
func (l *Lab) SnapshotSave(ctx context.Context, file string) (etcdadmin.Snapshot, error) {
	return askAdmin(ctx, l, access{}, func(ctx context.Context, _ *session.Session, v *session.Admin) (etcdadmin.Snapshot, error) {
		return etcdadmin.SaveSnapshot(ctx, v.Etcd, file)
	})
}

// SnapshotRestore replaces a lost etcd cluster by a new one of a single member: see etcdadmin.RestoreSnapshot.
func (l *Lab) SnapshotRestore(ctx context.Context, r etcdadmin.Restore) error {
	return l.with(ctx, access{verb: "labctl etcd snapshot restore", check: r.Check}, func(s *session.Session) error {
		return etcdadmin.RestoreSnapshot(ctx, s, r)
	})
}

// InstallAddons puts the named add-ons, and those that they need, into the cluster that runs, and waits until they are ready. Nodes that join
// later get their images only if cluster.yaml lists the add-ons.
func (l *Lab) InstallAddons(ctx context.Context, names []string) error {
	wanted, err := addon.Resolve(names)
	if err != nil {
		return err
	}
	return l.onCluster(ctx, "labctl addons install", func(c *cluster.Run) error { return addon.Install(ctx, c.Session, c.Admin, wanted) })
}

// Addons lists all add-ons. It changes nothing; of a lab that is not up, none is installed.
func (l *Lab) Addons(ctx context.Context) ([]addon.Status, error) {
	all, err := askAdmin(ctx, l, access{within: health.StatusBudget}, addon.ReadStatus)
	if errors.Is(err, state.ErrNotUp) {
		return addon.List(l.found)
	}
	return all, err
}

// GitOps finds the way to the lab's Git repository. It changes nothing, and fails where the add-on git is not installed. The way holds until
// the lab is closed.
func (l *Lab) GitOps(ctx context.Context) (addon.GitOps, error) {
	s, err := l.keep(ctx)
	if err != nil {
		return addon.GitOps{}, err
	}
	v, err := s.AnyAdmin(ctx)
	if err != nil {
		return addon.GitOps{}, err
	}
	defer v.Close()
	return addon.FindGit(ctx, s, v)
}

// LoadImages imports an archive on the named nodes, or on all whose machines run, all at once. A node that has an image by the same name
// gets this one instead. What it did before it failed on some of the nodes is returned with the error.
func (l *Lab) LoadImages(ctx context.Context, a *image.Archive, names []string) ([]provision.ImagesLoaded, error) {
	return ask(ctx, l, access{}, func(ctx context.Context, s *session.Session) ([]provision.ImagesLoaded, error) {
		return provision.LoadImages(ctx, s, a, names)
	})
}

// PowerOff pulls the plug of the node's machine. `labctl up` starts it again.
func (l *Lab) PowerOff(ctx context.Context, name string) error {
	return l.onMachine(ctx, name, "labctl power off", func(s *session.Session) error { return provision.Power(ctx, s, name, s.Machines.PowerOff) })
}

// Pause stops the processors of the node's machine; its memory and its connections stay.
func (l *Lab) Pause(ctx context.Context, name string) error {
	return l.onMachine(ctx, name, "labctl power pause", func(s *session.Session) error { return provision.Power(ctx, s, name, s.Machines.Suspend) })
}

// Resume undoes Pause.
func (l *Lab) Resume(ctx context.Context, name string) error {
	return l.onMachine(ctx, name, "labctl power resume", func(s *session.Session) error { return provision.Resume(ctx, s, name) })
}

func (l *Lab) onMachine(ctx context.Context, name, verb string, do func(*session.Session) error) error {
	return l.with(ctx, access{verb: verb}, func(s *session.Session) error {
		if _, err := s.Member(name); err != nil {
			return err
		}
		return do(s)
	})
}
