package lab

import (
	"context"
	"errors"
	"time"

	"k8slab/lab/addon"
	"k8slab/lab/attach"
	"k8slab/lab/bringup"
	"k8slab/lab/cluster"
	"k8slab/lab/diagnose"
	"k8slab/lab/etcdadmin"
	"k8slab/lab/health"
	"k8slab/lab/image"
	"k8slab/lab/provision"
	"k8slab/lab/reach"
	"k8slab/lab/repair"
	"k8slab/lab/session"
	"k8slab/lab/state"
	"k8slab/lab/upgrade"
)

// Up brings the lab to a proven healthy cluster, or to the end of the given stage: see bringup.Up.
func (l *Lab) Up(ctx context.Context, until bringup.Stage) error {
	if l.described.OverSSH() {
		return l.Form(ctx, bringup.PodNetwork{})
	}
	return l.with(ctx, l.making(ctx, false), func(s *session.Session) error { return bringup.Up(ctx, s, until) })
}

// Prune removes the nodes that have to leave, one after another, each from a lab that is opened anew: see bringup.Prune.
func (l *Lab) Prune(ctx context.Context) (err error) {
	for left := 1; left > 0 && err == nil; {
		err = l.with(ctx, l.making(ctx, true), func(s *session.Session) (err error) {
			left, err = bringup.Prune(ctx, s)
			return err
		})
	}
	return err
}

func (l *Lab) making(ctx context.Context, prune bool) access {
	return access{verb: "labctl up", makes: true, check: func(closed state.Lab) error { return provision.Check(ctx, closed, l.options, prune) }}
}

func (l *Lab) statusBudget() time.Duration {
	return health.StatusBudget(len(l.found.Cluster.Members()))
}

// Plan is what up would do, and what of it is already done in the lab. With an error it returns the steps all the same.
func (l *Lab) Plan(ctx context.Context) ([]bringup.Step, error) {
	steps, err := ask(ctx, l, access{within: l.statusBudget()}, bringup.Plan)
	if errors.Is(err, state.ErrNotUp) {
		err = nil
	}
	if steps == nil {
		steps = bringup.NewPlan(l.found)
	}
	return steps, err
}

// Down removes the lab from this computer: see provision.Down.
func (l *Lab) Down(ctx context.Context, adopted bool) error {
	release, err := state.Lock(l.Name(), "labctl down")
	if err != nil {
		return err
	}
	defer release()
	if l.described.OverSSH() {
		return attach.Forget(ctx, l.found, l.events)
	}
	return provision.Down(ctx, l.found, l.events, l.options, adopted)
}

// Status reads the lab's status: see health.ReadStatus.
func (l *Lab) Status(ctx context.Context) (health.Status, error) {
	st, err := ask(ctx, l, access{within: l.statusBudget()}, health.ReadStatus)
	if errors.Is(err, state.ErrNotUp) {
		st, err = health.Closed(l.found), nil
		st.Problems = []string{state.ErrNotUp.Error()}
	}
	return st, err
}

// Traces lists what the cluster still has of a node: see health.Traces.
func (l *Lab) Traces(ctx context.Context, name string) ([]string, error) {
	return askAdmin(ctx, l, access{within: l.statusBudget()}, func(ctx context.Context, s *session.Session, v *session.Admin) ([]string, error) {
		return health.Traces(ctx, s, v, name)
	})
}

// Diagnose says what is wrong with the lab: see health.Diagnose.
func (l *Lab) Diagnose(ctx context.Context, o health.DiagnoseOptions) (diagnose.Report, error) {
	return ask(ctx, l, access{check: o.Check}, func(ctx context.Context, s *session.Session) (diagnose.Report, error) {
		return health.Diagnose(ctx, s, o)
	})
}

// Join joins one node to the cluster: see cluster.Run.
func (l *Lab) Join(ctx context.Context, name string) error {
	return l.onNode(ctx, "labctl join", name, (*cluster.Run).Join)
}

// Rejoin resets the node and joins it again.
func (l *Lab) Rejoin(ctx context.Context, name string) error {
	return l.onNode(ctx, "labctl rejoin", name, (*cluster.Run).Rejoin)
}

// Reset takes the node out of the cluster: see cluster.Run.
func (l *Lab) Reset(ctx context.Context, name string) error {
	return l.onNode(ctx, "labctl reset", name, (*cluster.Run).Reset)
}

// Remove is Reset, and also deletes the node's machine: see cluster.Run.
func (l *Lab) Remove(ctx context.Context, name string) error {
	return l.onNode(ctx, "labctl reset", name, (*cluster.Run).Remove)
}

// JoinCommand makes a token and returns the command to join with: see cluster.MakeJoinCommand.
func (l *Lab) JoinCommand(ctx context.Context, controlPlane bool) (cluster.JoinCommand, error) {
	return askAdmin(ctx, l, access{verb: "labctl join-command"}, func(ctx context.Context, s *session.Session, v *session.Admin) (cluster.JoinCommand, error) {
		return cluster.MakeJoinCommand(ctx, s, v, controlPlane)
	})
}

// Repair makes the repairs that are safe, on a node that still fails up to that rung, or with dryRun lists them: see repair.Run.
func (l *Lab) Repair(ctx context.Context, dryRun bool, upTo repair.Rung) (found []repair.Repaired, err error) {
	if l.described.OverSSH() && !dryRun {
		return l.repairExisting(ctx, upTo)
	}
	return l.repair(ctx, dryRun, upTo, nil)
}

func (l *Lab) repair(ctx context.Context, dryRun bool, upTo repair.Rung, seen *repair.Seen, steps ...string) (found []repair.Repaired, err error) {
	verb := "labctl repair"
	if dryRun && l.described.OverSSH() {
		verb = "" // it only reads
	}
	err = l.onOpened(ctx, access{verb: verb, steps: steps}, cluster.OpenForRepair, func(c *cluster.Run) error {
		c.DryRun = dryRun
		found, err = repair.Run(ctx, c, upTo, seen)
		return err
	})
	return found, err
}

// Upgrade upgrades the cluster to another version of Kubernetes: see upgrade.Run.
func (l *Lab) Upgrade(ctx context.Context, o upgrade.Options) error {
	return l.onOpened(ctx, access{verb: "labctl upgrade"}, cluster.Open, func(c *cluster.Run) error { return upgrade.Run(ctx, c, o) })
}

// EtcdMembers lists the members of etcd. It needs no quorum.
func (l *Lab) EtcdMembers(ctx context.Context) (etcdadmin.Status, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, etcdadmin.MembersBudget, errors.New("no answer within 30s"))
	defer cancel()
	return askAdmin(ctx, l, access{}, etcdadmin.Members)
}

// CleanLearners removes the learners that no join will promote, or with dryRun says which. It returns its verdict on every member, also
// with an error.
func (l *Lab) CleanLearners(ctx context.Context, dryRun bool) ([]etcdadmin.Verdict, error) {
	if dryRun {
		return askAdmin(ctx, l, access{}, etcdadmin.CleanDryRun)
	}
	return askAdmin(ctx, l, access{verb: "labctl etcd clean-learners"}, func(ctx context.Context, s *session.Session, v *session.Admin) ([]etcdadmin.Verdict, error) {
		removed, left, err := etcdadmin.Clean(ctx, s, v, "")
		return etcdadmin.Verdicts(removed, left), err
	})
}

// SnapshotSave saves etcd's database to a file: see etcdadmin.SaveSnapshot.
func (l *Lab) SnapshotSave(ctx context.Context, file string) (etcdadmin.Snapshot, error) {
	return askAdmin(ctx, l, access{}, func(ctx context.Context, _ *session.Session, v *session.Admin) (etcdadmin.Snapshot, error) {
		return etcdadmin.SaveSnapshot(ctx, v.Etcd, file)
	})
}

// SnapshotRestore replaces a lost etcd cluster by a new one: see etcdadmin.RestoreSnapshot.
func (l *Lab) SnapshotRestore(ctx context.Context, r etcdadmin.Restore) error {
	return l.with(ctx, access{verb: "labctl etcd snapshot restore", check: r.Check}, func(s *session.Session) error {
		return etcdadmin.RestoreSnapshot(ctx, s, r)
	})
}

// InstallAddons installs the named add-ons, and those that they need, and waits until they are ready. Nodes that join later get their
// images only if cluster.yaml lists the add-ons.
func (l *Lab) InstallAddons(ctx context.Context, names []string) error {
	wanted, err := addon.Resolve(names)
	if err != nil {
		return err
	}
	return l.onOpened(ctx, access{verb: "labctl addons install"}, cluster.Open, func(c *cluster.Run) error { return addon.Install(ctx, c.Session, c.Admin, wanted) })
}

// Addons lists all add-ons. If the lab is not up, none is installed.
func (l *Lab) Addons(ctx context.Context) ([]addon.Status, error) {
	all, err := askAdmin(ctx, l, access{within: l.statusBudget()}, addon.ReadStatus)
	if errors.Is(err, state.ErrNotUp) {
		return addon.List(l.found)
	}
	return all, err
}

// GitOps finds the way to the lab's Git repository: see addon.FindGit. It works until the lab is closed.
func (l *Lab) GitOps(ctx context.Context) (addon.GitOps, error) {
	return keepAdmin(ctx, l, addon.FindGit)
}

// Services is the way from this computer to the cluster's Services: see reach.Find. It works until the lab is closed.
func (l *Lab) Services(ctx context.Context) (reach.Services, error) {
	return keepAdmin(ctx, l, reach.Find)
}

// LoadImages imports an archive onto nodes: see provision.LoadImages.
func (l *Lab) LoadImages(ctx context.Context, a *image.Archive, names []string) ([]provision.ImagesLoaded, error) {
	return ask(ctx, l, access{}, func(ctx context.Context, s *session.Session) ([]provision.ImagesLoaded, error) {
		return provision.LoadImages(ctx, s, a, names)
	})
}

// PowerOff turns the node's machine off at once, like pulling the plug. `labctl up` starts it again.
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
