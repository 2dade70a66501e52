package image

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	login "github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"golang.org/x/sync/errgroup"

	"k8slab/lab/event"
)

// ask gets an image's manifest and configuration.
func ask(ctx context.Context, ref name.Reference) (v1.Image, error) {
	const idle = 30 * time.Second // as a download has it, for each of the two
	budget, cancel := context.WithTimeoutCause(ctx, 2*idle, fmt.Errorf("no answer within %s", 2*idle))
	defer cancel()
	img, err := remote.Image(ref, remote.WithContext(budget), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err == nil {
		_, err = img.RawConfigFile() // the image keeps it
	}
	if err != nil && budget.Err() != nil {
		err = context.Cause(budget)
	}
	if err != nil {
		return nil, fmt.Errorf("ask for the image %s: %w", ref, err)
	}
	return img, nil
}

// fetchLayers fetches the layers at the same time. What arrived before an interruption is in dir.
func fetchLayers(ctx context.Context, from name.Repository, dir string, layers []v1.Layer, step *event.Step) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	auth, err := authn.Resolve(ctx, authn.DefaultKeychain, from)
	if err != nil {
		return nil, err
	}
	f := newFetcher()
	f.addressed = true
	if f.client.Transport, err = login.NewWithContext(ctx, from.Registry, auth, f.client.Transport, []string{from.Scope(login.PullScope)}); err != nil {
		return nil, err
	}
	files := make([]string, len(layers))
	var g errgroup.Group
	for i, l := range layers {
		digest, err := l.Digest()
		if err != nil {
			return nil, err
		}
		files[i] = filepath.Join(dir, digest.Hex)
		g.Go(func() error {
			return f.file(ctx, fmt.Sprintf("%s://%s/v2/%s/blobs/%s", from.Scheme(), from.RegistryStr(), from.RepositoryStr(), digest), digest.Hex, files[i], step)
		})
	}
	return files, g.Wait()
}
