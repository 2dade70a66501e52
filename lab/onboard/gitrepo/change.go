package gitrepo

import (
	"context"
	"fmt"
	"strings"

	"k8slab/lab/onboard"
)

// Kind is that of the change which an activation is in an onboarding's journal.
const Kind = "git-entry"

// Change is the activation as data. It has no credentials.
func (r *Repository) Change() onboard.Change {
	return onboard.Change{
		Kind:   Kind,
		Params: map[string]string{"url": r.URL, "branch": r.Branch, "file": r.File, "entry": r.Entry},
		What:   fmt.Sprintf("activate %s in %s", r.Entry, r.place()),
		Undo:   fmt.Sprintf("comment %s in %s, and push that", r.Entry, r.place()),
	}
}

// Plan tells what Run would do, a line for each step, and fails where Run would, but for what only a push shows. It changes nothing.
func (r *Repository) Plan(ctx context.Context) ([]string, error) {
	s, err := r.Look(ctx)
	if err != nil {
		return nil, err
	}
	if s.Active {
		return []string{fmt.Sprintf("nothing in Git: %s is active in %s at %s", r.Entry, r.place(), s.Revision)}, nil
	}
	e, err := uncomment(s.content, r.Entry)
	if err != nil {
		return nil, fmt.Errorf("activate %s in %s: %s: %w", r.Entry, r.place(), s.Revision, advised(ctx, err))
	}
	commit := "commit that"
	if r.signer != nil {
		commit += ", signed"
	}
	return []string{
		fmt.Sprintf("in line %d of %s, make %q of %q", e.line.number, r.File, e.text, e.line.text),
		commit,
		fmt.Sprintf("push the commit to branch %s of %s, which is at %s", r.Branch, r.URL, s.Revision),
	}, nil
}

// Run activates the entry through a phase's journal, and returns a revision of the branch in which it is active.
func (r *Repository) Run(ctx context.Context, j *onboard.Journal) (revision string, err error) {
	err = j.Do(ctx, r.Change(),
		func(ctx context.Context) (bool, error) {
			s, err := r.look(ctx)
			revision = s.Revision
			return s.Active, advised(ctx, err)
		},
		func(ctx context.Context) error {
			pushed, err := r.turn(ctx, true)
			revision = pushed
			return advised(ctx, err)
		})
	if err != nil {
		return "", err
	}
	return revision, nil
}

// Verify returns the branch's newest revision if the entry is active in it. It looks once, and changes nothing.
func (r *Repository) Verify(ctx context.Context) (revision string, err error) {
	s, err := r.Look(ctx)
	if err == nil && !s.Active {
		err = fmt.Errorf("%s is not active in %s at %s", r.Entry, r.place(), s.Revision)
	}
	return s.Revision, err
}

// Undoer undoes changes of the Kind, with the credentials of r. Its errors leave to the engine what the change's texts say.
func (r *Repository) Undoer() onboard.Undoer { return undoer{r} }

type undoer struct{ r *Repository }

// of is the repository as the change had it. The credentials are for its configured URL and no other.
func (u undoer) of(c onboard.Change) (*Repository, error) {
	r := *u.r
	if c.Params["url"] != r.URL {
		return nil, fmt.Errorf("the change was made in %s, and the configuration has %s: set it back for the rollback", c.Params["url"], r.URL)
	}
	r.Branch, r.File, r.Entry = c.Params["branch"], c.Params["file"], c.Params["entry"]
	if found := r.problems(); len(found) > 0 {
		return nil, fmt.Errorf("this version of labctl does not know the change: %s", strings.Join(found, "; "))
	}
	return &r, nil
}

func (u undoer) Undo(ctx context.Context, c onboard.Change) error {
	r, err := u.of(c)
	if err == nil {
		_, err = r.turn(ctx, false)
	}
	return advised(ctx, err)
}

func (u undoer) Verify(ctx context.Context, c onboard.Change) error {
	r, err := u.of(c)
	if err != nil {
		return err
	}
	s, err := r.look(ctx)
	if err == nil && s.Active {
		err = fmt.Errorf("%s is active at %s", r.Entry, s.Revision)
	}
	return advised(ctx, err)
}
