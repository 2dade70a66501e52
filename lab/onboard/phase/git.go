package phase

import (
	"context"
	"errors"
	"fmt"

	"k8slab/lab/gitrepo"
	"k8slab/lab/onboard"
	"k8slab/lab/validate"
)

// repository is the entry of a kustomization. A gitEntry is one.
type repository interface {
	Plan(ctx context.Context) ([]string, error)
	Run(ctx context.Context, j *onboard.Journal) (revision string, err error)
	Verify(ctx context.Context) (revision string, err error)
	Look(ctx context.Context) (gitrepo.Seen, error)
	Undoer() onboard.Undoer
}

// gitEntry journals what a repository changes.
type gitEntry struct{ *gitrepo.Repository }

func (g gitEntry) Run(ctx context.Context, j *onboard.Journal) (revision string, err error) {
	c := onboard.Change{Kind: gitrepo.Kind}
	c.Params, c.What, c.Undo = g.Change()
	return g.Repository.Run(ctx, func(ctx context.Context, isMade func(context.Context) (bool, error), do func(context.Context) error) error {
		return j.Do(ctx, c, isMade, do)
	})
}

func (g gitEntry) Undoer() onboard.Undoer { return gitUndoer(g) }

type gitUndoer struct{ *gitrepo.Repository }

func (u gitUndoer) Undo(ctx context.Context, c onboard.Change) error {
	return u.Repository.Undo(ctx, c.Params)
}
func (u gitUndoer) Verify(ctx context.Context, c onboard.Change) error {
	return u.Undone(ctx, c.Params)
}

// applier takes a revision of the repository into the cluster. *validate.Cluster is one.
type applier interface {
	Reconcile(ctx context.Context, ref validate.Ref, revision string, say func(string)) error
	Reconciled(ctx context.Context, ref validate.Ref, revision string) error
}

// activation switches the node's configuration on: first in Git, then by Flux.
type activation struct {
	repo     repository // nil for none
	explicit bool
	flux     applier
	ref      validate.Ref
	checks   func() []validate.Check // of GitOps, which say whether there is a Flux
}

func newActivation(c Config) *activation {
	a := &activation{explicit: c.GitExplicit, flux: c.Cluster, ref: c.Flux, checks: c.Cluster.GitOpsChecks}
	if c.Git != nil { // a nil *gitrepo.Repository would be a repository
		a.repo = gitEntry{c.Git}
	}
	return a
}

// hasFlux tells whether any check of GitOps applies to the cluster.
func (a *activation) hasFlux(ctx context.Context) (bool, error) {
	for _, f := range validate.Run(ctx, a.checks()) {
		if f.Status != validate.NotApplicable {
			return true, ctx.Err()
		}
	}
	return false, ctx.Err()
}

// without says why the phase does not apply, "" if it does; flux tells whether the entry is also reconciled.
func (a *activation) without(ctx context.Context) (why string, flux bool, err error) {
	if flux, err = a.hasFlux(ctx); err != nil {
		return "", false, err
	}
	switch {
	case a.repo == nil && flux:
		return "the cluster has Flux, and no repository is configured (onboard.git.url): nothing is switched on in Git", flux, nil
	case a.repo == nil || !flux && !a.explicit:
		return "the cluster has no Flux, and no repository is configured (onboard.git.url)", flux, nil
	}
	return "", flux, nil
}

func (a *activation) Plan(ctx context.Context) ([]string, error) {
	why, flux, err := a.without(ctx)
	if err != nil {
		return nil, err
	}
	if why != "" {
		return []string{"not applicable: " + why}, nil
	}
	steps, err := a.repo.Plan(ctx)
	if flux && err == nil {
		steps = append(steps, fmt.Sprintf("have Flux reconcile GitRepository %s and Kustomization %s of namespace %s at that commit",
			a.ref.Source, a.ref.Kustomization, a.ref.Namespace))
	}
	return steps, err
}

func (a *activation) Run(ctx context.Context, j *onboard.Journal) error {
	why, flux, err := a.without(ctx)
	if err != nil {
		return err
	}
	if why != "" {
		j.NotApplicable(why)
		return nil
	}
	revision, err := a.repo.Run(ctx, j)
	if err != nil {
		return err
	}
	j.Info("active at %s", revision)
	if !flux {
		j.Warn("the cluster has no Flux: nothing applies what %s says", revision)
		return nil
	}
	return a.apply(ctx, revision, func(text string) { j.Info("%s", text) }, a.repo.Verify)
}

// apply has Flux reconcile the revision, and when others push meanwhile the newest one, which again must be as it should.
func (a *activation) apply(ctx context.Context, revision string, say func(string), newest func(context.Context) (string, error)) error {
	for {
		err := a.flux.Reconcile(ctx, a.ref, revision, say)
		if !errors.Is(err, validate.ErrOtherRevision) {
			return err
		}
		now, looked := newest(ctx)
		if looked != nil {
			return fmt.Errorf("%w; and the branch: %w", err, looked)
		}
		if now == revision {
			return fmt.Errorf("%w; the branch is at %s: see that the GitRepository follows the configured repository and branch", err, now)
		}
		say("others have pushed: the branch is at " + now)
		revision = now
	}
}

// Verify looks once.
func (a *activation) Verify(ctx context.Context) error {
	why, flux, err := a.without(ctx)
	if err != nil || why != "" {
		return err
	}
	revision, err := a.repo.Verify(ctx)
	if err != nil || !flux {
		return err
	}
	return a.flux.Reconciled(ctx, a.ref, revision)
}

// deactivated is the undoing of an activation: in Git, and then by Flux, which prunes what the entry had applied.
type deactivated struct{ *activation }

func (d deactivated) Undo(ctx context.Context, c onboard.Change) error {
	if err := d.repo.Undoer().Undo(ctx, c); err != nil {
		return err
	}
	return d.inFlux(ctx, func(revision string) error { return d.apply(ctx, revision, func(string) {}, d.newest) })
}

func (d deactivated) Verify(ctx context.Context, c onboard.Change) error {
	if err := d.repo.Undoer().Verify(ctx, c); err != nil {
		return err
	}
	return d.inFlux(ctx, func(revision string) error { return d.flux.Reconciled(ctx, d.ref, revision) })
}

// inFlux does something about the branch's newest revision where the cluster has Flux.
func (d deactivated) inFlux(ctx context.Context, do func(revision string) error) error {
	flux, err := d.hasFlux(ctx)
	if err != nil || !flux {
		return err
	}
	revision, err := d.newest(ctx)
	if err != nil {
		return err
	}
	return do(revision)
}

// newest is the revision of the branch.
func (d deactivated) newest(ctx context.Context) (string, error) {
	s, err := d.repo.Look(ctx)
	return s.Revision, err
}

// repositoryCheck is that the entry can be switched on.
func repositoryCheck(c Config) validate.Check {
	return validate.Check{Area: validate.AreaGitOps, Name: "the repository has the node's entry", Look: func(ctx context.Context) (validate.Finding, error) {
		a := newActivation(c)
		why, _, err := a.without(ctx)
		if err != nil || why != "" {
			return validate.Finding{Status: validate.NotApplicable, Detail: why}, err
		}
		if _, err := a.repo.Plan(ctx); err != nil {
			return validate.Finding{Status: validate.Failed, Detail: err.Error(), Next: "fix the repository, or its place in cluster.yaml (onboard.git)"}, nil
		}
		return validate.Finding{Status: validate.Passed, Detail: fmt.Sprintf("%s in %s", c.Git.Entry, c.Git.File)}, nil
	}}
}
