package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/memory"
)

// objects are the Git objects that a commit adds to a repository, the commit last.
type objects struct {
	store *memory.Storage
	added []plumbing.Hash
}

func (o *objects) add(e plumbing.EncodedObject) (plumbing.Hash, error) {
	hash, err := o.store.SetEncodedObject(e)
	o.added = append(o.added, hash)
	return hash, err
}

// encoder is a tree or a commit.
type encoder interface {
	Encode(plumbing.EncodedObject) error
}

func (o *objects) encode(what encoder) (plumbing.Hash, error) {
	e := o.store.NewEncodedObject()
	if err := what.Encode(e); err != nil {
		return plumbing.ZeroHash, err
	}
	return o.add(e)
}

// blob adds a file's content.
func (o *objects) blob(content []byte) (plumbing.Hash, error) {
	e := o.store.NewEncodedObject()
	e.SetType(plumbing.BlobObject)
	w, err := e.Writer()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	_, err = w.Write(content)
	if err := errors.Join(err, w.Close()); err != nil {
		return plumbing.ZeroHash, err
	}
	return o.add(e)
}

// tree adds a tree that is the given one with another blob at the path, and the trees between. Zero is the empty tree.
func (o *objects) tree(tree plumbing.Hash, path []string, blob plumbing.Hash) (plumbing.Hash, error) {
	t := &object.Tree{}
	if !tree.IsZero() {
		var err error
		if t, err = object.GetTree(o.store, tree); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	i := slices.IndexFunc(t.Entries, func(e object.TreeEntry) bool { return e.Name == path[0] })
	if i < 0 {
		i = len(t.Entries)
		t.Entries = append(t.Entries, object.TreeEntry{Name: path[0], Mode: filemode.Regular})
		if len(path) > 1 {
			t.Entries[i].Mode = filemode.Dir
		}
	}
	if isDir := t.Entries[i].Mode == filemode.Dir; isDir != (len(path) > 1) {
		return plumbing.ZeroHash, because(ErrNoFile, fmt.Sprintf("a file has the place of a directory, or the other way round: %s", path[0]))
	}
	if len(path) > 1 {
		var err error
		if blob, err = o.tree(t.Entries[i].Hash, path[1:], blob); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	t.Entries[i].Hash = blob
	sort.Sort(object.TreeEntrySorter(t.Entries))
	return o.encode(t)
}

// commit makes a commit on the head in which files have another content, or are there, and everything else is as it was.
func (r *Repository) commit(ctx context.Context, h *head, c *change) (*objects, error) {
	o := &objects{store: h.store}
	by := object.Signature{Name: r.AuthorName, Email: r.AuthorEmail, When: time.Now()}
	made := &object.Commit{Author: by, Committer: by, Message: c.message}
	if h.commit != nil {
		made.TreeHash, made.ParentHashes = h.commit.TreeHash, []plumbing.Hash{h.commit.Hash}
	}
	for path, content := range c.files {
		blob, err := o.blob(content)
		if err != nil {
			return nil, err
		}
		if made.TreeHash, err = o.tree(made.TreeHash, strings.Split(path, "/"), blob); err != nil {
			return nil, err
		}
	}
	if r.signer != nil {
		var err error
		if made.PGPSignature, err = signature(ctx, r.signer, made); err != nil {
			return nil, err
		}
	}
	_, err := o.encode(made)
	return o, err
}

// rejection says that the server refused a push.
type rejection struct {
	reason string // in Git's words
	said   string // the server's words to people
}

func (e *rejection) Error() string {
	if e.said == "" {
		return e.reason
	}
	return e.reason + "; it says: " + e.said
}

// contended reports whether the push was refused only because another push held the branch's lock.
func (e *rejection) contended() bool { return strings.HasPrefix(e.reason, "failed to") }

// push makes the commit the branch's newest one, if that is still the head; otherwise it changes nothing. Without an answer, which is an
// error too, the server may have taken it.
//
// The library's own push takes an empty answer for success, and tells a refusal only in prose.
func (r *Repository) push(ctx context.Context, h *head, o *objects) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // closes the connection, which the library does not
	endpoint, err := transport.NewEndpoint(r.URL)
	if err != nil {
		return err
	}
	session, err := r.client.NewReceivePackSession(endpoint, r.auth())
	if err != nil {
		return err
	}
	defer session.Close()
	refs, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return translated(err)
	}
	if now := refs.References[h.branch.String()]; now != h.hash() {
		return fmt.Errorf("the branch moved from %s to %s meanwhile", h.hash(), now)
	}
	var said, pack bytes.Buffer
	if _, err := packfile.NewEncoder(&pack, h.store, false).Encode(o.added, 0); err != nil {
		return err
	}
	req := packp.NewReferenceUpdateRequestFromCapabilities(refs.Capabilities)
	if refs.Capabilities.Supports(capability.Sideband64k) {
		if err := req.Capabilities.Set(capability.Sideband64k); err != nil {
			return err
		}
		req.Progress = &said
	}
	req.Commands = []*packp.Command{{Name: h.branch, Old: h.hash(), New: o.added[len(o.added)-1]}}
	req.Packfile = io.NopCloser(&pack)
	report, err := session.ReceivePack(ctx, req)
	switch {
	case report != nil && err != nil:
		return &rejection{reason: reason(report), said: strings.TrimSpace(said.String())}
	case err != nil:
		return translated(err)
	case report == nil:
		return because(ErrUnreachable, "the server ended without an answer")
	}
	return nil
}

// reason is why a report is a bad one, without what Git adds for machines.
func reason(report *packp.ReportStatus) string {
	if report.UnpackStatus != "ok" {
		return "unpack: " + report.UnpackStatus
	}
	for _, s := range report.CommandStatuses {
		if s.Error() != nil {
			return s.Status
		}
	}
	return "no reason is given"
}
