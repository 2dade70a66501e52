package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"k8slab/lab/inventory"
)

// root is the tree that is compared: the machine itself.
const root = "/"

func (a *app) filesCommand() *cobra.Command {
	var output string
	var restore bool
	cmd := &cobra.Command{
		Use:   "files",
		Short: "Show which files of this machine are not as its node image made them",
		Long: `Compare the files of this machine with the list that its node image carries: programs, libraries, units, and the configuration of
what the lab installs. Also shown are files that the image does not have and that change what a component does. On a machine without a list
nothing is compared.

With --restore, put them back: the contents come from a tar archive on standard input, whose entries have the files' paths; modes, owners,
links and directories need none. What stood in a file's place is kept beside it, as FILE.k8slab-saved. Masks of units are removed; other
extra files stay.

Exit status: 0 compared, or put back; 1 something could not be put back.`,
		Example: `  labnode files
  tar --create --absolute-names /usr/sbin/runc | labctl ssh w1 -- labnode files --restore`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			list, err := inventory.Read(root)
			if err != nil {
				return err
			}
			var found []inventory.Difference
			if restore {
				found, err = list.Restore(cmd.Context(), root, a.stdin)
			} else {
				found, err = list.Compare(cmd.Context(), root)
			}
			return errors.Join(err, a.writeDifferences(found, output))
		},
	}
	cmd.Flags().BoolVar(&restore, "restore", false, "put back what differs, with contents from an archive on standard input")
	outputFlag(cmd, &output)
	return cmd
}

func (a *app) writeDifferences(found []inventory.Difference, output string) error {
	if output == "json" {
		return json.NewEncoder(a.stdout).Encode(append([]inventory.Difference{}, found...)) // a list, also where it is empty
	}
	for _, d := range found {
		if _, err := fmt.Fprintln(a.stdout, d); err != nil {
			return err
		}
	}
	return nil
}
