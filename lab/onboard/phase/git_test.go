package phase

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8slab/lab/gitrepo"
	"k8slab/lab/onboard"
	"k8slab/lab/validate"
)

// repo is a branch with one entry. Each change is a commit.
type repo struct {
	active  bool
	commits int
	err     error
}

func (r *repo) revision() string { return fmt.Sprintf("main@sha1:%d", r.commits) }

func (r *repo) Plan(context.Context) ([]string, error) { return []string{"uncomment w3.yaml"}, r.err }

func (r *repo) Run(ctx context.Context, j *onboard.Journal) (string, error) {
	c := onboard.Change{Kind: gitrepo.Kind, What: "activate", Undo: "comment"}
	err := j.Do(ctx, c, func(context.Context) (bool, error) { return r.active, r.err }, func(context.Context) error {
		r.active = true
		r.commits++
		return nil
	})
	return r.revision(), err
}

func (r *repo) Verify(context.Context) (string, error) {
	if !r.active {
		return r.revision(), errors.New("w3.yaml is not active")
	}
	return r.revision(), r.err
}

func (r *repo) Look(context.Context) (gitrepo.Seen, error) {
	return gitrepo.Seen{Active: r.active, Revision: r.revision()}, r.err
}

func (r *repo) Undoer() onboard.Undoer { return undoRepo{r} }

type undoRepo struct{ *repo }

func (u undoRepo) Undo(context.Context, onboard.Change) error {
	u.active = false
	u.commits++
	return nil
}

func (u undoRepo) Verify(context.Context, onboard.Change) error {
	if u.active {
		return errors.New("w3.yaml is active")
	}
	return nil
}

// flux applies revisions. ahead are pushes of others that it meets.
type flux struct {
	repo    *repo
	applied string
	ahead   int
	err     error
}

func (f *flux) Reconcile(_ context.Context, _ validate.Ref, revision string, _ func(string)) error {
	if f.err != nil {
		return f.err
	}
	if f.ahead > 0 {
		f.ahead--
		f.repo.commits++
		return fmt.Errorf("reconcile: %w", validate.ErrOtherRevision)
	}
	f.applied = revision
	return nil
}

func (f *flux) Reconciled(_ context.Context, _ validate.Ref, revision string) error {
	if f.applied != revision {
		return fmt.Errorf("it is at %q and not at %q", f.applied, revision)
	}
	return nil
}

func (b *bench) activation(f *flux, hasFlux bool) *activation {
	status := validate.Passed
	if !hasFlux {
		status = validate.NotApplicable
	}
	a := &activation{flux: f, checks: func() []validate.Check { return []validate.Check{finding(validate.AreaGitOps, "Flux", status, "", "")} }}
	if f.repo != nil {
		a.repo = f.repo
	}
	b.Runners[onboard.GitOpsActivation] = a
	b.Undoers[gitrepo.Kind] = deactivated{a}
	return a
}

func TestActivation(t *testing.T) {
	b, f := newBench(t), &flux{repo: &repo{}}
	a := b.activation(f, true)
	must(t, b.Run(t.Context(), onboard.Options{}))
	if !f.repo.active || f.applied != "main@sha1:1" || b.changes(t) != "git-entry:made" {
		t.Errorf("active %v, applied %s, journal %s", f.repo.active, f.applied, b.changes(t))
	}
	must(t, a.Verify(t.Context()))
	must(t, b.Rollback(t.Context()))
	if f.repo.active || f.applied != "main@sha1:2" {
		t.Errorf("after the rollback: active %v, applied %s; want that Flux applied the deactivation", f.repo.active, f.applied)
	}
	contains(t, a.Verify(t.Context()), "not active")
}

// A rollback killed between its push and Flux goes on with Flux.
func TestDeactivationIsNotUndoneBeforeFluxKnows(t *testing.T) {
	b, f := newBench(t), &flux{repo: &repo{}}
	b.activation(f, true)
	must(t, b.Run(t.Context(), onboard.Options{}))
	f.err = errBroken
	contains(t, b.Rollback(t.Context()), errBroken.Error())
	f.err = nil
	must(t, b.Rollback(t.Context()))
	if f.applied != f.repo.revision() {
		t.Errorf("applied %s, want %s", f.applied, f.repo.revision())
	}
}

func TestActivationAmidOtherPushes(t *testing.T) {
	b, f := newBench(t), &flux{repo: &repo{}, ahead: 2}
	b.activation(f, true)
	must(t, b.Run(t.Context(), onboard.Options{}))
	if f.applied != "main@sha1:3" {
		t.Errorf("applied %s, want the newest revision", f.applied)
	}
}

// still is a Flux that follows another branch: it never has the revision.
type still struct{ *flux }

func (still) Reconcile(context.Context, validate.Ref, string, func(string)) error {
	return validate.ErrOtherRevision
}

func TestActivationOfAnotherBranch(t *testing.T) {
	b, f := newBench(t), &flux{repo: &repo{}}
	b.activation(f, true).flux = still{f}
	contains(t, b.Run(t.Context(), onboard.Options{}), "see that the GitRepository follows")
}

func TestActivationNotApplicable(t *testing.T) {
	for name, tt := range map[string]struct {
		repo     *repo
		flux     bool
		explicit bool
		said     string
		active   bool
	}{
		"nothing":                        {nil, false, false, "not applicable: the cluster has no Flux", false},
		"the lab's repository, no Flux":  {&repo{}, false, false, "not applicable: the cluster has no Flux", false},
		"a user's repository, no Flux":   {&repo{}, false, true, "WARN gitops_activation: warning: the cluster has no Flux", true},
		"Flux, no repository":            {nil, true, false, "not applicable: the cluster has Flux, and no repository", false},
		"Flux and the lab's repository":  {&repo{}, true, false, "active at", true},
		"Flux and a user's repository":   {&repo{}, true, true, "active at", true},
		"it was active before it all":    {&repo{active: true}, true, true, "it was so before", true},
		"it was active, without no Flux": {&repo{active: true}, false, true, "it was so before", true},
	} {
		t.Run(name, func(t *testing.T) {
			b, f := newBench(t), &flux{repo: tt.repo}
			a := b.activation(f, tt.flux)
			a.explicit = tt.explicit
			steps, err := a.Plan(t.Context())
			must(t, err)
			if planned := !strings.HasPrefix(steps[0], "not applicable: "); planned != tt.active {
				t.Errorf("the plan is %q", steps)
			}
			must(t, b.Run(t.Context(), onboard.Options{}))
			if tt.repo != nil && tt.repo.active != tt.active || !b.events.has(tt.said) {
				t.Errorf("active %v; said was\n%s", tt.repo, strings.Join(b.events.text, "\n"))
			}
			must(t, a.Verify(t.Context()))
		})
	}
}
