package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"k8slab/lab"
	"k8slab/lab/provision"
)

// vagrantCommand has the commands that the Vagrantfile calls.
func (a *app) vagrantCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "vagrant",
		Short: "Prepare what the Vagrantfile needs: the box, the machines, the network",
		Long: `Prepare what the Vagrantfile needs to make the lab's virtual machines from cluster.yaml. Run "make box" first, then vagrant up and labctl up in any
order: labctl forms the cluster on the machines that exist and makes the missing ones.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use: "box", Short: "Make the node image's box, unless the cache has it", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if done, err := a.asRoot(cmd); done || err != nil {
				return err
			}
			l, finish, _, err := a.watched("vagrant-box")
			if err != nil {
				return err
			}
			defer l.Close()
			box, err := l.VagrantBox(cmd.Context())
			if err := errors.Join(err, finish()); err != nil {
				return err
			}
			return a.print(box, func(w io.Writer) { _, _ = fmt.Fprintln(w, box.Name, box.Version, box.URL) })
		},
	}, &cobra.Command{
		Use: "machines", Short: "Describe the machines to the Vagrantfile (-o json)", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := show(a, func(l *lab.Lab) (provision.Vagrant, error) { return provision.DescribeVagrant(l.Closed()) }, printVagrant)
			return err
		},
	}, &cobra.Command{
		Use: "prepare NODE", Short: "Make the network, and the node's own files, before vagrant makes its machine", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.nodeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withEvents("vagrant-prepare", func(l *lab.Lab) error { return l.VagrantPrepare(cmd.Context(), args[0]) })
		},
	})
	return cmd
}

func printVagrant(w io.Writer, v provision.Vagrant) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "NODE\tDOMAIN\tDRIVER\tCPUS\tMIB\tGIB\tMAC")
	for _, m := range v.Machines {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%s\n", m.Name, m.Domain, m.Driver, m.CPUs, m.Memory, m.Disk, m.MAC)
	}
	_ = t.Flush()
}
