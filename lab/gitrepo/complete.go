package gitrepo

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/memory"
)

// Complete commits and pushes what the branch lacks, and begins the branch if it is not there. missing is asked, after every push of others
// anew, which files to write whole, by their path; read gives it a file of the newest commit, and nil if that is not there. With no files the
// branch is complete, and nothing is pushed. The error is as Activate's.
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
