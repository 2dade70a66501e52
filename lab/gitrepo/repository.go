// Package gitrepo activates an entry of a kustomization in a Git repository, and takes that back: it uncomments or comments one line, and
// commits and pushes that, whatever others push meanwhile. It speaks HTTP and HTTPS only, for the library's SSH does not end with its
// context; it holds the newest commit's files in memory, and knows no Flux.
package gitrepo

import (
	"context"
	"errors"
	"fmt"
)

// attempts bounds how often others may push first. Of those who push at the same time one succeeds, so as many may push.
const attempts = 10

// Seen is the entry as the newest commit of the branch has it.
type Seen struct {
	Active   bool
	Revision string // of that commit, as Flux names it: BRANCH@sha1:HEX

	content []byte // of the kustomization
}

// Look fetches the branch and looks. It changes nothing.
func (r *Repository) Look(ctx context.Context) (Seen, error) {
	s, err := r.look(ctx)
	if err != nil {
		return Seen{}, fmt.Errorf("read %s: %w", r.place(), advised(ctx, err))
	}
	return s, nil
}

func (r *Repository) look(ctx context.Context) (Seen, error) {
	h, err := r.fetch(ctx)
	if err != nil {
		return Seen{}, err
	}
	return r.see(h)
}

// see looks at the entry in a commit.
func (r *Repository) see(h *head) (Seen, error) {
	content, err := h.read(r.File)
	if err != nil {
		return Seen{}, err
	}
	m, err := parse(content, r.Entry)
	if err != nil {
		return Seen{}, fmt.Errorf("%s: %w", h.revision(), err)
	}
	return Seen{Active: m.count > 0, Revision: h.revision(), content: content}, nil
}

// Activate uncomments the entry, commits that and pushes it, unless it is active already. It returns a revision that the branch has, in
// which the entry is active. After an error the branch is as it was, or has the commit if the server's answer was lost; repeated, it finds
// that.
func (r *Repository) Activate(ctx context.Context) (revision string, err error) {
	revision, err = r.turn(ctx, true)
	if err != nil {
		return "", fmt.Errorf("activate %s in %s: %w", r.Entry, r.place(), advised(ctx, err))
	}
	return revision, nil
}

// Deactivate comments the entry, as it was commented before if the backup tells, unless it is not active. See Activate.
func (r *Repository) Deactivate(ctx context.Context) (revision string, err error) {
	revision, err = r.turn(ctx, false)
	if err != nil {
		return "", fmt.Errorf("deactivate %s in %s: %w", r.Entry, r.place(), advised(ctx, err))
	}
	return revision, nil
}

// turn pushes until the branch's newest commit has the entry as it should be.
func (r *Repository) turn(ctx context.Context, active bool) (string, error) {
	return r.settle(ctx, r.fetch, func(h *head) (*change, error) {
		s, err := r.see(h)
		if err != nil || s.Active == active {
			return nil, err
		}
		e, message := (*edit)(nil), ""
		if active {
			message = r.message("Activate", "uncomment")
			e, err = uncomment(s.content, r.Entry)
		} else {
			message = r.message("Deactivate", "comment")
			e, err = comment(s.content, r.before(), r.Entry)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.revision(), err)
		}
		if active {
			err = r.keep(s.content)
		}
		return &change{files: map[string][]byte{r.File: e.data}, message: message}, err
	})
}

// change is what a commit says and does.
type change struct {
	files   map[string][]byte // path → whole content
	message string
}

// settle pushes what next makes of the branch's newest commit until that is nothing. It believes no answer but that: an answer can be lost,
// and a commit that somebody else pushed meanwhile is changed anew and never overwritten.
func (r *Repository) settle(
	ctx context.Context, fetch func(context.Context) (*head, error), next func(*head) (*change, error),
) (revision string, err error) {
	var pushed *head // what the last push was based on
	var last error
	for n := 0; ; n++ {
		var c *change
		h, err := fetch(ctx)
		if err == nil {
			c, err = next(h)
		}
		switch {
		case err != nil && last != nil:
			return "", fmt.Errorf("%w; before that: %s", err, last.Error())
		case err != nil:
			return "", err
		case c == nil:
			return h.revision(), nil
		case pushed != nil && h.hash() == pushed.hash() && final(last):
			return "", fatal(last)
		case n == attempts:
			return "", because(ErrOvertaken, fmt.Sprintf("%d times; the last time: %v", n, last))
		}
		o, err := r.commit(ctx, h, c)
		if err != nil {
			return "", err
		}
		pushed, last = h, r.push(ctx, h, o)
	}
}

// final reports whether a push that failed on an unmoved branch would fail again.
func final(err error) bool {
	refused, ok := errors.AsType[*rejection](err)
	return !ok || !refused.contended()
}

// fatal is the error of a push that was the last.
func fatal(err error) error {
	if refused, ok := errors.AsType[*rejection](err); ok {
		return because(ErrRefused, refused.Error())
	}
	if err == nil {
		return because(ErrRefused, "it said that it took it, and the branch is as before")
	}
	return err
}
