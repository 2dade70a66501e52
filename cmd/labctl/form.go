package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"k8slab/lab"
	"k8slab/lab/bringup"
	"k8slab/lab/event"
)

// form is `up` on machines that exist.
func (a *app) form(ctx context.Context, podNetwork string, dryRun bool) error {
	network := bringup.PodNetwork{File: podNetwork}
	if podNetwork != "" {
		var err error
		if network.Manifest, err = os.ReadFile(podNetwork); err != nil {
			return usageError{err}
		}
	}
	if dryRun {
		_, err := show(a, func(l *lab.Lab) ([]string, error) { return l.FormSteps(ctx, network) }, printSteps)
		return err
	}
	return a.withEvents("up", func(l *lab.Lab) error {
		err := l.Form(ctx, network)
		if err == nil && len(l.Changes()) == 0 {
			_, _ = fmt.Fprintln(a.stderr, "verified: healthy, nothing changed")
		}
		return err
	})
}

func printSteps(w io.Writer, steps []string) {
	if len(steps) == 0 {
		_, _ = fmt.Fprintln(w, "Every machine is in the cluster: up proves it healthy, and changes nothing.")
	}
	for _, step := range steps {
		_, _ = fmt.Fprintln(w, event.OneLine(event.Redact(step)))
	}
}
