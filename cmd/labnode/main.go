// labnode is the lab's command inside a node: the pod that proves the pod network (labnode probe), and the flannel CNI plugin when it
// is called by that name.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	if filepath.Base(os.Args[0]) == "flannel" {
		flannelPlugin()
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{
		Use:           "labnode",
		Short:         "The lab's command inside a node",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(probeCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "labnode:", err)
		os.Exit(1)
	}
}
