package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"k8slab/lab"
	"k8slab/lab/event"
	"k8slab/lab/host"
	"k8slab/lab/image"
	"k8slab/lab/provision"
	"k8slab/lab/state"
)

func (a *app) hostCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "host",
		Short: "Work on this computer: run a command in the lab's network, install packages",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	execute := &cobra.Command{
		Use:   "exec COMMAND...",
		Short: "Run a command on this computer, in the network of the lab and of its libvirt daemon",
		Long: `Run a command on this computer, in the network of the lab and of its libvirt daemon:
  labctl host exec virsh -c lxc:///system list
  labctl host exec curl http://10.30.0.21:30080`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := look(a, (*lab.Lab).Host)
			if err != nil {
				return err
			}
			return a.program(cmd, h.Enter(args))
		},
	}
	execute.Flags().SetInterspersed(false) // what follows COMMAND is the command's
	cmd.AddCommand(execute, a.installCommand(), serveCommand())
	return cmd
}

func (a *app) installCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "install",
		Short: "Install the Debian or Ubuntu packages that the lab needs (up does it too)",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			events := event.NewStream(a.sinks()...)
			defer func() { _ = events.Close() }()
			for _, uri := range []string{host.Containers, host.VirtualMachines} {
				if err := host.Install(cmd.Context(), uri, image.Packages(""), events); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// serveCommand is how labctl starts itself as the lab's serving process.
func serveCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:    "serve",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(*cobra.Command, []string) error { return host.Serve(dir) },
	}
	cmd.Flags().StringVar(&dir, "dir", "", "directory of the lab's own daemon")
	return cmd
}

func (a *app) imageCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "image", Short: "Build, fetch, send, list and prune node images; load container images into the nodes", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.imageBuildCommand(), a.imageExportCommand(), a.imageImportCommand(), a.imageListCommand(), a.imageLoadCommand(),
		a.imagePruneCommand(), a.imagePullCommand(), a.imagePushCommand())
	return cmd
}

func (a *app) imageBuildCommand() *cobra.Command {
	var disk bool
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build the node image of cluster.yaml's Kubernetes version, unless the cache has it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withImage(cmd, func(_ string, img image.Image, events *event.Stream) error {
				if disk {
					if _, err := img.BuildDisk(cmd.Context(), events); err != nil {
						return err
					}
				}
				return a.print(map[string]string{"hash": img.Hash, "dir": img.Dir}, func(w io.Writer) { _, _ = fmt.Fprintln(w, img.Dir) })
			})
		},
	}
	cmd.Flags().BoolVar(&disk, "disk", false, "also build the disk for virtual machines")
	return cmd
}

func (a *app) imageListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the images in the cache and their parts, and those in libvirt's storage pools",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			entries, err := image.List()
			if err != nil {
				return err
			}
			uploaded, err := provision.UploadedImages(cmd.Context())
			if err != nil {
				return err
			}
			entries = append(entries, uploaded...)
			return a.print(entries, func(w io.Writer) { printEntries(w, entries) })
		},
	}
}

func (a *app) imagePruneCommand() *cobra.Command {
	var age time.Duration
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove images and parts that were not used for a while; keep those of existing labs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			used, err := state.ImagesInUse()
			if err != nil {
				return err
			}
			before := time.Now().Add(-age)
			entries, err := image.Prune(before, func(path string) bool { return slices.Contains(used, path) })
			uploaded, poolErr := provision.PruneUploadedImages(cmd.Context(), before)
			entries = append(entries, uploaded...)
			return errors.Join(err, poolErr, a.print(entries, func(w io.Writer) { printEntries(w, entries) }))
		},
	}
	cmd.Flags().DurationVar(&age, "unused-for", 7*24*time.Hour, "remove what was not used for this long")
	return cmd
}

func printEntries(w io.Writer, entries []image.Entry) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, e := range entries {
		_, _ = fmt.Fprintf(t, "%s\t%d MiB\tused %s\n", e.Name, e.Size>>20, e.Used.Format(time.DateTime))
	}
	_ = t.Flush()
}
