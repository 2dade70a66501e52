package image

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"k8slab/lab/event"
)

// mirror is a source that downloads the programs in the layout of upstream's releases: URL/VERSION/bin/linux/amd64/PROGRAM, and beside
// each PROGRAM.sha256.
type mirror struct {
	key     string // of cluster.yaml that has the URL
	url     string // without a slash at the end
	version string
	parts   string // directory of what has arrived; outlives an interrupted build
	fetcher fetcher
}

// parallel is how many programs are downloaded at a time.
const parallel = 3

// inputs do not include the checksums, which only the mirror has: its files of a version are expected not to change.
func (m mirror) inputs() []string { return []string{"mirror 1", m.version, m.url} }

func (m mirror) origin() origin { return origin{From: m.url} }

func (m mirror) build(ctx context.Context, dir string, step *event.Step) error {
	programs := slices.Concat(hostPrograms, imagePrograms)
	if err := m.download(ctx, programs, step); err != nil {
		return err
	}
	if err := m.check(ctx, programs); err != nil {
		return err
	}
	for _, p := range programs {
		if err := os.Rename(m.part(p), filepath.Join(dir, p)); err != nil {
			return err
		}
	}
	return os.RemoveAll(m.parts)
}

// download fills m.parts. When a download fails, what has arrived of the others stays for the next run.
func (m mirror) download(ctx context.Context, programs []string, step *event.Step) error {
	if err := os.MkdirAll(m.parts, 0o755); err != nil {
		return err
	}
	defer m.fetcher.client.CloseIdleConnections()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, p := range programs {
		g.Go(func() error { return m.program(ctx, p, step) })
	}
	return g.Wait()
}

func (m mirror) part(program string) string { return filepath.Join(m.parts, program+".part") }

func (m mirror) address(program string) string {
	return fmt.Sprintf("%s/%s/bin/linux/amd64/%s", m.url, m.version, program)
}

// digestEnding comes after a program's address.
const digestEnding = ".sha256"

func (m mirror) program(ctx context.Context, program string, step *event.Step) error {
	url := m.address(program)
	text, err := m.fetcher.text(ctx, url+digestEnding, step)
	if err != nil {
		return m.advise(err)
	}
	digest, err := parseDigest(text, program)
	if err != nil {
		return fmt.Errorf("%s%s %w; check that %s is a release mirror", url, digestEnding, err, m.key)
	}
	return m.advise(m.fetcher.file(ctx, url, digest, m.part(program), step))
}

// advise adds to a "not found" what decides the file's address.
func (m mirror) advise(err error) error {
	var answer *statusError
	if !errors.As(err, &answer) || !answer.missing() {
		return err
	}
	return fmt.Errorf("%w; check that the mirror has Kubernetes %s (kubernetes.version), and that %s, %s, has %s/bin/linux/amd64 in it",
		err, m.version, m.key, m.url, m.version)
}

// check makes sure that the files, whose checksums are right, are programs for a node and of the version.
func (m mirror) check(ctx context.Context, programs []string) error {
	var problems []error
	for _, p := range programs {
		file := m.part(p)
		err := os.Chmod(file, 0o755)
		if err == nil {
			err = programProblem(file)
		}
		if err == nil && p == "kubeadm" {
			err = versionProblem(ctx, file, m.version)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s %w", p, err))
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("%s has no Kubernetes %s that the lab can use:\n%w", m.url, m.version, errors.Join(problems...))
	}
	return nil
}

// parseDigest reads a SHA-256 in hexadecimal digits that may be followed by the name of its file, as sha256sum writes it.
func parseDigest(text, file string) (string, error) {
	fields := strings.Fields(text)
	if len(fields) == 0 || len(fields) > 2 || !isDigest(fields[0]) {
		return "", fmt.Errorf("is not a SHA-256: %q", text[:min(len(text), 80)])
	}
	if len(fields) == 2 && path.Base(strings.TrimPrefix(fields[1], "*")) != file {
		return "", fmt.Errorf("has the SHA-256 of another file, %q", fields[1])
	}
	return strings.ToLower(fields[0]), nil
}

func isDigest(s string) bool {
	sum, err := hex.DecodeString(s)
	return err == nil && len(sum) == 32
}
