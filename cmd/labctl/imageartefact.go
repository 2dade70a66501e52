package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"k8slab/config"
	"k8slab/lab/atomicfile"
	"k8slab/lab/event"
	"k8slab/lab/host"
	"k8slab/lab/image"
	"k8slab/lab/state"
)

// packed is a node image of cluster.yaml's version that can be taken elsewhere.
type packed struct {
	Kubernetes string `json:"kubernetes"`
	Digest     string `json:"digest"`
	Image      string `json:"image"` // FILE or reference
}

func (a *app) imagePushCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "push REFERENCE",
		Short: "Send the node image to a registry, for other computers to fetch instead of building",
		Long: `Build the node image of cluster.yaml, unless the cache has it, and send it to a registry as an OCI image. The credentials are those that docker login
or podman login left. The last line is what another computer's cluster.yaml needs: it names the image by its digest.`,
		Example: `  labctl image push registry.example:5000/k8slab/node:v1.37.2`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.artefact(cmd, args[0], func(ctx context.Context, dir string, events *event.Stream) error {
				step := events.Start("", "image: push", 0)
				return step.End(image.Push(ctx, dir, args[0], step))
			})
		},
	}
}

func (a *app) imageExportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "export FILE",
		Short: "Write the node image to a file, for other computers to import instead of building",
		Long: `Build the node image of cluster.yaml, unless the cache has it, and write it to a file: a tar archive of an OCI layout. "labctl image import FILE" reads it
on another computer.`,
		Example: `  labctl image export node-v1.37.2.tar`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.artefact(cmd, args[0], func(_ context.Context, dir string, events *event.Stream) error {
				step := events.Start("", "image: export", 0)
				return step.End(atomicfile.Replace(args[0], 0o644, func(w io.Writer) error { return image.Export(dir, w) }))
			})
		},
	}
}

// artefact packs the node image of cluster.yaml and gives it to send.
func (a *app) artefact(cmd *cobra.Command, to string, send func(ctx context.Context, dir string, events *event.Stream) error) error {
	return a.withImage(cmd, func(version string, img image.Image, events *event.Stream) error {
		dir, digest, err := img.Artefact(cmd.Context(), version, events)
		if err != nil {
			return err
		}
		if err := send(cmd.Context(), dir, events); err != nil {
			return err
		}
		p := packed{Kubernetes: version, Digest: digest.String(), Image: to}
		return a.print(p, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "%s has Kubernetes %s, %s\n%s", to, p.Kubernetes, p.Digest, useOf(to, p.Digest))
		})
	})
}

// useOf is how cluster.yaml names an image.
func useOf(reference, digest string) string {
	repository, err := image.Repository(reference)
	if err != nil { // a file
		repository = "localhost/node"
	}
	return fmt.Sprintf("In cluster.yaml: image: {from: \"%s@%s\"}\n", repository, digest)
}

func (a *app) imagePullCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pull REFERENCE",
		Short: "Fetch a node image from a registry into the cache",
		Long: `Fetch a node image that "labctl image push" sent, by its tag or digest, check it and unpack it into the cache. "labctl up" does that itself for the image
that cluster.yaml names. What has arrived when it is interrupted is not fetched again.`,
		Example: `  labctl image pull registry.example:5000/k8slab/node:v1.37.2`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.fetch(cmd, args[0], func(events *event.Stream) (image.Fetched, error) { return image.Pull(cmd.Context(), args[0], events) })
		},
	}
}

func (a *app) imageImportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE",
		Short: "Read a node image from a file into the cache",
		Long: `Read a node image that "labctl image export" wrote, check it and unpack it into the cache; - is standard input. The last line is what cluster.yaml
needs to use it.`,
		Example: `  labctl image import node-v1.37.2.tar`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.fetch(cmd, args[0], func(events *event.Stream) (image.Fetched, error) {
				if args[0] == "-" {
					return image.Import(cmd.Context(), a.stdin, events)
				}
				f, err := os.Open(args[0])
				if err != nil {
					return image.Fetched{}, fmt.Errorf("%w; next: labctl image export FILE writes one, on a computer that has the image", err)
				}
				defer func() { _ = f.Close() }()
				fetched, err := image.Import(cmd.Context(), f, events)
				if err != nil {
					err = fmt.Errorf("%s: %w", args[0], err)
				}
				return fetched, err
			})
		},
	}
}

func (a *app) fetch(cmd *cobra.Command, from string, get func(events *event.Stream) (image.Fetched, error)) error {
	if done, err := a.asRoot(cmd); done || err != nil {
		return err
	}
	events := event.NewStream(a.sinks()...)
	f, err := get(events)
	if err := errors.Join(err, events.Close()); err != nil {
		return err
	}
	return a.print(f, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "Kubernetes %s, %s\n%s", f.Kubernetes, f.Digest, useOf(from, f.Digest))
	})
}

// withImage builds the node image that cluster.yaml describes, with its version of Kubernetes, unless the cache has it, and calls use.
func (a *app) withImage(cmd *cobra.Command, use func(version string, img image.Image, events *event.Stream) error) error {
	if done, err := a.asRoot(cmd); done || err != nil {
		return err
	}
	c, err := a.cluster()
	if err != nil {
		return err
	}
	program, err := imageLabnode()
	if err != nil {
		return err
	}
	events := event.NewStream(a.sinks()...)
	defer func() { _ = events.Close() }()
	if err := host.Install(cmd.Context(), "", image.Packages(c.Image.From), events); err != nil {
		return err
	}
	if err := chooseDistribution(c); err != nil {
		return err
	}
	if c, err = image.Settle(cmd.Context(), c, events); err != nil {
		return err
	}
	img, err := image.Build(cmd.Context(), image.SpecOf(c, program), events)
	if err != nil {
		return err
	}
	return use(c.Kubernetes.Version, img, events)
}

// chooseDistribution takes the one of the lab, if it exists.
func chooseDistribution(c *config.Cluster) error {
	l, err := state.Open(c.Name)
	if err != nil {
		return err
	}
	made, err := l.Made()
	if err != nil {
		return err
	}
	if made != nil {
		c.ChooseDistribution(made.Image.Distribution)
	}
	c.ChooseDistribution(config.DefaultDistribution)
	return nil
}
