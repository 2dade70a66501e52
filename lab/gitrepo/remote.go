package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/storage/memory"
)

// maxFile is the size in bytes above which a file is none that people write.
const maxFile = 1 << 20

// head is the newest commit of the branch, with its files and without its history, in memory.
type head struct {
	store  *memory.Storage
	branch plumbing.ReferenceName
	commit *object.Commit // nil for a branch that is not there
}

// hash is zero for a branch that is not there.
func (h *head) hash() plumbing.Hash {
	if h.commit == nil {
		return plumbing.ZeroHash
	}
	return h.commit.Hash
}

// revision is the commit as Flux names it.
func (h *head) revision() string { return fmt.Sprintf("%s@sha1:%s", h.branch.Short(), h.hash()) }

// auth is nil for a server that asks nobody who he is.
func (r *Repository) auth() transport.AuthMethod {
	if r.password == "" {
		return nil
	}
	return &http.BasicAuth{Username: r.Username, Password: r.password}
}

// fetch gets the newest commit of the branch, with its files and without its history.
//
// The library's own fetch takes its HTTP client, and with that the way to the server, from a global variable.
func (r *Repository) fetch(ctx context.Context) (*head, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h := &head{store: memory.NewStorage(), branch: plumbing.NewBranchReferenceName(r.Branch)}
	endpoint, err := transport.NewEndpoint(r.URL)
	if err != nil {
		return nil, err
	}
	session, err := r.client.NewUploadPackSession(endpoint, r.auth())
	if err != nil {
		return nil, err
	}
	defer session.Close()
	refs, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return nil, translated(err)
	}
	hash, ok := refs.References[h.branch.String()]
	if !ok {
		return nil, because(ErrNoBranch, r.Branch)
	}
	req := packp.NewUploadPackRequestFromCapabilities(refs.Capabilities)
	req.Capabilities.Delete(capability.Sideband64k) // what comes is the pack alone
	req.Capabilities.Delete(capability.Sideband)
	req.Wants = []plumbing.Hash{hash}
	for _, wanted := range []capability.Capability{capability.Shallow, capability.NoProgress} {
		if !refs.Capabilities.Supports(wanted) {
			continue
		}
		if err := req.Capabilities.Set(wanted); err != nil {
			return nil, err
		}
	}
	if req.Capabilities.Supports(capability.Shallow) {
		req.Depth = packp.DepthCommits(1)
	}
	if refs.Capabilities.Supports(capability.Filter) {
		if err := req.Capabilities.Set(capability.Filter); err != nil {
			return nil, err
		}
		req.Filter = packp.FilterBlobLimit(maxFile+1, packp.BlobLimitPrefixNone) // it leaves out what has as much
	}
	answer, err := session.UploadPack(ctx, req)
	if err != nil {
		return nil, translated(err)
	}
	pack, err := readPack(answer)
	if err == nil {
		err = packfile.UpdateObjectStorage(h.store, pack)
	}
	switch err := errors.Join(err, answer.Close()); {
	case errors.Is(err, ErrTooLarge):
		return nil, err
	case err != nil:
		return nil, translated(err)
	}
	h.commit, err = object.GetCommit(h.store, hash)
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
	if errors.Is(err, plumbing.ErrObjectNotFound) || err == nil && blob.Size > maxFile { // the server may have left it out
		return nil, because(ErrBadFile, fmt.Sprintf("%s has more than %d MiB", path, maxFile>>20))
	}
	if err != nil {
		return nil, err
	}
	reader, err := blob.Reader()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	return io.ReadAll(reader)
}
