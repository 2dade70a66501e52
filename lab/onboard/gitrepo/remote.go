package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"

	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/storage/memory"
)

// maxFile is the size in bytes above which a file is none that people write.
const maxFile = 1 << 20

// head is the newest commit of the branch, with its files and without its history, in memory.
type head struct {
	store   *memory.Storage
	branch  plumbing.ReferenceName
	commit  *object.Commit
	content []byte // of the kustomization
}

// revision is the commit as Flux names it.
func (h *head) revision() string { return fmt.Sprintf("%s@sha1:%s", h.branch.Short(), h.commit.Hash) }

// auth is nil for a server that asks nobody who he is.
func (r *Repository) auth() transport.AuthMethod {
	if r.password == "" {
		return nil
	}
	return &http.BasicAuth{Username: r.Username, Password: r.password}
}

// fetch gets the newest commit of the branch.
func (r *Repository) fetch(ctx context.Context) (*head, error) {
	h := &head{store: memory.NewStorage(), branch: plumbing.NewBranchReferenceName(r.Branch)}
	remote := git.NewRemote(h.store, &config.RemoteConfig{Name: git.DefaultRemoteName, URLs: []string{r.URL}})
	err := remote.FetchContext(ctx, &git.FetchOptions{
		RefSpecs: []config.RefSpec{config.RefSpec(h.branch + ":" + h.branch)}, Depth: 1, Tags: git.NoTags, Auth: r.auth(),
	})
	switch {
	case errors.Is(err, git.NoMatchingRefSpecError{}):
		return nil, because(ErrNoBranch, r.Branch)
	case err != nil:
		return nil, translated(err)
	}
	ref, err := h.store.Reference(h.branch)
	if err != nil {
		return nil, err
	}
	if h.commit, err = object.GetCommit(h.store, ref.Hash()); err != nil {
		return nil, err
	}
	h.content, err = h.read(r.File)
	return h, err
}

// read returns the content of a file.
func (h *head) read(path string) ([]byte, error) {
	tree, err := h.commit.Tree()
	if err != nil {
		return nil, err
	}
	found, err := tree.FindEntry(path)
	switch {
	case errors.Is(err, object.ErrEntryNotFound) || errors.Is(err, object.ErrDirectoryNotFound) || errors.Is(err, plumbing.ErrObjectNotFound):
		return nil, because(ErrNoFile, fmt.Sprintf("%s in %s", path, h.revision()))
	case err != nil:
		return nil, err
	case found.Mode != filemode.Regular && found.Mode != filemode.Executable && found.Mode != filemode.Deprecated:
		return nil, because(ErrNoFile, fmt.Sprintf("%s is a directory, a symbolic link or a submodule", path))
	}
	blob, err := object.GetBlob(h.store, found.Hash)
	if err != nil {
		return nil, err
	}
	if blob.Size > maxFile {
		return nil, because(ErrBadFile, fmt.Sprintf("%s has %d bytes", path, blob.Size))
	}
	reader, err := blob.Reader()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	return io.ReadAll(reader)
}
