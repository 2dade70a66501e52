package image

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"k8slab/config"
	"k8slab/lab/event"
)

// Settle is the cluster with a version of Kubernetes that does not float: a label's is asked of the release server, that of a directory is
// read there.
func Settle(ctx context.Context, c *config.Cluster, events *event.Stream) (*config.Cluster, error) {
	k := c.Kubernetes
	if !k.Floats() {
		return c, nil
	}
	step := events.Start("", "kubernetes.version", 0)
	version, err := versionOf(ctx, k, step)
	if err == nil && !config.IsVersion(version) {
		err = fmt.Errorf("kubernetes.version: %s is %q, which is no version of Kubernetes", k.Version, version[:min(len(version), 80)])
	}
	if err != nil {
		return nil, step.End(err)
	}
	step.EndWith(k.Version + " is " + version)
	settled := *c
	settled.Kubernetes.Version = version
	return &settled, nil
}

func versionOf(ctx context.Context, k config.Kubernetes, step *event.Step) (string, error) {
	if name, ci, is := k.Label(); is {
		server := k.Source
		if server == config.SourceAuto || server == config.SourceRelease {
			server = releaseServer(k.Release.Server, ci)
		}
		text, err := newFetcher().text(ctx, strings.TrimRight(server, "/")+"/"+name+".txt", step)
		if err != nil {
			return "", fmt.Errorf("kubernetes.version: %s: %w", k.Version, err)
		}
		return strings.TrimSpace(text), nil
	}
	if _, is := projectIn(k.Source); is {
		c, err := openCheckout(ctx, "kubernetes.source", k.Source, kubernetesName, nil, "", step)
		if err != nil {
			return "", err
		}
		return c.version, nil
	}
	d := &directory{path: k.Source}
	problems := d.open([]string{"kubeadm"}, step)
	if err := errors.Join(problems...); err != nil {
		return "", fmt.Errorf("kubernetes.source: %s: %w", k.Source, err)
	}
	version, err := runKubeadm(ctx, filepath.Join(d.path, d.files[0].name), "version", "-o", "short")
	if err != nil {
		return "", fmt.Errorf("kubernetes.source: %s: kubeadm does not tell its version: %w", k.Source, err)
	}
	return strings.TrimSpace(version), nil
}

// releaseServer is the URL with the versions, or for builds between releases the directory ci beside it, as upstream has them.
func releaseServer(server string, ci bool) string {
	if above, is := strings.CutSuffix(strings.TrimRight(server, "/"), "/release"); is && ci {
		return above + "/ci"
	}
	return server
}
