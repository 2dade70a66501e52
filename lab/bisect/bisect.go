// Package bisect finds the commit of a git repository that broke something. git bisect decides which commits are tried, in a worktree of its
// own; what tries them is the caller's. The repository's own files, index and branches stay as they are.
package bisect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8slab/lab/atomicfile"
	"k8slab/lab/command"
)

// Range is what is searched. Two that are equal are the same bisection.
type Range struct {
	Checkout string   `json:"checkout"` // a directory of the repository
	Good     string   `json:"good"`     // commits, by any name until Open
	Bad      string   `json:"bad"`
	Tested   []string `json:"tested"` // what else decides the verdicts
}

// Verdict is what a try says of a commit, in git's words.
type Verdict string

// The verdicts.
const (
	Good Verdict = "good"
	Bad  Verdict = "bad"
	Skip Verdict = "skip" // it cannot be tried
)

// Commit is one of the repository.
type Commit struct {
	ID      string `json:"commit"`
	Subject string `json:"subject"`
}

// Judged is a commit with its verdict.
type Judged struct {
	Commit
	Verdict Verdict `json:"verdict"`
}

// Bisection is a search in a directory that outlives an interruption.
type Bisection struct {
	dir string
	Range
	Resumed bool // an earlier run began it
}

const (
	recordFile = "bisection.json"
	treeDir    = "tree"
)

// Open goes on with the bisection in the directory if it is of the same range, else it starts one. Another one that was interrupted ends.
func Open(ctx context.Context, dir string, r Range) (*Bisection, error) {
	for _, end := range []*string{&r.Good, &r.Bad} {
		id, err := git(ctx, r.Checkout, "rev-parse", "--verify", "--quiet", "--end-of-options", *end+"^{commit}")
		if err != nil {
			return nil, fmt.Errorf("%s has no commit %q; use a commit, a tag or a branch of it", r.Checkout, *end)
		}
		*end = id
	}
	b := &Bisection{dir: dir, Range: r}
	was, err := read(dir)
	switch {
	case err == nil && was.is(r) && b.runs(ctx):
		b.Resumed = true
		return b, nil
	case err == nil:
		if err := was.Remove(ctx); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return b, b.start(ctx)
}

// Interrupted is the bisection that the directory has. The error wraps fs.ErrNotExist if there is none.
func Interrupted(dir string) (*Bisection, error) { return read(dir) }

func read(dir string) (*Bisection, error) {
	data, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil {
		return nil, err
	}
	b := &Bisection{dir: dir}
	if err := json.Unmarshal(data, &b.Range); err != nil {
		return nil, fmt.Errorf("%s: %w; next: remove that directory", dir, err)
	}
	return b, atomicfile.CheckDir(dir)
}

func (b *Bisection) is(r Range) bool {
	return b.Checkout == r.Checkout && b.Good == r.Good && b.Bad == r.Bad && slices.Equal(b.Tested, r.Tested)
}

// runs tells whether git knows of the bisection.
func (b *Bisection) runs(ctx context.Context) bool {
	_, err := git(ctx, b.Tree(), "bisect", "log")
	return err == nil
}

func (b *Bisection) start(ctx context.Context) error {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	if err := atomicfile.CheckDir(b.dir); err != nil {
		return err
	}
	record, err := json.Marshal(b.Range)
	if err == nil {
		err = atomicfile.Write(filepath.Join(b.dir, recordFile), 0o600, record)
	}
	if err == nil {
		_, err = git(ctx, b.Checkout, "worktree", "add", "--detach", "--quiet", b.Tree(), b.Bad)
	}
	if err == nil {
		_, err = git(ctx, b.Tree(), "bisect", "start", b.Bad, b.Good)
	}
	if err != nil {
		return errors.Join(err, b.Remove(context.WithoutCancel(ctx)))
	}
	return nil
}

// Tree is the worktree, which has the commit that is tried.
func (b *Bisection) Tree() string { return filepath.Join(b.dir, treeDir) }

// File is the path of a file beside the worktree, which ends with the bisection.
func (b *Bisection) File(name string) string { return filepath.Join(b.dir, name) }

// Remove ends the bisection.
func (b *Bisection) Remove(ctx context.Context) error {
	err := os.RemoveAll(b.Tree())
	if _, pruned := git(ctx, b.Checkout, "worktree", "prune"); err == nil && !errors.Is(pruned, fs.ErrNotExist) {
		err = pruned
	}
	return errors.Join(err, os.RemoveAll(b.dir))
}

// Run tries commits until the first bad one is found. told gets what git says of each step. After an error Open goes on.
func (b *Bisection) Run(ctx context.Context, try func(context.Context, Commit) (Verdict, error), told func(string)) (Log, error) {
	for {
		log, err := b.Log(ctx)
		if err != nil || log.First != nil || log.Possible != nil {
			return log, err
		}
		line, err := git(ctx, b.Tree(), "log", "-1", "--format=%H %s")
		if err != nil {
			return log, err
		}
		id, subject, _ := strings.Cut(line, " ")
		verdict, err := try(ctx, Commit{id, subject})
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return log, err
		}
		said, err := b.judge(ctx, verdict)
		if err != nil {
			return log, err
		}
		told(said)
	}
}

// judge tells git the verdict. git leaves with a status of its own when only commits are left that cannot be tried.
func (b *Bisection) judge(ctx context.Context, v Verdict) (said string, err error) {
	if _, err := git(ctx, b.Tree(), "checkout", "--quiet", "--force", "HEAD"); err != nil { // what a try may have left would stop git
		return "", err
	}
	said, err = git(ctx, b.Tree(), "bisect", string(v))
	if err != nil {
		if log, of := b.Log(ctx); of == nil && log.Possible != nil {
			return "", nil
		}
	}
	first, _, _ := strings.Cut(said, "\n")
	return first, err
}

// Log is what is known so far.
type Log struct {
	First    *Commit  `json:"first_bad,omitempty"`
	Possible []Commit `json:"possible,omitempty"` // any of them may be the first bad one: the others could not be tried
	Judged   []Judged `json:"judged"`
}

var logLine = regexp.MustCompile(`^# (good|bad|skip|first bad commit|possible first bad commit): \[([0-9a-f]+)\] (.*)$`)

// Log reads git's log of the bisection, which has the ends of the range too.
func (b *Bisection) Log(ctx context.Context) (l Log, err error) {
	text, err := git(ctx, b.Tree(), "bisect", "log")
	if err != nil {
		return l, err
	}
	l.Judged = []Judged{}
	for line := range strings.Lines(text) {
		m := logLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		switch c := (Commit{m[2], m[3]}); m[1] {
		case "first bad commit":
			l.First = &c
		case "possible first bad commit":
			l.Possible = append(l.Possible, c)
		default:
			l.Judged = append(l.Judged, Judged{c, Verdict(m[1])})
		}
	}
	return l, nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := command.Command{Argv: append([]string{"git", "-C", dir}, args...), Env: []string{"LC_ALL=C"}}.Run(ctx)
	return strings.TrimSpace(out), err
}
