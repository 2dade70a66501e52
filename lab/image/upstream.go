package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sync/errgroup"

	"k8slab/lab/event"
)

// upstream is the source config.SourceRelease: a mirror with the programs of Kubernetes, and a registry with the images that kubeadm asks for.
type upstream struct {
	mirror
	registry string // HOST[:PORT][/PATH], in place of kubeadm's own
}

// answerBudget bounds the question whether the release can be had: who is offline waits no longer for the compiler to begin.
const answerBudget = 5 * time.Second

// missing says why the release cannot be had now, nil if both servers answer within the budget.
func (u upstream) missing(ctx context.Context, budget time.Duration) error {
	at, err := u.imageOf("registry.k8s.io/etcd")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, budget, fmt.Errorf("no answer within %s", budget))
	defer cancel()
	defer u.fetcher.client.CloseIdleConnections()
	var g errgroup.Group
	reach := func(url string, fine ...int) {
		g.Go(func() error {
			resp, err := u.fetcher.get(ctx, url, nil)
			switch {
			case ctx.Err() != nil:
				return fmt.Errorf("%s: %w", url, context.Cause(ctx))
			case err != nil:
				return fmt.Errorf("%s: %w", url, err)
			}
			_ = resp.Body.Close()
			if !slices.Contains(fine, resp.StatusCode) {
				return fmt.Errorf("%s: %w", url, &statusError{resp.StatusCode})
			}
			return nil
		})
	}
	reach(u.address(hostPrograms[0])+digestEnding, http.StatusOK)
	reach(fmt.Sprintf("%s://%s/v2/", at.Context().Scheme(), at.Context().RegistryStr()), http.StatusOK, http.StatusUnauthorized) // it may want a token
	return g.Wait()
}

// imageOf is where the registry has what kubeadm calls ref.
func (u upstream) imageOf(ref string) (name.Reference, error) {
	_, rest, _ := strings.Cut(ref, "/")
	at, err := name.ParseReference(path.Join(u.registry, rest))
	if err != nil {
		return nil, fmt.Errorf("kubernetes.release.images: %w", err)
	}
	return at, nil
}

// published is a source of programs that are in a published image.
type published struct {
	image    name.Reference
	programs []string
	parts    string // as mirror has it
}

func (p published) inputs() []string { return []string{"published 1", p.image.String()} }

func (p published) origin() origin { return origin{From: "container image " + p.image.String()} }

func (p published) build(ctx context.Context, dir string, step *event.Step) error {
	img, err := ask(ctx, p.image)
	if err != nil {
		return err
	}
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	files, err := fetchLayers(ctx, p.image.Context(), p.parts, layers, step)
	if err != nil {
		return err
	}
	missing := slices.Clone(p.programs)
	for _, file := range slices.Backward(files) { // what a later layer has replaces what an earlier one has
		found, err := takePrograms(file, dir, missing)
		if err != nil {
			return err
		}
		missing = slices.DeleteFunc(missing, func(program string) bool { return slices.Contains(found, program) })
	}
	if len(missing) > 0 {
		return fmt.Errorf("the image %s has no %s", p.image, strings.Join(missing, ", "))
	}
	return os.RemoveAll(p.parts)
}

// takePrograms copies those of the programs that a layer has to dir, from whichever directory.
func takePrograms(file, dir string, programs []string) (found []string, err error) {
	layer, err := tarball.LayerFromFile(file)
	if err != nil {
		return nil, err
	}
	content, err := layer.Uncompressed()
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }()
	for archive := tar.NewReader(content); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		program := path.Base(head.Name)
		if head.Typeflag != tar.TypeReg || !slices.Contains(programs, program) || slices.Contains(found, program) {
			continue
		}
		if err := writeProgram(filepath.Join(dir, program), archive); err != nil {
			return nil, fmt.Errorf("%s %w", head.Name, err)
		}
		found = append(found, program)
	}
}

// writeProgram fails if the content cannot run on a node.
func writeProgram(path string, content io.Reader) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, io.LimitReader(content, maxProgram))
	if err := errors.Join(err, file.Chmod(0o755), file.Close()); err != nil {
		return err
	}
	return programProblem(path)
}
