package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/sumdb/dirhash"

	"k8slab/lab/command"
)

// worktree is what a directory with source code has now.
type worktree struct {
	content string // identifies all files but those that git ignores
	commit  string // "" if it is no git repository
	dirty   bool   // it differs from the commit
	tag     string // the last one v* before the commit, "" for none
	version string // made of the tag as Kubernetes' build makes it, "" without a tag
	repo    string // the directory of the repository, which is another one if this is a worktree of git's
}

// unbuilt are directories of a checkout that have no source code.
var unbuilt = regexp.MustCompile(`^(_output|\.git)/`)

// readWorktree reads the directory and writes nothing there.
func readWorktree(ctx context.Context, dir string) (worktree, error) {
	if !exists(filepath.Join(dir, ".git")) {
		content, err := dirhash.HashDir(dir, "", func(files []string, open func(string) (io.ReadCloser, error)) (string, error) {
			kept := files[:0]
			for _, f := range files {
				if f = strings.TrimPrefix(f, "/"); !unbuilt.MatchString(f) {
					kept = append(kept, f)
				}
			}
			return dirhash.Hash1(kept, open)
		})
		return worktree{content: content, repo: dir}, err
	}
	commit, err := git(ctx, dir, nil, "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return worktree{}, err
	}
	common, err := git(ctx, dir, nil, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return worktree{}, err
	}
	w := worktree{commit: commit, repo: strings.TrimSuffix(common, "/.git")}
	if w.content, err = contentOf(ctx, dir); err != nil {
		return w, err
	}
	committed, err := git(ctx, dir, nil, "rev-parse", "HEAD^{tree}")
	if err != nil {
		return w, err
	}
	w.dirty = w.content != committed
	described, err := git(ctx, dir, nil, "describe", "--tags", "--match=v*", "--abbrev=14", "HEAD")
	if err == nil { // else there is no tag
		w.tag, w.version = describedVersion(described)
		if w.dirty {
			w.version += "-dirty"
		}
	}
	return w, nil
}

// contentOf is the ID that git gives the directory's files, committed or not. Its objects and index go elsewhere.
func contentOf(ctx context.Context, dir string) (string, error) {
	scratch, err := os.MkdirTemp("", "k8slab-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	paths, err := git(ctx, dir, nil, "rev-parse", "--path-format=absolute", "--git-path", "index", "--git-path", "objects")
	if err != nil {
		return "", err
	}
	index, objects, _ := strings.Cut(paths, "\n")
	own := filepath.Join(scratch, "index")
	if _, err := copyFile(index, own, 0o600); err != nil && !errors.Is(err, os.ErrNotExist) { // it knows which files did not change
		return "", err
	}
	aside := []string{"GIT_INDEX_FILE=" + own, "GIT_OBJECT_DIRECTORY=" + scratch, "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + objects}
	if _, err := git(ctx, dir, aside, "add", "--all"); err != nil {
		return "", err
	}
	return git(ctx, dir, aside, "write-tree")
}

var (
	afterTag   = regexp.MustCompile(`^(v.*)-([0-9]+)-g([0-9a-f]{14,})$`)
	prerelease = regexp.MustCompile(`^v[^-]*-`)
)

// describedVersion makes a version of what git describe says, as hack/lib/version.sh of Kubernetes does: v1.38.0-alpha.2-411-gHASH is
// v1.38.0-alpha.2.411+HASH, and v1.36.3-4-gHASH is v1.36.3-4+HASH.
func describedVersion(described string) (tag, version string) {
	m := afterTag.FindStringSubmatch(described)
	if m == nil {
		return described, described
	}
	between := "-"
	if prerelease.MatchString(m[1]) {
		between = "."
	}
	return m[1], m[1] + between + m[2] + "+" + m[3]
}

// git runs git in the directory and returns what it says.
func git(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	out, err := command.Command{Argv: append([]string{"git", "-C", dir}, args...), Env: append([]string{"GIT_OPTIONAL_LOCKS=0", "LC_ALL=C"}, env...)}.Run(ctx)
	return strings.TrimSpace(out), err
}

// state is in git's words, as Kubernetes' programs say it.
func (w worktree) state() string {
	switch {
	case w.commit == "":
		return ""
	case w.dirty:
		return "dirty"
	}
	return "clean"
}

// String says what the directory has, in a few words.
func (w worktree) String() string {
	if w.commit == "" {
		return "no git repository"
	}
	return fmt.Sprintf("%s, %s", cmp.Or(w.version, "no tag v*"), w.commit[:min(14, len(w.commit))])
}
