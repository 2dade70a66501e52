// Package phase is what the nine phases of an onboarding do, and how their changes are undone: the runners and undoers of lab/onboard on a
// real cluster. In the lab it makes and removes the node's machine and joins it; on another cluster the node joins by its own means, and
// this package looks on.
package phase

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"k8slab/lab/diagnose"
	"k8slab/lab/event"
	"k8slab/lab/gitrepo"
	"k8slab/lab/join"
	"k8slab/lab/kube"
	"k8slab/lab/machine"
	"k8slab/lab/onboard"
	"k8slab/lab/symptom"
	"k8slab/lab/validate"
)

// Lab makes a node's machine and takes it into the lab's cluster. *lab.Lab is one.
type Lab interface {
	machines
	joiner
	Preflight(ctx context.Context, node string, fix bool) ([]join.Check, error)
}

type machines interface {
	Machine(ctx context.Context, node string) (state machine.State, admitted bool, err error)
	MakeMachine(ctx context.Context, node string) error
	RemoveMachine(ctx context.Context, node string) error
}

type joiner interface {
	Join(ctx context.Context, node string) error
	Reset(ctx context.Context, node string) error
	Traces(ctx context.Context, node string) ([]string, error)
}

// nodes is the cluster's record of its machines. *kube.Client is one.
type nodes interface {
	Node(ctx context.Context, name string) (*kube.Node, error)
	DeleteNode(ctx context.Context, name string) error
	Drain(ctx context.Context, name string, say func(format string, args ...any)) error
}

// Config says who is taken where, and by what means.
type Config struct {
	Target  onboard.Target
	Cluster *validate.Cluster // with the Owner of this package
	Flux    validate.Ref      // the objects that apply what the repository says

	Git         *gitrepo.Repository // nil for none
	GitExplicit bool                // the user named the repository: without Flux it is no reason to leave the activation out

	Lab          Lab    // nil for a cluster that is not the lab's
	MachineID    string // of the lab's machine; "" where any machine of the name will do
	CPUs, Memory int    // of the node, Memory in MiB; 0 where they are not known

	Dir    string         // of the cluster's onboardings
	Store  *onboard.Store // below Dir
	Seen   *Evidence      // below Dir
	Events *event.Stream  // for what an undoing has to tell
}

// Owner labels the test objects of a node's onboarding: a label's value is short, a node's name may be long.
func Owner(node string) string {
	owner := "onboard-" + node
	if len(owner) > 63 {
		sum := sha256.Sum256([]byte(node))
		owner = "onboard-" + hex.EncodeToString(sum[:8])
	}
	return owner
}

// Prepare returns what each phase does, and how changes are undone.
func Prepare(c Config) (map[onboard.PhaseID]onboard.Runner, map[string]onboard.Undoer) {
	seen := c.Seen
	members := kube.Of(c.Cluster.Kube)
	node, v := c.Target.Node, c.Cluster
	before := func() *validate.Snapshot {
		record, _ := seen.Read() // without it there is nothing to compare with, which the checks say
		return record.Before
	}
	look := func(id onboard.PhaseID, await bool, checks func() []validate.Check) *looking {
		return &looking{id: id, node: node, checks: checks, await: await, seen: seen}
	}
	pre := look(onboard.PreValidation, false, func() []validate.Check { return preChecks(c) })
	pre.first = func(ctx context.Context) error {
		return errors.Join(v.RemoveLeftovers(ctx, v.Owner), seen.keepBefore(ctx, v.TakeSnapshot))
	}
	storage := look(onboard.StorageIntegration, true, func() []validate.Check { return v.StorageChecks(node) })
	network := look(onboard.NetworkValidation, true, func() []validate.Check { return v.NetworkChecks(node) })
	pre.later, storage.later, network.later = true, true, true // by the post-validation
	health := look(onboard.HealthVerification, true, func() []validate.Check { return v.HealthChecks(node, before()) })
	health.last = func(ctx context.Context) error { return seen.keepAfter(ctx, v.TakeSnapshot) }
	runners := map[onboard.PhaseID]onboard.Runner{
		onboard.PreValidation:         pre,
		onboard.GitOpsActivation:      newActivation(c),
		onboard.NodeJoinMonitoring:    newArrival(c, members),
		onboard.StorageIntegration:    storage,
		onboard.NetworkValidation:     network,
		onboard.MonitoringIntegration: look(onboard.MonitoringIntegration, true, func() []validate.Check { return v.MonitoringChecks(node) }),
		onboard.SecurityValidation:    look(onboard.SecurityValidation, false, func() []validate.Check { return v.SecurityChecks(node) }),
		onboard.PostValidation:        look(onboard.PostValidation, true, func() []validate.Check { return postChecks(c) }),
		onboard.HealthVerification:    health,
	}
	undoers := map[string]onboard.Undoer{testKind: leftovers{v}, joinKind: newLeaving(c, members)}
	if c.Lab != nil {
		undoers[machineKind] = machineGone{c.Lab}
	}
	if c.Git != nil {
		undoers[gitrepo.Kind] = deactivated{newActivation(c)}
	}
	return runners, undoers
}

// preChecks are what must hold before anything is changed.
func preChecks(c Config) []validate.Check {
	v := *c.Cluster
	v.Diagnose = beside(c.Target.Node, v.Diagnose)
	checks := append(v.ClusterChecks(), v.GitOpsChecks()...)
	checks = append(checks, v.StorageChecks("")...)
	for _, room := range v.CapacityChecks(c.CPUs, c.Memory) {
		checks = append(checks, beforeJoining(room, kube.Of(v.Kube), c.Target.Node))
	}
	return append(checks, machineCheck(c.Lab, c.Target.Node), repositoryCheck(c))
}

// beside is the diagnosis without what is wrong with the node: that of a resumed onboarding may not have joined yet.
func beside(node string, look func(context.Context) (diagnose.Report, error)) func(context.Context) (diagnose.Report, error) {
	if look == nil {
		return nil
	}
	return func(ctx context.Context) (diagnose.Report, error) {
		r, err := look(ctx)
		r.Findings = slices.DeleteFunc(r.Findings, func(f symptom.Finding) bool { return f.Node == node })
		r.Healthy = !r.Failed() && len(r.Undetermined) == 0
		return r, err
	}
}

// beforeJoining is a check that is about a node which is still to come: a resumed onboarding may find it there.
func beforeJoining(check validate.Check, members nodes, node string) validate.Check {
	look := check.Look
	check.Look = func(ctx context.Context) (validate.Finding, error) {
		n, err := members.Node(ctx, node)
		if err == nil && n != nil {
			return validate.Finding{Status: validate.NotApplicable, Detail: node + " is in the cluster already"}, nil
		}
		return look(ctx)
	}
	return check
}

// postChecks are the cluster's own validations: of a lab, among them the verdict with which `up` ends.
func postChecks(c Config) []validate.Check {
	v, node := c.Cluster, c.Target.Node
	return slices.Concat(v.ClusterChecks(), v.StorageChecks(node), v.MonitoringChecks(node), v.NetworkChecks(node))
}

// machineCheck is the target's own preflight, if the lab has its machine already.
func machineCheck(l Lab, node string) validate.Check {
	return validate.Check{Area: validate.AreaCluster, Name: node + " is ready to join", Look: func(ctx context.Context) (validate.Finding, error) {
		absent := func(why string) (validate.Finding, error) {
			return validate.Finding{Status: validate.NotApplicable, Detail: why}, nil
		}
		if l == nil {
			return absent("the machine is not the lab's: run labnode preflight on it")
		}
		state, admitted, err := l.Machine(ctx, node)
		switch {
		case err != nil:
			return validate.Finding{}, err
		case state == machine.Absent:
			return absent("its machine is made later, with all that a join needs")
		case !admitted:
			return validate.Finding{Status: validate.Failed, Detail: strangeMachine(node, state).Error(), Next: strangeNext}, nil
		case state != machine.Running:
			return absent(fmt.Sprintf("its machine is %s and is started later", state))
		}
		checks, err := l.Preflight(ctx, node, false)
		if err == nil && checks == nil {
			return absent("it has joined already")
		}
		return preflightFinding(checks), err
	}}
}

// preflightFinding judges the node's own checks by the worst.
func preflightFinding(checks []join.Check) validate.Finding {
	f := validate.Finding{Status: validate.Passed, Detail: fmt.Sprintf("%d checks of labnode preflight", len(checks))}
	for _, c := range checks {
		text := fmt.Sprintf("%s: %s", c.ID, c.Evidence)
		switch {
		case c.Result == join.Blocked || c.Result == join.Fixable:
			return validate.Finding{Status: validate.Failed, Detail: text, Next: c.Hint}
		case c.Result == join.Warn && f.Status == validate.Passed:
			f = validate.Finding{Status: validate.Warned, Detail: text, Next: c.Hint}
		}
	}
	return f
}
