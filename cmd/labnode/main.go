// labnode is the lab's command inside a node: it joins the node to a cluster and checks what that takes (preflight, join, reset, facts,
// collect, validate), also on a machine that the lab did not build. It is the pod that proves the pod network (labnode probe) and the one
// that serves the Git repository (labnode gitserver), and a CNI plugin when it is called by the name of one: flannel's, or the placeholder's.
// Results go to stdout, progress to stderr.
//
// Exit status: 0 done, 1 failed or blocked with a named cause, 2 wrong usage or configuration, 3 not ready but fixable (preflight),
// 130 interrupted.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"k8slab/lab/join"
)

func main() {
	switch filepath.Base(os.Args[0]) {
	case "flannel":
		flannelPlugin()
		return
	case join.PlaceholderPlugin:
		placeholderPlugin()
		return
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel(errInterrupted)
		<-signals
		os.Exit(exitInterrupted)
	}()
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	os.Exit(a.run(ctx, os.Args[1:]))
}

// run is main, callable from tests.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	return a.exitCode(ctx, root.ExecuteContext(ctx))
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "labnode",
		Short:         "Join this machine to a kubeadm cluster; check and repair what a join needs",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs, // an unknown command is an argument too many
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(
		a.preflightCommand(), a.repairCommand(), formerly("mend", a.repairCommand()), a.joinCommand(), a.followCommand(), a.resetCommand(),
		a.factsCommand(), a.collectCommand(), a.filesCommand(), a.validateCommand(), probeCommand(), a.gitserverCommand(),
	)
	usageArgs(root)
	return root
}

// usageArgs makes wrong arguments of the command and its children usage errors.
func usageArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return usageError{err}
			}
			return nil
		}
	}
	for _, child := range cmd.Commands() {
		usageArgs(child)
	}
}
