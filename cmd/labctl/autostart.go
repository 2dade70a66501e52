package main

import (
	"fmt"
	"io"
	"k8slab/lab/provision"
	"os"

	"github.com/spf13/cobra"
)

func (a *app) autostartCommand() *cobra.Command {
	var off bool
	cmd := &cobra.Command{
		Use:   "autostart",
		Short: "Start the lab when this computer starts; --off or down turns that off",
		Long: `Have systemd run "labctl up" for this lab when the computer starts. It writes a unit into /etc/systemd/system, or for a user who is not root into the
user's own systemd, which runs at boot only for users that linger (loginctl enable-linger).

The same cluster comes back: its machines start from their disks, and no node joins again. Without autostart, run labctl up after a boot.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.lab()
			if err != nil {
				return err
			}
			if off {
				return provision.NoAutostart(cmd.Context(), l.Closed())
			}
			path, err := provision.Autostart(cmd.Context(), l.Closed())
			if err != nil {
				return err
			}
			return a.print(map[string]string{"unit": path}, func(w io.Writer) {
				_, _ = fmt.Fprintf(w, "%s starts lab %s when this computer starts.\n", path, l.Name())
				if os.Geteuid() != 0 {
					_, _ = fmt.Fprintln(w, "A user's units run at boot only if the user lingers: loginctl enable-linger")
				}
			})
		},
	}
	cmd.Flags().BoolVar(&off, "off", false, "do not start it any more")
	return cmd
}
