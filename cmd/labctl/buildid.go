package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"k8slab/lab/event"
	"k8slab/lab/image"
	"k8slab/lab/state"
)

// buildID says what a lab, or an image, is made of.
type buildID struct {
	Lab        string          `json:"lab,omitempty"` // "" for an image of which there is no lab
	Kubernetes string          `json:"kubernetes"`
	Image      string          `json:"image"` // the hash of all its inputs
	Programs   []image.Program `json:"programs"`
}

func (a *app) buildIDCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "build-id",
		Short: "Print which programs the lab has: version, commit, SHA-256, and where they come from",
		Long: `Print which programs the lab's nodes and their container images have: version, commit, whether the code had changes that were not committed (TREE),
SHA-256, and where they come from. The lab need not run. Without a lab it is the node image that cluster.yaml describes, if it is built.

Version and commit are what a program says of itself, where it does. What somebody replaced on a node later, "labctl ssh NODE -- labnode files" shows.`,
		Example: `  labctl build-id
  labctl build-id -o json | jq -r '.programs[] | select(.name == "kubeadm").commit'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			id, err := a.buildID(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(id, func(w io.Writer) { printBuildID(w, id) })
		},
	}
}

func (a *app) buildID(ctx context.Context) (id buildID, err error) {
	described, err := a.cluster()
	if err != nil {
		return id, err
	}
	l, err := state.Read(described)
	if err != nil {
		return id, err
	}
	var img image.Image
	if dir, err := l.Image(); err == nil {
		id.Lab, id.Kubernetes, img = l.Cluster.Name, l.Cluster.Kubernetes.Version, image.At(dir)
	} else {
		program, err := imageLabnode()
		if err != nil {
			return id, err
		}
		events := event.NewStream()
		c, err := image.Settle(ctx, described, events)
		if err != nil {
			return id, err
		}
		if img, err = image.Find(ctx, image.SpecOf(c, program), events); err != nil {
			return id, err
		}
		id.Kubernetes = c.Kubernetes.Version
	}
	id.Image = filepath.Base(img.Dir)
	id.Programs, err = img.Programs()
	if image.NoPrograms(err) {
		err = errors.New("the node image " + id.Image + " is gone, or an earlier labctl built it, which noted no programs; next: labctl image build")
	}
	return id, err
}

func printBuildID(w io.Writer, id buildID) {
	of := "no lab yet"
	if id.Lab != "" {
		of = "lab " + id.Lab
	}
	_, _ = fmt.Fprintf(w, "%s, Kubernetes %s, image %s\n\n", of, id.Kubernetes, id.Image)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "PROGRAM\tVERSION\tCOMMIT\tTREE\tSHA256\tFROM")
	for _, p := range id.Programs {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", p.Name, cmp.Or(p.Version, "unknown"), cmp.Or(p.Commit[:min(12, len(p.Commit))], "–"),
			cmp.Or(p.State, "–"), p.SHA256[:min(12, len(p.SHA256))], p.From)
	}
	_ = t.Flush()
}
