package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/memory"
)

// Kind is the kind of an activation in an onboarding's journal.
const Kind = "git-entry"

// Change is the activation for the journal: its data, without credentials, and its text.
func (r *Repository) Change() (params map[string]string, what, undo string) {
	params = map[string]string{"url": r.URL, "branch": r.Branch, "file": r.File, "entry": r.Entry}
	return params, fmt.Sprintf("activate %s in %s", r.Entry, r.place()), fmt.Sprintf("comment %s in %s, and push that", r.Entry, r.place())
}

// Plan lists what Run would do, a line for each step. It fails where Run would, except for what only a push shows.
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

// Journal records that a change begins, makes it unless it is made, and records that it ended.
type Journal func(ctx context.Context, isMade func(context.Context) (bool, error), do func(context.Context) error) error

// Run activates the entry through a journal, and returns a revision of the branch in which it is active.
func (r *Repository) Run(ctx context.Context, journal Journal) (revision string, err error) {
	err = journal(ctx,
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

// asChanged is the repository with the parameters of the change. Credentials are only used for its configured URL.
func (r *Repository) asChanged(params map[string]string) (*Repository, error) {
	if params["url"] != r.URL {
		return nil, fmt.Errorf("the change was made in %s, and the configuration has %s: set it back for the rollback", params["url"], r.URL)
	}
	before := *r
	before.Branch, before.File, before.Entry = params["branch"], params["file"], params["entry"]
	if found := before.problems(); len(found) > 0 {
		return nil, fmt.Errorf("this version of labctl does not know the change: %s", strings.Join(found, "; "))
	}
	return &before, nil
}

// Undo comments the entry of a change with these parameters. Its errors leave to the caller what the change's texts say.
func (r *Repository) Undo(ctx context.Context, params map[string]string) error {
	before, err := r.asChanged(params)
	if err == nil {
		_, err = before.turn(ctx, false)
	}
	return advised(ctx, err)
}

// Undone fails where the entry of a change with these parameters is active.
func (r *Repository) Undone(ctx context.Context, params map[string]string) error {
	before, err := r.asChanged(params)
	if err != nil {
		return err
	}
	s, err := before.look(ctx)
	if err == nil && s.Active {
		err = fmt.Errorf("%s is active at %s", before.Entry, s.Revision)
	}
	return advised(ctx, err)
}

// Complete commits and pushes what the branch lacks, and begins the branch if it is not there. missing is asked, after every push of others
// anew, which files to write whole, by their path; read gives it a file of the newest commit, and nil if that is not there. With no files
// the branch is complete, and nothing is pushed. The error is as Activate's.
func (r *Repository) Complete(
	ctx context.Context, message string, missing func(read func(path string) ([]byte, error)) (map[string][]byte, error),
) (revision string, err error) {
	revision, err = r.settle(ctx, r.fetchOrBegin, func(h *head) (*change, error) {
		files, err := missing(h.readOrNil)
		if err != nil || len(files) == 0 {
			return nil, err
		}
		return &change{files: files, message: message}, nil
	})
	if err != nil {
		return "", fmt.Errorf("complete branch %s of %s: %w", r.Branch, r.URL, advised(ctx, err))
	}
	return revision, nil
}

// fetchOrBegin is fetch, with a head without a commit for a branch that is not there.
func (r *Repository) fetchOrBegin(ctx context.Context) (*head, error) {
	h, err := r.fetch(ctx)
	if errors.Is(err, ErrNoBranch) {
		return &head{store: memory.NewStorage(), branch: plumbing.NewBranchReferenceName(r.Branch)}, nil
	}
	return h, err
}

func (h *head) readOrNil(path string) ([]byte, error) {
	if h.commit == nil {
		return nil, nil
	}
	content, err := h.read(path)
	if errors.Is(err, ErrNoFile) {
		return nil, nil
	}
	return content, err
}
