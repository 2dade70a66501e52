package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"k8slab/lab/event"
)

// Kinds of obstacles. Every error that is caused by the server or by the repository's content is one of them.
var (
	ErrUnreachable  = errors.New("no Git server answers")
	ErrUnauthorized = errors.New("the server refuses the credentials")
	ErrNoRepository = errors.New("there is no such repository, or not for these credentials")
	ErrNoBranch     = errors.New("there is no such branch")
	ErrNoFile       = errors.New("there is no such file")
	ErrBadFile      = errors.New("the file is not a kustomization")
	ErrTooLarge     = errors.New("the newest commit is too large")
	ErrNoEntry      = errors.New("the entry cannot be found")
	ErrRefused      = errors.New("the server refuses the commit")
	ErrOvertaken    = errors.New("other pushes came first")
)

// steps are the next steps for each kind.
var steps = map[error]string{
	ErrUnreachable:  "check the URL and the network: git ls-remote URL",
	ErrUnauthorized: "give a user, and a file with a password or token that may read and write the repository",
	ErrNoRepository: "correct the URL, or give credentials that may read and write the repository",
	ErrNoBranch:     "correct the branch, or push one first",
	ErrNoFile:       "correct the path, which starts at the top of the repository, or push the file first",
	ErrBadFile:      "fix the file and push it",
	ErrTooLarge:     "have the server leave large files out: git config uploadpack.allowFilter true",
	ErrNoEntry:      "push a file in which one list has it in one line, such as \"# - ENTRY\"",
	ErrRefused:      "do what it says; if the branch is protected, let this user push to it, or have Flux follow another",
	ErrOvertaken:    "try again when the branch is quieter",
}

// kinds translates the library's errors.
var kinds = map[error]error{
	transport.ErrAuthenticationRequired: ErrUnauthorized,
	transport.ErrAuthorizationFailed:    ErrUnauthorized,
	transport.ErrRepositoryNotFound:     ErrNoRepository,
	transport.ErrEmptyRemoteRepository:  ErrNoBranch,
}

// translated turns an error of the library into one of these kinds; an unknown one means that no Git server answers.
func translated(err error) error {
	for foreign, kind := range kinds {
		if errors.Is(err, foreign) {
			return because(kind, err.Error())
		}
	}
	return because(ErrUnreachable, err.Error())
}

// because is a kind with its evidence, which may be a server's text.
func because(kind error, evidence string) error {
	return fmt.Errorf("%w: %s", kind, cut(strings.TrimSpace(event.OneLine(evidence)), 1000))
}

// advised adds the next step to an error of a known kind. One that an ended context brought about needs no advice.
func advised(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w; last seen: %w", context.Cause(ctx), err)
	}
	for kind, step := range steps {
		if errors.Is(err, kind) {
			return fmt.Errorf("%w; %s", err, step)
		}
	}
	return err
}

func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}
